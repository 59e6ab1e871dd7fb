// A real master with two replicas and three sentinels that watch it, on free ports, for one test file.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Child, startChild } from "./child-process.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

export const MASTER_NAME = "shop";

export interface Sentinel {
  readonly port: number;
  readonly child: Child;
}

export interface SentinelSet {
  readonly master: RedisServer;
  readonly replicas: readonly RedisServer[];
  readonly sentinels: readonly Sentinel[];
  /** What REDIS_URL would be. */
  readonly url: string;
  stop(): Promise<void>;
}

export interface SentinelSetup {
  /** Password of the sentinels; none when absent. */
  readonly sentinelPassword?: string;
}

const ATTEMPTS = 5;
/** How long the master must be silent until it is replaced. Milliseconds. */
const DOWN_AFTER_MS = 700;

export async function startSentinels({ sentinelPassword }: SentinelSetup = {}): Promise<SentinelSet> {
  const folder = mkdtempSync(join(tmpdir(), "weir-sentinel-"));
  const master = await startRedis(["--dir", folder]);
  const follow = ["--dir", folder, "--replicaof", "127.0.0.1", `${master.port}`, "--repl-diskless-sync-delay", "0"];
  const replicas = await Promise.all([startRedis(follow), startRedis(follow)]);
  await Promise.all(replicas.map((replica) => infoOf(replica.port, "", "master_link_status:up")));
  const sentinels = await Promise.all(
    [0, 1, 2].map((index) => startSentinel(join(folder, `${index}.conf`), master.port, sentinelPassword)),
  );
  const stop = async (): Promise<void> => {
    for (const { child } of sentinels) {
      child.kill("SIGKILL");
      await child.exit;
    }
    for (const server of [master, ...replicas]) {
      server.process.kill("SIGCONT");
      await server.stop();
    }
    rmSync(folder, { recursive: true });
  };
  try {
    // Until each knows the two others and both replicas, they would agree on no failover.
    const known = /slaves=2,sentinels=3/;
    await Promise.all(sentinels.map(({ port }) => infoOf(port, sentinelPassword ?? "", known)));
  } catch (error) {
    await stop();
    throw error;
  }
  const url = [MASTER_NAME, ...sentinels.map(({ port }) => `127.0.0.1:${port}`)].join(",");
  return { master, replicas, sentinels, url, stop };
}

async function startSentinel(config: string, masterPort: number, password: string | undefined): Promise<Sentinel> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const lines = [
      `port ${port}`,
      "bind 127.0.0.1",
      `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${MASTER_NAME} 3000`,
      ...(password === undefined ? [] : [`requirepass ${password}`, `sentinel sentinel-pass ${password}`]),
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    const child = startChild("redis-server", [config, "--sentinel"], { PATH: process.env["PATH"] ?? "" });
    try {
      await child.prints(/Sentinel ID is/);
      return { port, child };
    } catch (error) {
      // Others look for free ports as well.
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

/** Waits until a server's INFO says something. */
async function infoOf(port: number, password: string, wanted: string | RegExp): Promise<void> {
  const client = new Redis({ host: "127.0.0.1", port, password, retryStrategy: () => 50 });
  client.on("error", () => undefined);
  try {
    await eventually(
      `the server at ${port} says ${wanted}`,
      async () => ((await client.info()).match(wanted) === null ? undefined : true),
      { withinMs: 20_000, everyMs: 30 },
    );
  } finally {
    client.disconnect();
  }
}
