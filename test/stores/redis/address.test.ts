import { describe, expect, it } from "vitest";
import {
  addressOptions,
  addressText,
  clusterSeeds,
  looseHostAndPort,
  sentinelAddresses,
} from "../../../src/stores/redis/address.ts";

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

describe("the nodes of a cluster", () => {
  it.each([
    ["a:1", [{ host: "a", port: 1 }]],
    [
      "a:1, [::1]:2 ,10.0.0.7:65535",
      [
        { host: "a", port: 1 },
        { host: "::1", port: 2 },
        { host: "10.0.0.7", port: 65_535 },
      ],
    ],
  ])("%s", (url, seeds) => {
    expect(clusterSeeds(url)).toEqual(seeds);
  });

  it.each(["", "a", "a:1,", "a:1,b", "a:65536", "/run/redis.sock", "redis://a:1", "a:1;b:2"])("are not %j", (url) => {
    expect(() => clusterSeeds(url)).toThrow("REDIS_TYPE=CLUSTER wants REDIS_URL=host:port,host:port,…");
  });

  it("are shown in messages without a password", () => {
    expect(() => clusterSeeds("redis://:secret@a:1")).toThrow('"redis://***@a:1" is no host:port');
  });
});

describe("a master and its sentinels", () => {
  it("are its name and their addresses", () => {
    expect(sentinelAddresses("shop, a:1,[::1]:2")).toEqual({
      name: "shop",
      sentinels: [
        { host: "a", port: 1 },
        { host: "::1", port: 2 },
      ],
    });
  });

  it.each([
    ["", '"" is no name of a master'],
    ["shop", '"shop" has no sentinel'],
    ["a:1,b:2", '"a:1" is no name of a master'],
    ["redis://:secret@a:1,b:2", '"redis://***@a:1" is no name of a master'],
    ["shop,a", '"a" is no host:port'],
    ["shop,", '"" is no host:port'],
  ])("are not %j", (url, problem) => {
    expect(() => sentinelAddresses(url)).toThrow(problem);
    expect(() => sentinelAddresses(url)).toThrow("REDIS_TYPE=SENTINEL wants REDIS_URL=master-name,host:port");
  });
});

describe("an address in a message of Redis", () => {
  it.each([
    ["10.0.0.7:6379", "10.0.0.7:6379"],
    ["node-3.example:1", "node-3.example:1"],
    ["::1:6379", "[::1]:6379"],
    ["[::1]:6379", "[::1]:6379"],
    ["2001:db8::7:6379", "[2001:db8::7]:6379"],
  ])("%s", (text, shown) => {
    const address = looseHostAndPort(text);
    expect(address && addressText(address)).toBe(shown);
  });

  it.each(["", ":", ":1", "a:", "a", "a:b", "a:70000"])("is not %j", (text) => {
    expect(looseHostAndPort(text)).toBeUndefined();
  });
});
