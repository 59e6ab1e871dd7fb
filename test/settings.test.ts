import { describe, expect, it } from "vitest";
import { readSettings, type Settings, settingsTable } from "../src/settings.ts";

function settings(environment: Record<string, string> = {}): Settings {
  const read = readSettings(environment);
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return read.settings;
}

function problems(environment: Record<string, string>): readonly string[] {
  const read = readSettings(environment);
  return "problems" in read ? read.problems : [];
}

describe("settings", () => {
  it("have the peer's defaults", () => {
    expect(settings()).toMatchObject({
      host: "0.0.0.0",
      port: 8080,
      grpcPort: 8081,
      debugPort: 6070,
      logLevel: "warn",
      logFormat: "text",
      runtimeRoot: "/srv/runtime_data/current",
      runtimeAppDirectory: "config",
      backendType: "auto",
      redisTimeout: 10_000,
      redisDeadline: 1_000,
      drain: 5_000,
      limitHeader: "RateLimit-Limit",
    });
  });

  it("read every form of true and false that the peer reads, and no other", () => {
    for (const word of ["1", "t", "T", "true", "TRUE", "True"])
      expect(settings({ SHADOW_MODE: word }).shadowMode).toBe(true);
    for (const word of ["0", "f", "F", "false", "FALSE", "False"])
      expect(settings({ SHADOW_MODE: word }).shadowMode).toBe(false);
    for (const word of ["", "yes", "tRUE"]) {
      expect(problems({ SHADOW_MODE: word })).toEqual([`SHADOW_MODE="${word}": must be true or false`]);
    }
  });

  it("read durations to the millisecond, rounded up", () => {
    expect(settings({ WEIR_DRAIN: "0" }).drain).toBe(0);
    expect(settings({ WEIR_DRAIN: "1m30s" }).drain).toBe(90_000);
    expect(settings({ REDIS_TIMEOUT: "150us" }).redisTimeout).toBe(1);
    expect(problems({ WEIR_DRAIN: "5" })).toEqual([
      'WEIR_DRAIN="5": must be a duration: write a number and a unit of us, ms, s, m, h or d, such as 500ms, 30s or 1h30m',
    ]);
  });

  it("take words without regard to case", () => {
    expect(settings({ LOG_LEVEL: "Warning" }).logLevel).toBe("warn");
    expect(settings({ BACKEND_TYPE: "REDIS" }).backendType).toBe("redis");
    expect(problems({ LOG_LEVEL: "loud" })[0]).toMatch(/^LOG_LEVEL="loud": must be one of panic, fatal, error/);
  });

  it("report every problem at once and name each setting", () => {
    expect(problems({ PORT: "65536", GRPC_PORT: "x", WEIR_TYPO: "1" })).toEqual([
      'PORT="65536": must be a whole number from 0 to 65535',
      'GRPC_PORT="x": must be a whole number from 0 to 65535',
      "WEIR_TYPO is no setting of weir; `weir settings` lists them all",
    ]);
  });

  it("let pass what Kubernetes sets for a service called weir", () => {
    expect(
      problems({
        WEIR_PORT: "tcp://10.0.0.1:8081",
        WEIR_SERVICE_HOST: "10.0.0.1",
        WEIR_SERVICE_PORT: "8081",
        WEIR_SERVICE_PORT_GRPC: "8081",
        WEIR_PORT_8081_TCP: "tcp://10.0.0.1:8081",
        WEIR_PORT_8081_TCP_PROTO: "tcp",
        WEIR_PORT_8081_TCP_PORT: "8081",
        WEIR_PORT_8081_TCP_ADDR: "10.0.0.1",
        WEIR_GRPC_SERVICE_HOST: "10.0.0.1",
      }),
    ).toEqual([]);
  });

  it("take durations that a timer can wait for", () => {
    expect(problems({ REDIS_TIMEOUT: "0" })).toEqual(['REDIS_TIMEOUT="0": must be longer than 0']);
    expect(problems({ WEIR_RELOAD_INTERVAL: "1000h" })).toEqual([
      'WEIR_RELOAD_INTERVAL="1000h": must be 24 days at the most',
    ]);
  });

  it("know no words but their own", () => {
    expect(problems({ LOG_LEVEL: "constructor" })[0]).toContain("must be one of");
  });

  it("stop the start where ignoring a value would be wrong", () => {
    expect(problems({ GRPC_SERVER_USE_TLS: "true" })[0]).toContain("TLS is not here yet");
    expect(problems({ REDIS_TYPE: "ring", REDIS_URL: "a:1" })[0]).toContain("must be one of single, sentinel, cluster");
    expect(problems({ REDIS_TYPE: "Cluster" })[0]).toContain("needs REDIS_URL");
    expect(problems({ REDIS_TYPE: "Cluster", REDIS_URL: "a:1" })).toEqual([]);
    expect(problems({ REDIS_TYPE: "SENTINEL", REDIS_URL: "shop,a:1" })).toEqual([]);
    expect(problems({ CONFIG_TYPE: "GRPC_XDS_SOTW" })[0]).toContain("only FILE");
    expect(problems({ BACKEND_TYPE: "memcache" })[0]).toContain("must be one of redis, memory");
    expect(problems({ REDIS_URL: "/tmp/redis.sock", REDIS_SOCKET_TYPE: "tcp" })[0]).toContain("contradicts REDIS_URL");
    expect(problems({ REDIS_URL: "redis:6379", REDIS_SOCKET_TYPE: "unix" })[0]).toContain("contradicts REDIS_URL");
    expect(problems({ CACHE_KEY_PREFIX: "a{b}" })[0]).toContain("must not hold braces");
    for (const name of [":status", "a b", "", "Content-Length", "x\r\ny"]) {
      expect(problems({ LIMIT_LIMIT_HEADER: name })[0]).toContain("must be the name of a header");
    }
  });

  it("warn about settings of the peer that have no effect yet, when they are set to something", () => {
    const warnings = (environment: Record<string, string>): readonly string[] => {
      const read = readSettings(environment);
      return "warnings" in read ? read.warnings : [];
    };
    expect(warnings({ USE_STATSD: "true", LOCAL_CACHE_SIZE_IN_BYTES: "1048576" })).toEqual([
      "LOCAL_CACHE_SIZE_IN_BYTES has no effect yet",
      "USE_STATSD has no effect yet",
    ]);
    expect(warnings({ USE_STATSD: "false", LOCAL_CACHE_SIZE_IN_BYTES: "0", RUNTIME_WATCH_ROOT: "false" })).toEqual([]);
  });

  it("bound what a sliding window log may remember", () => {
    expect(settings().slidingLogMax).toBe(1_000);
    expect(settings({ WEIR_SLIDING_LOG_MAX: "10000" }).slidingLogMax).toBe(10_000);
    expect(problems({ WEIR_SLIDING_LOG_MAX: "10001" })).toEqual([
      'WEIR_SLIDING_LOG_MAX="10001": must be a whole number from 1 to 10000',
    ]);
  });

  it("are all in the table", () => {
    expect(settingsTable()).toMatch(/^\| `WEIR_DRAIN` +\| `5s` +\| duration +\| How long/m);
    expect(settingsTable()).toMatch(/^\| `RUNTIME_WATCH_ROOT` +\| +\| +\| Accepted without effect:/m);
  });
});
