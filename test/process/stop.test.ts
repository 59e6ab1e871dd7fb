// How the real process ends: on which signals, in what order, and what it still answers meanwhile.
import { connect as connectTcp } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../support/eventually.ts";
import { startRedis } from "../support/redis-server.ts";
import { connectRls, type RlsClient } from "../support/rls-client.ts";
import { healthStatus, redisSettings, startWeir, type Weir, type WeirOptions } from "../support/weir-process.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors: [{ key: ip, rate_limit: { unit: day, requests_per_unit: 2 } }]\n",
};
const REQUEST = { domain: "shop", descriptors: [{ entries: [{ key: "ip", value: "192.0.2.1" }] }] };
const GONE = { code: 0, signal: null };

async function start(options: WeirOptions = {}): Promise<Weir> {
  const weir = await startWeir({ rules: RULES, ...options });
  onTestFinished(async () => {
    weir.child.kill("SIGKILL");
    await weir.child.exit;
  });
  return weir;
}

function connect(weir: Weir): RlsClient {
  const client = connectRls(weir.grpcPort);
  onTestFinished(() => client.close());
  return client;
}

/** Whether somebody accepts connections on this port. */
function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, "127.0.0.1");
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

describe("signals", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("%s ends it with exit code 0", async (signal) => {
    const { child } = await start();
    child.kill(signal);
    expect(await child.exitsWithin()).toEqual(GONE);
  });

  it("a second signal ends it at once", async () => {
    const weir = await start({ env: { WEIR_DRAIN: "60s" } });
    weir.child.kill("SIGTERM");
    await eventually("it drains", async () => ((await healthStatus(weir)) === 500 ? true : undefined));
    weir.child.kill("SIGTERM");
    await weir.child.exitsWithin(2000);
  });
});

describe("draining", () => {
  it("turns health off and goes on serving, new connections too, until the drain time is over", async () => {
    const weir = await start({ env: { WEIR_DRAIN: "1s" } });
    const before = connect(weir);
    expect((await before.shouldRateLimit(REQUEST)).overallCode).toBe("OK");
    weir.child.kill("SIGTERM");
    await eventually("health is off", async () =>
      (await before.health("ratelimit")) === "NOT_SERVING" ? true : undefined,
    );
    expect(await healthStatus(weir)).toBe(500);
    expect((await before.shouldRateLimit(REQUEST)).overallCode).toBe("OK");
    expect((await connect(weir).shouldRateLimit(REQUEST)).overallCode).toBe("OVER_LIMIT");
    expect(await weir.child.exitsWithin()).toEqual(GONE);
  });

  it("tells those who watch its health, and their open streams do not hold it", async () => {
    const weir = await start({ env: { WEIR_DRAIN: "300ms" } });
    const watch = connect(weir).watchHealth("ratelimit");
    await eventually("the first state", () => (watch.states.length > 0 ? true : undefined));
    const begin = performance.now();
    weir.child.kill("SIGTERM");
    await eventually("the second state", () => (watch.states.length > 1 ? true : undefined));
    process.stdout.write(`${Math.round(performance.now() - begin)} ms from SIGTERM to NOT_SERVING\n`);
    expect(await weir.child.exitsWithin(3000)).toEqual(GONE);
    await watch.end;
    expect(watch.states).toEqual(["SERVING", "NOT_SERVING"]);
  });

  it("finishes calls that run", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const weir = await start({ env: { ...redisSettings(redis.port), WEIR_REDIS_DEADLINE: "20s" } });
    const client = connect(weir);
    expect((await client.shouldRateLimit(REQUEST)).overallCode).toBe("OK");

    redis.process.kill("SIGSTOP");
    const running = Promise.allSettled([client.shouldRateLimit(REQUEST)]);
    // The health answer comes on the same connection after the call, so weir has the call by then.
    expect(await client.health("ratelimit")).toBe("SERVING");
    weir.child.kill("SIGTERM");
    await eventually("it takes no new connections", async () => ((await isOpen(weir.grpcPort)) ? undefined : true));
    redis.process.kill("SIGCONT");

    // The second of two passes and leaves nothing.
    expect(await running).toMatchObject([{ status: "fulfilled", value: { statuses: [{ code: "OK" }] } }]);
    expect(await running).not.toHaveProperty("0.value.statuses.0.limitRemaining");
    expect(await weir.child.exitsWithin()).toEqual(GONE);
  });

  it("opens its ports again when it is started at once after", async () => {
    const weir = await start();
    await connect(weir).shouldRateLimit(REQUEST);
    await weir.stop();
    const { httpPort, grpcPort, debugPort } = weir;
    const ports = { PORT: `${httpPort}`, GRPC_PORT: `${grpcPort}`, DEBUG_PORT: `${debugPort}` };
    expect(await start({ env: ports })).toMatchObject({ httpPort, grpcPort, debugPort });
  });
});
