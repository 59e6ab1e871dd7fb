import { describe, expect, it } from "vitest";
import { type Decision, newDecision } from "../../../src/core/decision.ts";
import type { Check } from "../../../src/core/ports.ts";
import type { CallMode } from "../../../src/stores/redis/batch.ts";
import { askParts, type Part, partsBySlot } from "../../../src/stores/redis/parts.ts";
import { HOUR, makeLimit } from "../../support/make-limit.ts";

const LIMIT = makeLimit({ algorithm: "gcra", requestsPerUnit: 5, periodUs: HOUR });

function checksOf(...keys: readonly string[]): { checks: Check[]; decisions: Decision[] } {
  return { checks: keys.map((key) => ({ key, limit: LIMIT, hits: 1 })), decisions: keys.map(newDecision) };
}

describe("the parts of a request", () => {
  it("are its checks by slot, in order, with their own decisions", () => {
    const { checks, decisions } = checksOf("b1", "a1", "b2", "c1", "a2");
    const parts = partsBySlot(checks, decisions, (key) => key.charCodeAt(0));
    expect(parts.map(({ slot, checks: own }) => [slot, own.map(({ key }) => key)])).toEqual([
      [98, ["b1", "b2"]],
      [97, ["a1", "a2"]],
      [99, ["c1"]],
    ]);
    for (const part of parts) {
      for (const [index, check] of part.checks.entries()) {
        expect(part.decisions[index]).toBe(decisions[checks.indexOf(check)]);
      }
    }
  });
});

describe("asking for parts", () => {
  /** Asks for two parts of one check each; `passes` says for each call, in order, whether it is allowed. */
  async function asked(mode: CallMode, passes: readonly boolean[]): Promise<[CallMode[], (boolean | number)[][]]> {
    const { checks, decisions } = checksOf("a", "b");
    const parts = partsBySlot(checks, decisions, (key) => key.charCodeAt(0));
    const modes: CallMode[] = [];
    await askParts(parts, mode, async ({ decisions: [decision] }: Part, callMode) => {
      const allowed = passes[modes.length] ?? false;
      modes.push(callMode);
      if (decision !== undefined) Object.assign(decision, { allowed, remaining: modes.length });
    });
    return [modes, decisions.map(({ allowed, remaining }) => [allowed, remaining])];
  }

  it.each(["each", "spare_refused", "judge"] as const)("takes one round for %s", async (mode) => {
    expect(await asked(mode, [true, false])).toEqual([
      [mode, mode],
      [
        [true, 1],
        [false, 2],
      ],
    ]);
  });

  it("judges first to spare, and charges all where all pass", async () => {
    expect(await asked("spare", [true, true, true, true])).toEqual([
      ["judge", "judge", "spare", "spare"],
      [
        [true, 3],
        [true, 4],
      ],
    ]);
  });

  it("charges only what is refused where something is", async () => {
    expect(await asked("spare", [true, false, true, false])).toEqual([
      ["judge", "judge", "spare_refused", "spare_refused"],
      [
        [true, 3],
        [false, 4],
      ],
    ]);
  });

  it("keeps to a refusal that is none any more, because nothing was charged", async () => {
    expect(await asked("spare", [true, false, true, true])).toEqual([
      ["judge", "judge", "spare_refused", "spare_refused"],
      [
        [true, 3],
        [false, 2],
      ],
    ]);
  });

  it("refuses what others used up between the rounds", async () => {
    expect((await asked("spare", [true, true, true, false]))[1]).toEqual([
      [true, 3],
      [false, 4],
    ]);
  });

  it("takes one round to spare a single part", async () => {
    const { checks, decisions } = checksOf("a1", "a2");
    const modes: CallMode[] = [];
    await askParts(
      partsBySlot(checks, decisions, () => 7),
      "spare",
      async (_, mode) => void modes.push(mode),
    );
    expect(modes).toEqual(["spare"]);
  });

  it("fails when one part does, and charges nothing after a failed look", async () => {
    const { checks, decisions } = checksOf("a", "b");
    const modes: CallMode[] = [];
    const failing = askParts(
      partsBySlot(checks, decisions, (key) => key.charCodeAt(0)),
      "spare",
      async (_, mode) => {
        modes.push(mode);
        if (modes.length === 2) throw new Error("gone");
      },
    );
    await expect(failing).rejects.toThrow("gone");
    expect(modes).toEqual(["judge", "judge"]);
  });
});
