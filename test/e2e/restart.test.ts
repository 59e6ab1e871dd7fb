// What Envoy's clients notice when weir comes late or is replaced. They should notice nothing.
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EdgeReply, type EdgeStack, startEdge } from "../support/edge-stack.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { redisSettings, startWeir, type Weir } from "../support/weir-process.ts";

const RULES = {
  "edge.yaml": "domain: edge\ndescriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: 1000000 } }]\n",
};

async function redis(): Promise<RedisServer> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return server;
}

async function weir(env: Readonly<Record<string, string>>): Promise<Weir> {
  const started = await startWeir({ rules: RULES, env });
  onTestFinished(async () => {
    await started.stop();
  });
  return started;
}

async function edge(weirPort: number, change?: (config: object) => object): Promise<EdgeStack> {
  const stack = await startEdge(weirPort, change);
  onTestFinished(() => stack.stop());
  return stack;
}

/** The parts of the bootstrap that are changed here. */
interface Bootstrap {
  readonly static_resources: {
    readonly listeners: {
      readonly name: string;
      readonly filter_chains: {
        readonly filters: {
          readonly typed_config: { readonly http_filters: { readonly typed_config: { timeout?: string } }[] };
        }[];
      }[];
    }[];
    readonly clusters: {
      readonly name: string;
      readonly load_assignment: { readonly endpoints: { readonly lb_endpoints: object[] }[] };
    }[];
  };
}

/** Adds a second weir to Envoy's cluster, and time. */
function withSecondWeir(port: number): (config: object) => object {
  return (config) => {
    const changed = structuredClone(config) as Bootstrap;
    const filter = changed.static_resources.listeners.find(({ name }) => name === "front")?.filter_chains[0]?.filters[0]
      ?.typed_config.http_filters[0]?.typed_config;
    // A slow machine must not look like a lost call.
    if (filter !== undefined) filter.timeout = "5s";
    const cluster = changed.static_resources.clusters.find(({ name }) => name === "weir");
    cluster?.load_assignment.endpoints[0]?.lb_endpoints.push({
      endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } },
    });
    return changed;
  };
}

/** Four clients that ask one request after another until they are stopped. */
function steadyLoad(stack: EdgeStack): { statuses: Map<number, number>; stop: () => Promise<void> } {
  const statuses = new Map<number, number>();
  let going = true;
  const client = async (tenant: string): Promise<void> => {
    while (going) {
      const { status } = await stack.get("/", { "x-tenant": tenant });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await pause(5);
    }
  };
  const clients = ["ann", "bob", "cleo", "dan"].map(client);
  return {
    statuses,
    stop: async () => {
      going = false;
      await Promise.all(clients);
    },
  };
}

/** How many calls Envoy made to the weir on this port. */
async function calls(stack: EdgeStack, port: number): Promise<number> {
  const [, digits] =
    new RegExp(`^weir::127\\.0\\.0\\.1:${port}::rq_total::(\\d+)$`, "m").exec(await stack.envoy.admin("/clusters")) ??
    [];
  return Number(digits);
}

describe("one of two weirs is replaced under steady load", () => {
  it("fails no call, and the new one is used", async () => {
    const store = await redis();
    const settings = { ...redisSettings(store.port), WEIR_DRAIN: "3s" };
    const first = await weir(settings);
    const second = await weir(settings);
    const stack = await edge(first.grpcPort, withSecondWeir(second.grpcPort));
    const load = steadyLoad(stack);
    await eventually("both weirs are called", async () =>
      (await calls(stack, first.grpcPort)) > 5 && (await calls(stack, second.grpcPort)) > 5 ? true : undefined,
    );

    expect(await first.stop()).toEqual({ code: 0, signal: null });
    const before = await calls(stack, first.grpcPort);
    const again = await weir({ ...settings, GRPC_PORT: `${first.grpcPort}`, WEIR_DRAIN: "0" });
    expect(again.grpcPort).toBe(first.grpcPort);
    await eventually("the new weir is called", async () =>
      (await calls(stack, first.grpcPort)) > before + 5 ? true : undefined,
    );

    await load.stop();
    expect([...load.statuses.keys()]).toEqual([200]);
    expect([await stack.answers("error"), await stack.answers("failure_mode_allowed")]).toEqual([undefined, undefined]);
    expect(await stack.answers("ok")).toBe(load.statuses.get(200));
  });
});

describe("weir is not there", () => {
  it("lets requests pass until weir starts, which Envoy notices by itself", async () => {
    const port = await freePort();
    const stack = await edge(port);
    const without = await stack.get("/", { "x-tenant": "ann" });
    expect([without.status, without.headers["x-ratelimit-limit"]]).toEqual([200, undefined]);
    expect([await stack.answers("error"), await stack.answers("failure_mode_allowed")]).toEqual([1, 1]);

    await weir({ GRPC_PORT: `${port}` });
    await eventually("Envoy finds weir healthy", async () =>
      (await stack.envoy.admin("/clusters")).includes(`weir::127.0.0.1:${port}::health_flags::healthy`)
        ? true
        : undefined,
    );
    const limited = await stack.get("/", { "x-tenant": "ann" });
    expect([limited.status, limited.headers["x-ratelimit-limit"]]).toEqual([200, "1000000, 1000000;w=86400"]);
    expect([await stack.answers("error"), await stack.answers("ok")]).toEqual([1, 1]);
  });
});

describe("Redis goes away", () => {
  it("lets requests pass, counted as errors, and limits again when Redis is back", async () => {
    const store = await redis();
    const stack = await edge((await weir(redisSettings(store.port))).grpcPort);
    const ask = (): Promise<EdgeReply> => stack.get("/", { "x-tenant": "ann" });
    expect((await ask()).headers["x-ratelimit-remaining"]).toBe("999999");

    await store.stop();
    const without = await ask();
    expect([without.status, without.headers["x-ratelimit-limit"]]).toEqual([200, undefined]);
    expect([await stack.answers("error"), await stack.answers("failure_mode_allowed")]).toEqual([1, 1]);

    const again = await startRedis([], store.port);
    onTestFinished(() => again.stop());
    const limited = await eventually("requests are limited", async () => {
      const reply = await ask();
      return reply.headers["x-ratelimit-limit"] === undefined ? undefined : reply;
    });
    expect(limited.headers["x-ratelimit-limit"]).toBe("1000000, 1000000;w=86400");
  });
});
