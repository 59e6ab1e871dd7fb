// A real Redis Cluster of three masters with a replica each, on free ports, for one test file. It is put together by
// hand, which takes seconds less than redis-cli does.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

export interface ClusterNode {
  readonly server: RedisServer;
  readonly port: number;
  readonly busPort: number;
  readonly id: string;
  /** A plain connection to this node, for tests to look and meddle with. */
  readonly admin: Redis;
}

export interface RedisCluster {
  readonly masters: readonly [ClusterNode, ClusterNode, ClusterNode];
  /** At the indexes of their masters. */
  readonly replicas: readonly ClusterNode[];
  readonly nodes: readonly ClusterNode[];
  /** What REDIS_URL would be. */
  readonly url: string;
  stop(): Promise<void>;
}

/** The last slot of each master. */
const LAST_SLOTS = [5_460, 10_922, 16_383] as const;
const ATTEMPTS = 5;
/** How long a node must be silent until the others replace it. Milliseconds. */
const NODE_TIMEOUT_MS = 1_000;

export async function startCluster(args: readonly string[] = []): Promise<RedisCluster> {
  const folder = mkdtempSync(join(tmpdir(), "weir-cluster-"));
  const started = await Promise.allSettled(
    [0, 1, 2, 3, 4, 5].map((index) => startNode(join(folder, `${index}.conf`), folder, args)),
  );
  const nodes = started.flatMap((node) => (node.status === "fulfilled" ? [node.value] : []));
  const stop = async (): Promise<void> => {
    for (const { admin, server } of nodes) {
      admin.disconnect();
      server.process.kill("SIGCONT");
      await server.stop();
    }
    rmSync(folder, { recursive: true });
  };
  try {
    for (const node of started) if (node.status === "rejected") throw node.reason;
    return { ...(await join3x2(nodes)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startNode(config: string, folder: string, args: readonly string[]): Promise<ClusterNode> {
  const { server, busPort } = await startOnTwoPorts([
    ...["--cluster-enabled", "yes", "--cluster-config-file", config, "--dir", folder],
    ...["--cluster-node-timeout", `${NODE_TIMEOUT_MS}`, "--cluster-replica-validity-factor", "0"],
    ...["--cluster-allow-replica-migration", "no"],
    // Replicas count as such once they heard from their master, which is every 10 s by default.
    ...["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"],
    ...args,
  ]);
  const admin = new Redis({ host: "127.0.0.1", port: server.port, retryStrategy: () => 50 });
  // Tests kill nodes; what that does to this connection is of no interest.
  admin.on("error", () => undefined);
  const id = String(await admin.call("CLUSTER", "MYID"));
  return { server, port: server.port, busPort, id, admin };
}

async function startOnTwoPorts(args: readonly string[]): Promise<{ server: RedisServer; busPort: number }> {
  for (let attempt = 1; ; attempt++) {
    const busPort = await freePort();
    try {
      const server = await startRedis(["--cluster-port", `${busPort}`, "--dbfilename", `${busPort}.rdb`, ...args]);
      return { server, busPort };
    } catch (error) {
      // Others look for free ports as well.
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

async function join3x2(nodes: readonly ClusterNode[]): Promise<Omit<RedisCluster, "stop">> {
  const [first, second, third, ...replicas] = nodes;
  if (first === undefined || second === undefined || third === undefined) throw new Error("there are six nodes");
  const masters = [first, second, third] as const;
  for (const [index, { admin }] of nodes.entries()) await admin.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
  for (const [index, { admin }] of masters.entries()) {
    const last = LAST_SLOTS[index] ?? 0;
    await admin.call("CLUSTER", "ADDSLOTSRANGE", (LAST_SLOTS[index - 1] ?? -1) + 1, last);
  }
  for (const { port, busPort } of nodes.slice(1)) await first.admin.call("CLUSTER", "MEET", "127.0.0.1", port, busPort);
  await everyone(nodes, "knows all others", async ({ admin }) => {
    const known = String(await admin.call("CLUSTER", "NODES"))
      .trim()
      .split("\n");
    return known.length === nodes.length && known.every((line) => !line.includes("handshake"));
  });
  for (const [index, { admin }] of replicas.entries()) {
    await admin.call("CLUSTER", "REPLICATE", masters[index]?.id ?? "");
  }
  await everyone(nodes, "has a map with all replicas, and works", async ({ admin }) => {
    const slots = await admin.cluster("SLOTS");
    const state = String(await admin.call("CLUSTER", "INFO"));
    return slots.length === 3 && slots.every((range) => range.length === 4) && state.includes("cluster_state:ok");
  });
  await everyone(replicas, "follows its master", async ({ admin }) =>
    (await admin.info("replication")).includes("master_link_status:up"),
  );
  const url = masters.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return { masters, replicas, nodes, url };
}

async function everyone(
  nodes: readonly ClusterNode[],
  what: string,
  holds: (node: ClusterNode) => Promise<boolean>,
): Promise<void> {
  await Promise.all(
    nodes.map((node) =>
      eventually(`the node ${what}`, async () => ((await holds(node)) ? true : undefined), {
        withinMs: 20_000,
        everyMs: 30,
      }),
    ),
  );
}
