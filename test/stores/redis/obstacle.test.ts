import { describe, expect, it } from "vitest";
import { obstacleOf } from "../../../src/stores/redis/obstacle.ts";

describe("a call that surely did not run", () => {
  it.each([
    ["NOSCRIPT No matching script. Please use EVAL.", { kind: "script" }],
    ["TRYAGAIN Multiple keys request during rehashing of slot", { kind: "split" }],
    ["MOVED 3999 10.0.0.7:6381", { kind: "moved", to: { host: "10.0.0.7", port: 6381 } }],
    ["MOVED 3999 ::1:6381", { kind: "moved", to: { host: "::1", port: 6381 } }],
    // A node that does not know its own name leaves the host out: it is the one that was asked.
    ["MOVED 3999 :6381", { kind: "moved", to: { host: "asked", port: 6381 } }],
    ["ASK 3999 host:6381", { kind: "ask", to: { host: "host", port: 6381 } }],
  ])("%s", (message, obstacle) => {
    expect(obstacleOf(new Error(message), "asked")).toEqual(obstacle);
  });

  it.each(["READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory"])(
    "%s",
    (message) => {
      expect(obstacleOf(new Error(message), "asked")).toEqual({ kind: "standby", reason: message });
    },
  );
});

describe("a call that may have run, or never will", () => {
  it.each([
    "",
    "Connection is closed.",
    "Reached the max retries per request limit (which is 0). Refer to maxRetriesPerRequest",
    "ERR NOSCRIPT",
    "ERR Error running script: MOVED 1 a:1",
    "CLUSTERDOWN Hash slot not served",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MASTERDOWN Link with MASTER is down",
    "UNBLOCKED",
    "MOVED",
    "MOVED 3999 nowhere",
    "moved 3999 a:1",
  ])("%j", (message) => {
    expect(obstacleOf(new Error(message), "asked")).toBeUndefined();
  });

  it("is anything that is no error", () => {
    expect(obstacleOf("NOSCRIPT", "asked")).toBeUndefined();
  });
});
