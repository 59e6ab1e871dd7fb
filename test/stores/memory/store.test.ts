// What only the memory store does: it answers at once, is bounded, and frees what expired.
import { afterEach, describe, expect, it, vi } from "vitest";
import { newDecision } from "../../../src/core/decision.ts";
import type { Check } from "../../../src/core/ports.ts";
import { MemoryStore } from "../../../src/stores/memory/store.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { HOUR, makeLimit, SECOND } from "../../support/make-limit.ts";

const FAST = makeLimit({ algorithm: "gcra", requestsPerUnit: 10, periodUs: SECOND });
const SLOW = makeLimit({ algorithm: "gcra", requestsPerUnit: 10, periodUs: HOUR });

function setUp(maxCounters: number) {
  const clock = new FakeClock();
  const store = new MemoryStore({ clock, maxCounters });
  const ask = (key: string, hits = 1, limit = FAST) => {
    const decision = newDecision();
    const pending: undefined = store.evaluate([{ key, limit, hits }], "each", [decision]);
    expect(pending).toBeUndefined();
    return decision;
  };
  return { clock, store, ask };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("memory", () => {
  it("is bounded, however many keys come at one instant", () => {
    const { store, ask } = setUp(100);
    for (let key = 0; key < 10_000; key++) ask(`${key}`);
    expect(store.size).toBe(100);
    expect(store.evicted).toBe(9_900);
  });

  it("does not grow over many keys that come and expire", () => {
    const { clock, store, ask } = setUp(1_000_000);
    let largest = 0;
    for (let key = 0; key < 20_000; key++) {
      ask(`${key}`);
      clock.advance(1_000);
      largest = Math.max(largest, store.size);
    }
    // A counter lives 100 ms and a second of slack: 1,100 of them, and at most as many that await the sweep.
    expect(largest).toBeLessThan(2_500);
    expect(store.evicted).toBe(0);
  });

  it("is freed by traffic on other keys", () => {
    const { clock, store, ask } = setUp(10_000);
    for (let key = 0; key < 1_000; key++) ask(`${key}`);
    clock.advance(2 * SECOND);
    for (let hit = 0; hit < 1_000; hit++) ask("busy");
    expect(store.size).toBe(1);
    expect(store.evicted).toBe(0);
  });

  it("is freed by the timer when no traffic comes", () => {
    vi.useFakeTimers();
    const { clock, store, ask } = setUp(100_000);
    store.sweepEvery(1_000);
    for (let key = 0; key < 25_000; key++) ask(`${key}`);
    clock.advance(2 * SECOND);
    vi.advanceTimersByTime(999);
    expect(store.size).toBe(25_000);
    vi.advanceTimersByTime(1);
    expect(store.size).toBeLessThan(25_000);
    vi.advanceTimersByTime(2_000);
    expect(store.size).toBe(0);
    expect(store.evicted).toBe(0);
  });

  it("does not keep the process alive", () => {
    const started = vi.spyOn(globalThis, "setInterval");
    const { store } = setUp(10);
    store.sweepEvery(1_000);
    expect(started.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([false]);
    started.mockRestore();
    store.close();
  });

  it("is left alone by the timer once the store is closed", () => {
    vi.useFakeTimers();
    const { store } = setUp(10);
    store.sweepEvery(1_000);
    store.sweepEvery(500);
    expect(vi.getTimerCount()).toBe(1);
    store.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("keeps a counter as long as it matters, and a second more", () => {
    const { clock, store, ask } = setUp(10);
    ask("a", 10);
    clock.advance(2 * SECOND - 1);
    ask("other", 0);
    expect(store.size).toBe(1);
    clock.advance(1);
    ask("other", 0);
    expect(store.size).toBe(0);
  });

  it("makes room at the cost of the counter that matters the shortest time", () => {
    const { store, ask } = setUp(3);
    ask("slow 1", 10, SLOW);
    ask("fast", 10, FAST);
    ask("slow 2", 10, SLOW);
    ask("new", 1, SLOW);
    expect(store.evicted).toBe(1);
    expect(ask("slow 1", 1, SLOW).allowed).toBe(false);
    expect(ask("slow 2", 1, SLOW).allowed).toBe(false);
  });

  it("takes nothing for looking, giving back and refusing", () => {
    const { store, ask } = setUp(10);
    ask("look", 0);
    ask("back", -5);
    ask("refused", 11);
    expect(store.size).toBe(0);
  });
});

describe("decisions", () => {
  it("must be there for every check", () => {
    const { store } = setUp(10);
    const checks: Check[] = [
      { key: "a", limit: FAST, hits: 1 },
      { key: "b", limit: FAST, hits: 1 },
    ];
    for (const mode of ["each", "spare"] as const) {
      expect(() => store.evaluate(checks, mode, [newDecision()])).toThrow("missing");
    }
  });

  it("of one request are all made at one time", () => {
    let reads = 0;
    const store = new MemoryStore({ clock: { nowUs: () => 1_000_000 * ++reads }, maxCounters: 10 });
    const decisions = [newDecision(), newDecision()];
    const checks = decisions.map((): Check => ({ key: "a", limit: FAST, hits: 10 }));
    for (const mode of ["each", "spare"] as const) {
      reads = 0;
      store.reset("a");
      store.evaluate(checks, mode, decisions);
      expect(reads).toBe(1);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false]);
    }
  });
});
