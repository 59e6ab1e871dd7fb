import { describe, expect, it } from "vitest";
import { addressOptions, createClient, retryDelayMs } from "../../../src/stores/redis/connect.ts";
import { fc, test } from "../../support/property.ts";

describe("addresses", () => {
  it.each([
    ["localhost:6379", { host: "localhost", port: 6379 }],
    ["10.0.0.7:1", { host: "10.0.0.7", port: 1 }],
    ["redis-master.weir.svc.cluster.local:26379", { host: "redis-master.weir.svc.cluster.local", port: 26_379 }],
    ["[::1]:6379", { host: "::1", port: 6379 }],
    ["/var/run/redis.sock", { path: "/var/run/redis.sock" }],
    ["redis://host", { host: "host", port: 6379 }],
    ["redis://host:7/3", { host: "host", port: 7, db: 3 }],
    ["redis://[fe80::1]:7", { host: "fe80::1", port: 7 }],
    ["redis://user:p%40ss@host:7", { host: "host", port: 7, username: "user", password: "p@ss" }],
    ["redis://:secret@host:7/", { host: "host", port: 7, password: "secret" }],
    ["rediss://host:7", { host: "host", port: 7, tls: {} }],
  ])("%s", (url, options) => {
    expect(addressOptions(url)).toEqual(options);
  });

  it.each([
    "",
    "host",
    "host:",
    ":6379",
    "host:port",
    "host:65536",
    "::1:6379",
    "ho st:1",
    "redis://",
    "redis://host/x",
    "http://host:1",
  ])("%j is none, and the message shows it", (url) => {
    expect(() => addressOptions(url)).toThrow(`"${url}" is no Redis address`);
  });

  it("never shows a password in a message", () => {
    expect(() => addressOptions("redis://user:secret@host:1/x")).toThrow("redis://***@host:1/x");
    expect(() => addressOptions("redis://user:s@cret@host:1/x")).not.toThrow("cret@");
  });
});

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

describe("a client", () => {
  it("never queues and never sends again, for a request would count twice", () => {
    const client = createClient({
      url: "redis://user:from-url@localhost:1",
      auth: "me:a:b",
      tls: { caFile: "", certFile: "", keyFile: "", skipHostnameVerification: true },
      connectTimeoutMs: 123,
      retryMinMs: 1,
      retryMaxMs: 2,
    });
    expect(client.options).toMatchObject({
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      lazyConnect: true,
      connectTimeout: 123,
      // What is set apart from the address wins over what stands in it.
      username: "me",
      password: "a:b",
      tls: { checkServerIdentity: expect.any(Function) },
    });
    expect(client.status).toBe("wait");
  });

  it("takes a password alone", () => {
    const target = {
      url: "localhost:1",
      auth: "secret",
      tls: undefined,
      connectTimeoutMs: 1,
      retryMinMs: 1,
      retryMaxMs: 2,
    };
    const { options } = createClient(target);
    expect(options.password).toBe("secret");
    expect(options.username ?? "").toBe("");
  });
});
