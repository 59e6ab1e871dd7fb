import { describe, expect, it } from "vitest";
import { readSlots } from "../../../src/stores/redis/slot-map.ts";

describe("the reply of CLUSTER SLOTS", () => {
  it("names the master of each range", () => {
    const reply = [
      [0, 5460, ["10.0.0.1", 7000, "id1", []], ["10.0.0.4", 7003, "id4", []]],
      [5461, 16_383, ["node-2.example", 7001, "id2", ["ip", "10.0.0.2"]]],
    ];
    expect(readSlots(reply, "asked")).toEqual([
      { first: 0, last: 5460, master: { host: "10.0.0.1", port: 7000 } },
      { first: 5461, last: 16_383, master: { host: "node-2.example", port: 7001 } },
    ]);
  });

  it.each([null, ""])("takes the host that was asked for a host of %j", (host) => {
    expect(readSlots([[1, 1, [host, 7000, "id"]]], "asked")).toEqual([
      { first: 1, last: 1, master: { host: "asked", port: 7000 } },
    ]);
  });

  it("leaves out a master whose name is not known, and may be empty", () => {
    expect(readSlots([[1, 1, ["?", 7000, "id"]]], "asked")).toEqual([]);
    expect(readSlots([], "asked")).toEqual([]);
  });

  it.each([
    null,
    "OK",
    [7],
    [[0, 1]],
    [[0, 16_384, ["a", 1]]],
    [[-1, 0, ["a", 1]]],
    [["0", 1, ["a", 1]]],
    [[0, 1, ["a", "1"]]],
  ])("is not %j", (reply) => {
    expect(() => readSlots(reply, "asked")).toThrow("CLUSTER SLOTS was answered with");
  });
});
