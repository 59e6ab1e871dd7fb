// A process under test: its output is kept, its end is a promise, and it never outlives the test run.
import { type ChildProcess, spawn } from "node:child_process";

export interface Exit {
  /** `null` when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  readonly pid: number;
  /** Everything it wrote so far, stdout and stderr in order of arrival. */
  output(): string;
  /** The first match in its output; rejects when it ends before, or after `withinMs` (20 s). */
  prints(pattern: RegExp, withinMs?: number): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when the process is gone and its output is complete. */
  readonly exit: Promise<Exit>;
  /** The exit; after `withinMs` (10 s) the process is killed and this rejects. */
  exitsWithin(withinMs?: number): Promise<Exit>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** @param env the whole environment: nothing is inherited, so that tests do not depend on the shell they run in. */
export function startChild(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Child {
  const child = spawn(command, args, { env: { ...env }, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let output = "";
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      output += text;
      for (const watcher of watchers) watcher();
    });
  }
  const exit = new Promise<Exit>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  exit.catch(() => running.delete(child));

  const prints = (pattern: RegExp, withinMs = 20_000): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        watchers.delete(look);
        clearTimeout(timer);
        act();
      };
      const fail = (why: string): void =>
        settle(() => reject(new Error(`${why} before it printed ${pattern}; it printed:\n${output}`)));
      const look = (): void => {
        const found = pattern.exec(output);
        if (found !== null) settle(() => resolve(found));
      };
      const timer = setTimeout(() => fail(`${withinMs} ms passed`), withinMs);
      watchers.add(look);
      exit.then(
        ({ code, signal }) => fail(`${command} ended (${signal ?? code})`),
        (error) => settle(() => reject(error)),
      );
      look();
    });

  const exitsWithin = (withinMs = 10_000): Promise<Exit> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        reject(new Error(`${command} was still running after ${withinMs} ms; it printed:\n${output}`));
      }, withinMs);
      exit.then(resolve, reject).finally(() => clearTimeout(timer));
    });

  return {
    pid: child.pid ?? -1,
    output: () => output,
    prints,
    kill: (signal) => void child.kill(signal),
    exit,
    exitsWithin,
  };
}
