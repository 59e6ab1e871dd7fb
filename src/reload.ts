// Reads the rule files, watches them, and puts a good set in force. A bad one changes nothing: it is reported, and the
// last good rules stay.
//
// Files are watched by looking at them at an interval. That notices every kind of change (an edit, a rename, a swapped
// link such as a ConfigMap's `..data`, a network file system), and waits until a file that is being written is whole.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { extname, join, relative } from "node:path";
import type { RuleTree } from "./core/rule-tree.ts";
import { type CompileOptions, compileRules } from "./rules/compile.ts";
import type { RuleFile } from "./rules/parse.ts";
import { formatProblem } from "./rules/problem.ts";

const RULE_FILE_ENDINGS: readonly string[] = [".yaml", ".yml", ".json"];
/** How long files must stay the same before they are read again. Milliseconds. */
const SETTLE_MS = 50;

export interface ReloadOptions {
  readonly directory: string;
  readonly compile: CompileOptions;
  /** Milliseconds between looks; 0 for never. */
  readonly intervalMs: number;
  readonly onLoaded: (tree: RuleTree, warnings: readonly string[]) => void;
  /** Each problem is a line with file, line and column. */
  readonly onFailed: (problems: readonly string[], warnings: readonly string[]) => void;
}

export class RuleLoader {
  readonly #options: ReloadOptions;
  #signature = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReloadOptions) {
    this.#options = options;
  }

  /** Reads the rules now and reports how that went. */
  load(): void {
    this.#signature = this.#look();
    const { directory, compile } = this.#options;
    let files: RuleFile[];
    try {
      files = readRuleFiles(directory);
    } catch (error) {
      this.#options.onFailed([`${directory}: ${reason(error)}`], []);
      return;
    }
    const outcome = compileRules(files, compile);
    const warnings = [...ignoredPaths(directory).map(ignored), ...outcome.warnings.map(formatProblem)];
    if ("problems" in outcome) this.#options.onFailed(outcome.problems.map(formatProblem), warnings);
    else this.#options.onLoaded(outcome.tree, warnings);
  }

  /** Starts to watch. Does not keep the process alive. */
  watch(): void {
    if (this.#options.intervalMs > 0) this.#later(this.#options.intervalMs, () => this.#lookAgain());
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #later(ms: number, action: () => void): void {
    this.#timer = setTimeout(action, ms);
    this.#timer.unref();
  }

  #lookAgain(): void {
    const signature = this.#look();
    if (signature === this.#signature) this.watch();
    else this.#later(SETTLE_MS, () => this.#settle(signature));
  }

  /** Reads the files if they are still what they were a moment ago. */
  #settle(signature: string): void {
    const now = this.#look();
    if (now === signature) {
      this.load();
      this.watch();
    } else {
      this.#later(SETTLE_MS, () => this.#settle(now));
    }
  }

  /** A text that differs when any file's name, size, time or place on disk does. */
  #look(): string {
    const hash = createHash("sha1");
    try {
      for (const { path, stats } of listRuleFiles(this.#options.directory)) {
        hash.update(`${path}\0${stats.size} ${stats.mtimeMs} ${stats.ctimeMs} ${stats.dev} ${stats.ino}\0`);
      }
    } catch (error) {
      hash.update(reason(error));
    }
    return hash.digest("hex");
  }
}

/**
 * All rule files below a directory, by name, with `/` between folders whatever the system.
 *
 * @throws Error when one cannot be read or is not UTF-8; the message names it
 */
export function readRuleFiles(directory: string): RuleFile[] {
  return listRuleFiles(directory).map(({ path }) => {
    const name = relative(directory, path).replaceAll("\\", "/");
    try {
      return { name, text: new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path)) };
    } catch (error) {
      throw new Error(`${name}: ${error instanceof TypeError ? "the file is not UTF-8" : reason(error)}`);
    }
  });
}

/** Dotfiles and other endings are no rules. Links to files are followed, links to folders are not. */
function listRuleFiles(directory: string): { path: string; stats: Stats }[] {
  const found: { path: string; stats: Stats }[] = [];
  walk(directory, (path) => {
    if (!RULE_FILE_ENDINGS.includes(extname(path))) return;
    const stats = statSync(path);
    if (stats.isFile()) found.push({ path, stats });
  });
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** What lies among the rules and is not read, dotfiles aside, by name. */
function ignoredPaths(directory: string): string[] {
  const found: string[] = [];
  walk(directory, (path) => {
    const isRules = RULE_FILE_ENDINGS.includes(extname(path)) && statSync(path).isFile();
    if (!isRules) found.push(relative(directory, path).replaceAll("\\", "/"));
  });
  return found.sort();
}

function ignored(name: string): string {
  return `${name} is not read: rules are files that end in ${RULE_FILE_ENDINGS.join(", ")}`;
}

/** Calls `visit` for all that is no folder, below a directory and its folders, dotfiles and dot folders aside. */
function walk(directory: string, visit: (path: string) => void): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const path = join(directory, entry.name);
    if (entry.isDirectory()) walk(path, visit);
    else visit(path);
  }
}

function reason(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return "no such directory or file";
  return error instanceof Error ? error.message : String(error);
}
