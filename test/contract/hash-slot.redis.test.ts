// The slot of a counter's key on a real server that runs as a cluster: it depends on the tag alone.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { counterKey, keyHead } from "../../src/core/counter-key.ts";
import { hashTagOf, slotOf } from "../support/hash-slot.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { sha256 } from "../support/sha256.ts";

let folder: string;
let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "weir-cluster-"));
  server = await startRedis(["--cluster-enabled", "yes", "--dir", folder]);
  client = new Redis(server.port, "127.0.0.1");
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const VALUES = [
  "",
  "acme",
  "{",
  "}",
  "{}",
  "}{",
  "a}b",
  "{a}",
  "{{a}}",
  "%7b",
  "\x00",
  "\xff\xfe",
  "é",
  "~",
  "x".repeat(500),
];

describe("the slot of a key", () => {
  it.each(VALUES)("is that of its tag, for the value %j", async (value) => {
    const head = keyHead("weir:", "gcra", 1_000_000, `edge${value}`, sha256);
    const keyOf = (user: string, tagEntries: number): string =>
      counterKey(
        { head, tagEntries, sharedValues: undefined, hashTag: undefined },
        [
          { key: value, value },
          { key: "user", value: user },
        ],
        sha256,
      );
    const slots = await Promise.all(
      ["ann", "bob", value, "{other}"].map((user) => client.call("CLUSTER", "KEYSLOT", keyOf(user, 1))),
    );
    expect(new Set(slots)).toEqual(new Set([slotOf(keyOf("ann", 1))]));
    const tag = hashTagOf(keyOf("ann", 1));
    expect(await client.call("CLUSTER", "KEYSLOT", tag)).toBe(slots[0]);
    // With the user in the tag, users are spread.
    const spread = await Promise.all(
      Array.from({ length: 20 }, (_, user) => client.call("CLUSTER", "KEYSLOT", keyOf(`user${user}`, 2))),
    );
    expect(new Set(spread).size).toBeGreaterThan(10);
    expect(spread[3]).toBe(slotOf(keyOf("user3", 2)));
  });
});
