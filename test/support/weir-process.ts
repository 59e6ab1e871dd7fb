// The real weir as a process of its own: on free ports, with rule files in a directory of its own, settings by
// environment alone.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, type Exit, startChild } from "./child-process.ts";
import { eventually } from "./eventually.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
/** Halves the time of a start, of which there are hundreds in a run. A file that changed is compiled anew. */
const COMPILE_CACHE = join(REPOSITORY, ".cache/node");

export interface WeirOptions {
  /** Further settings, which win over the ones below. */
  readonly env?: Readonly<Record<string, string>>;
  /** Rule files by name, which may hold folders. */
  readonly rules?: Readonly<Record<string, string>>;
  /** What runs, from the top of the repository. */
  readonly entry?: "src/cli/main.ts" | "dist/cli/main.js";
}

/** A weir that may still be starting, or about to fail. */
export interface StartingWeir {
  readonly child: Child;
  readonly rules: RuleFiles;
  /** Resolves when all ports are open; health is not looked at. */
  listening(): Promise<Weir>;
  /** Resolves when all ports are open and `/healthcheck` says 200. */
  serving(): Promise<Weir>;
}

export interface Weir {
  readonly child: Child;
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly debugPort: number;
  readonly rules: RuleFiles;
  /** Ends it by SIGTERM and removes its files. */
  stop(): Promise<Exit>;
}

/** The rule files of one weir. */
export interface RuleFiles {
  readonly directory: string;
  /** Puts a file in place in one step, as editors and deployments do. */
  put(name: string, text: string): void;
  remove(name: string): void;
}

/** Starts weir on the memory store with no drain time, unless `env` says otherwise. */
export function launchWeir({ env = {}, rules = {}, entry = "src/cli/main.ts" }: WeirOptions = {}): StartingWeir {
  const root = mkdtempSync(join(tmpdir(), "weir-test-"));
  const files = ruleFiles(root, join(root, "config"));
  for (const [name, text] of Object.entries(rules)) files.put(name, text);
  const child = startChild(process.execPath, [join(REPOSITORY, entry), "serve"], {
    HOST: "127.0.0.1",
    PORT: "0",
    GRPC_HOST: "127.0.0.1",
    GRPC_PORT: "0",
    DEBUG_HOST: "127.0.0.1",
    DEBUG_PORT: "0",
    BACKEND_TYPE: "memory",
    RUNTIME_ROOT: root,
    RUNTIME_SUBDIRECTORY: "",
    WEIR_DRAIN: "0",
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...env,
  });
  const removeFiles = (): void => rmSync(root, { recursive: true, force: true });
  child.exit.then(removeFiles, removeFiles);

  const port = async (name: string): Promise<number> => {
    const [, digits] = await child.prints(new RegExp(`^weir: ${name} listening on .*:(\\d+)$`, "m"));
    return Number(digits);
  };
  const listening = async (): Promise<Weir> => {
    const [httpPort, grpcPort, debugPort] = await Promise.all([port("http"), port("grpc"), port("debug")]);
    const stop = (): Promise<Exit> => {
      child.kill("SIGTERM");
      return child.exitsWithin();
    };
    return { child, httpPort, grpcPort, debugPort, rules: files, stop };
  };
  const serving = async (): Promise<Weir> => {
    const weir = await listening();
    await eventually(`weir is healthy; it printed:\n${child.output()}`, async () =>
      (await healthStatus(weir)) === 200 ? true : undefined,
    );
    return weir;
  };
  return { child, rules: files, listening, serving };
}

/** Starts weir and waits until it serves. */
export function startWeir(options: WeirOptions = {}): Promise<Weir> {
  return launchWeir(options).serving();
}

/** The settings for a Redis on this port. */
export function redisSettings(port: number): Record<string, string> {
  return { BACKEND_TYPE: "redis", REDIS_SOCKET_TYPE: "tcp", REDIS_URL: `127.0.0.1:${port}` };
}

/** HTTP status of `/healthcheck`. */
export async function healthStatus(weir: Weir): Promise<number> {
  const reply = await fetch(`http://127.0.0.1:${weir.httpPort}/healthcheck`);
  await reply.arrayBuffer();
  return reply.status;
}

/** A number on weir's metrics page, 0 when it is not there. Series with labels are not found. */
export async function metric(weir: Weir, name: string): Promise<number> {
  const reply = await fetch(`http://127.0.0.1:${weir.debugPort}/metrics`);
  const [, digits = "0"] = new RegExp(`^${name} (\\S+)$`, "m").exec(await reply.text()) ?? [];
  return Number(digits);
}

function ruleFiles(root: string, directory: string): RuleFiles {
  mkdirSync(directory);
  return {
    directory,
    put: (name, text) => {
      const path = join(directory, name);
      mkdirSync(dirname(path), { recursive: true });
      // Written outside of the directory first: only the finished file ever shows in it.
      const draft = join(root, "draft");
      writeFileSync(draft, text);
      renameSync(draft, path);
    },
    remove: (name) => rmSync(join(directory, name)),
  };
}
