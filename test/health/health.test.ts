import { describe, expect, it } from "vitest";
import { Health } from "../../src/health/health.ts";

describe("Health", () => {
  it("is healthy while every component is", () => {
    const health = new Health();
    expect(health.healthy).toBe(true);
    health.report("redis", false, "connecting");
    expect(health.healthy).toBe(false);
    health.report("config", true);
    expect(health.healthy).toBe(false);
    health.report("redis", true, "connected");
    expect(health.healthy).toBe(true);
  });

  it("keeps the last report of each component, in the order of the first ones", () => {
    const health = new Health();
    health.report("redis", false, "connecting");
    health.report("config", true);
    health.report("redis", true, "connected");
    expect([...health.components]).toEqual([
      ["redis", { healthy: true, detail: "connected" }],
      ["config", { healthy: true, detail: "" }],
    ]);
  });

  it("tells listeners of changes of the whole only, until they leave", () => {
    const health = new Health();
    const told: boolean[] = [];
    const leave = health.onChange((healthy) => told.push(healthy));
    health.report("redis", true);
    health.report("redis", false, "refused");
    health.report("redis", false, "timed out");
    health.report("config", false);
    health.report("redis", true);
    expect(told).toEqual([false]);
    health.report("config", true);
    expect(told).toEqual([false, true]);
    leave();
    health.report("config", false);
    expect(told).toEqual([false, true]);
  });

  it("tells every listener, even if one of them leaves meanwhile or was added twice", () => {
    const health = new Health();
    const told: string[] = [];
    const leaveFirst = health.onChange(() => {
      told.push("first");
      leaveFirst();
    });
    const second = (): void => {
      told.push("second");
    };
    health.onChange(second);
    const leaveSecond = health.onChange(second);
    health.report("sigterm", false);
    expect(told).toEqual(["first", "second", "second"]);
    leaveSecond();
    health.report("sigterm", true);
    expect(told).toEqual(["first", "second", "second", "second"]);
  });
});
