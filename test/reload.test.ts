import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RuleLoader, readRuleFiles } from "../src/reload.ts";
import { sha256 } from "./support/sha256.ts";

const GOOD = "domain: a\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]\n";

let directory: string;
let loader: RuleLoader | undefined;
/** What happened, in order, and who waits for the next thing to happen. */
let events: string[];
let wake: () => void;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "weir-rules-"));
  events = [];
  wake = () => {};
});

afterEach(() => {
  loader?.close();
  rmSync(directory, { recursive: true });
});

function open(intervalMs: number): RuleLoader {
  const happened = (event: string): void => {
    events.push(event);
    wake();
  };
  loader = new RuleLoader({
    directory,
    intervalMs,
    compile: { keyPrefix: "", mergeDomains: false, sha256 },
    onLoaded: (tree, warnings) => happened([`loaded ${[...tree.domains.keys()].join(" ")}`, ...warnings].join("; ")),
    onFailed: (problems) => happened(`failed ${problems.join(" ")}`),
  });
  return loader;
}

/** The next event after those that were there. */
async function next(): Promise<string | undefined> {
  const seen = events.length;
  await new Promise<void>((resolve) => {
    wake = resolve;
  });
  return events[seen];
}

describe("rule files", () => {
  it("are those that end so, in folders too, by name; dotfiles and links to folders are not", () => {
    mkdirSync(join(directory, "sub"));
    mkdirSync(join(directory, "..2026_data"));
    for (const name of ["b.yml", "a.yaml", "c.json", "README.md", ".hidden.yaml", "sub/d.yaml", "..2026_data/e.yaml"]) {
      writeFileSync(join(directory, name), name);
    }
    symlinkSync("sub", join(directory, "linked"));
    symlinkSync("..2026_data/e.yaml", join(directory, "e.yaml"));
    expect(readRuleFiles(directory).map(({ name, text }) => [name, text])).toEqual([
      ["a.yaml", "a.yaml"],
      ["b.yml", "b.yml"],
      ["c.json", "c.json"],
      ["e.yaml", "..2026_data/e.yaml"],
      ["sub/d.yaml", "sub/d.yaml"],
    ]);
  });

  it("that cannot be found are a problem that names the directory", () => {
    rmSync(directory, { recursive: true });
    open(0).load();
    mkdirSync(directory);
    expect(events).toEqual([`failed ${directory}: no such directory or file`]);
  });
});

describe("a change", () => {
  it("is noticed when a file is edited, added, renamed or removed", async () => {
    writeFileSync(join(directory, "a.yaml"), GOOD);
    const loader = open(5);
    loader.load();
    loader.watch();
    expect(events).toEqual(["loaded a"]);

    writeFileSync(join(directory, "a.yaml"), GOOD.replace("domain: a", "domain: b"));
    expect(await next()).toBe("loaded b");
    writeFileSync(join(directory, "new.yaml"), "domain: c\n");
    expect(await next()).toBe("loaded b c");
    renameSync(join(directory, "new.yaml"), join(directory, "new.txt"));
    expect(await next()).toBe("loaded b; new.txt is not read: rules are files that end in .yaml, .yml, .json");
    rmSync(join(directory, "new.txt"));
    rmSync(join(directory, "a.yaml"));
    expect(await next()).toBe("loaded ");
  });

  it("is noticed when a link is swapped, as in a ConfigMap", async () => {
    for (const version of ["1", "2"]) {
      mkdirSync(join(directory, `..${version}`));
      writeFileSync(join(directory, `..${version}`, "rules.yaml"), `domain: v${version}\n`);
    }
    symlinkSync("..1", join(directory, "..data"));
    symlinkSync("..data/rules.yaml", join(directory, "rules.yaml"));
    const loader = open(5);
    loader.load();
    loader.watch();
    expect(events).toEqual(["loaded v1"]);
    symlinkSync("..2", join(directory, "..tmp"));
    renameSync(join(directory, "..tmp"), join(directory, "..data"));
    expect(await next()).toBe("loaded v2");
  });

  it("to the worse is reported with file, line and column, and to the better is noticed again", async () => {
    writeFileSync(join(directory, "a.yaml"), "domain: a\nfoo: 1\n");
    const loader = open(5);
    loader.load();
    loader.watch();
    expect(events[0]).toMatch(/^failed a\.yaml:2:1 .*`foo`/);
    writeFileSync(join(directory, "a.yaml"), GOOD);
    expect(await next()).toBe("loaded a");
  });
});
