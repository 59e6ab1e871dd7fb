import { describe, expect, it } from "vitest";
import { checkServer } from "../../../src/stores/redis/server-check.ts";

/** A reply of INFO with what matters in it. */
function info(fields: Readonly<Record<string, string>>): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}:${value}`);
  return `# Server\r\nredis_mode:standalone\r\n${lines.join("\r\n")}\r\n\r\n# Memory\r\nused_memory:1\r\n`;
}

describe("a server", () => {
  it.each([
    ["6.2.0", true],
    ["6.2.14", true],
    ["7.0.15", true],
    ["7.4.1", true],
    ["8.0.0", true],
    ["10.0.1", true],
    ["6.0.16", false],
    ["5.0.14", false],
    ["6.1.240", false],
    ["2.8.24", false],
    ["", false],
    ["unknown", false],
  ])("that is Redis %j can be used: %s", (version, usable) => {
    const report = checkServer(info({ redis_version: version, maxmemory_policy: "noeviction" }));
    expect(report.refused === undefined).toBe(usable);
    if (!usable) expect(report.refused).toMatch(/too old: weir needs Redis 6\.2 or Valkey 7\.2/);
    if (version !== "") expect(report.server).toBe(`Redis ${version}`);
  });

  it.each([
    // Valkey says of itself that it is Redis 7.2.4, whatever it is.
    ["7.2.5", true],
    ["8.1.0", true],
    ["9.0.0", true],
    ["7.1.0", false],
  ])("that is Valkey %s can be used: %s", (version, usable) => {
    const report = checkServer(info({ redis_version: "7.2.4", server_name: "valkey", valkey_version: version }));
    expect(report.refused === undefined).toBe(usable);
    expect(report.server).toBe(`Valkey ${version}`);
  });

  it.each([
    ["noeviction", false],
    ["volatile-ttl", false],
    ["volatile-lru", true],
    ["volatile-lfu", true],
    ["volatile-random", true],
    ["allkeys-lru", true],
    ["allkeys-lfu", true],
    ["allkeys-random", true],
  ])("with the eviction policy %s is warned about: %s", (policy, warned) => {
    const report = checkServer(info({ redis_version: "7.0.15", maxmemory_policy: policy }));
    expect(report.refused).toBeUndefined();
    expect(report.warning !== undefined).toBe(warned);
    if (warned) expect(report.warning).toContain(policy);
  });

  it("may leave out its eviction policy", () => {
    expect(checkServer(info({ redis_version: "7.0.15" })).warning).toBeUndefined();
  });

  it("that sends bare line ends, or nothing, is read as well", () => {
    expect(checkServer("redis_version:7.0.15\nmaxmemory_policy:allkeys-lru\n").warning).toContain("allkeys-lru");
    expect(checkServer("").refused).toContain("of unknown version");
  });
});
