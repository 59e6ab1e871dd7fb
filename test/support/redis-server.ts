// A real redis-server on a free port, for one test file. Isolation within it is by random key prefixes.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

export interface RedisServer {
  readonly port: number;
  readonly process: ChildProcess;
  /** Ends the server and waits until it is gone. */
  stop(): Promise<void>;
}

const ATTEMPTS = 5;

// Also those whose test ended before it could stop them.
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** @param args further arguments of redis-server; `port` starts it on that port instead of a free one. */
export async function startRedis(args: readonly string[] = [], port?: number): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const server = await tryStart(port ?? (await freePort()), args);
    if (typeof server !== "string") return server;
    if (attempt === ATTEMPTS) throw new Error(`redis-server did not start: ${server}`);
  }
}

/** The server, or its output when it ended before it was ready. */
async function tryStart(port: number, args: readonly string[]): Promise<RedisServer | string> {
  // A replica writes down what its master sends.
  const folder = mkdtempSync(join(tmpdir(), "weir-redis-"));
  const child = spawn(
    "redis-server",
    ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder, ...args],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  running.add(child);
  child.once("close", () => {
    running.delete(child);
    rmSync(folder, { recursive: true, force: true });
  });
  let output = "";
  const ready = await new Promise<boolean>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => resolve(false));
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes("Ready to accept connections")) resolve(true);
    });
  });
  if (!ready) return output;
  child.stdout.resume();
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { port, process: child, stop };
}
