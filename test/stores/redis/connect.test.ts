import { describe, expect, it } from "vitest";
import { createClient, type RedisTarget, retryDelayMs } from "../../../src/stores/redis/connect.ts";
import { createSentinelClient } from "../../../src/stores/redis/sentinel.ts";
import { fc, test } from "../../support/property.ts";

describe("the wait before another attempt", () => {
  it.each([
    [1, 0, 50],
    [1, 1, 100],
    [2, 0.5, 150],
    [4, 0, 400],
    [30, 0, 1_000],
    [30, 1, 2_000],
    [1_000_000, 1, 2_000],
  ])("attempt %d with chance %d: %d ms", (attempt, random, delayMs) => {
    expect(retryDelayMs(attempt, 100, 2_000, random)).toBe(delayMs);
  });

  const chance = fc.double({ min: 0, max: 1, noNaN: true });
  test("never exceeds its bounds", [fc.integer({ min: 1, max: 10_000 }), chance], (attempt, random) => {
    const delayMs = retryDelayMs(attempt, 100, 2_000, random);
    expect(delayMs).toBeGreaterThanOrEqual(50);
    expect(delayMs).toBeLessThanOrEqual(2_000);
  });
});

const TARGET: RedisTarget = {
  type: "single",
  url: "localhost:1",
  auth: "",
  sentinelAuth: "",
  tls: undefined,
  connectTimeoutMs: 123,
  retryMinMs: 1,
  retryMaxMs: 2,
};
const TLS = { caFile: "", certFile: "", keyFile: "", skipHostnameVerification: true };
const CAREFUL = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  lazyConnect: true,
  connectTimeout: 123,
  socketTimeout: 123,
};

describe("a client", () => {
  it("never queues and never sends again, for a request would count twice", () => {
    const client = createClient({ ...TARGET, url: "redis://user:from-url@localhost:1", auth: "me:a:b", tls: TLS });
    expect(client.options).toMatchObject({
      ...CAREFUL,
      // What is set apart from the address wins over what stands in it.
      username: "me",
      password: "a:b",
      tls: { checkServerIdentity: expect.any(Function) },
    });
    expect(client.status).toBe("wait");
  });

  it("takes a password alone", () => {
    const { options } = createClient({ ...TARGET, auth: "secret" });
    expect(options.password).toBe("secret");
    expect(options.username ?? "").toBe("");
  });
});

describe("a client behind sentinels", () => {
  const sentinels = { type: "sentinel", url: "shop,a:1,[::1]:2" } as const;

  it("is as careful, and knows the sentinels and their password", () => {
    const client = createSentinelClient({ ...TARGET, ...sentinels, auth: "me:pw", sentinelAuth: "guard:s:1" });
    expect(client.options).toMatchObject({
      ...CAREFUL,
      name: "shop",
      sentinels: [
        { host: "a", port: 1 },
        { host: "::1", port: 2 },
      ],
      username: "me",
      password: "pw",
      sentinelUsername: "guard",
      sentinelPassword: "s:1",
      sentinelCommandTimeout: 123,
    });
    expect(client.status).toBe("wait");
  });

  it("speaks TLS to both", () => {
    const { options } = createSentinelClient({ ...TARGET, ...sentinels, tls: TLS });
    const same = { checkServerIdentity: expect.any(Function) };
    expect(options).toMatchObject({ tls: same, sentinelTLS: same, enableTLSForSentinelMode: true });
    const plain = createSentinelClient({ ...TARGET, ...sentinels });
    expect(plain.options).toMatchObject({ enableTLSForSentinelMode: false });
    expect(plain.options.sentinelTLS).toBeUndefined();
  });
});
