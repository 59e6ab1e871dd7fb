// Follows the answers that something gives, step by step, and fails the test at the first one that is not right.
import { expect } from "vitest";
import type { CheckMode } from "../../src/core/ports.ts";
import type { OracleAnswer } from "./oracle.ts";
import { EMPTY_WORLD, type OracleCheck, rightAnswers, type World, without, worldsAfter } from "./worlds.ts";

export class OracleFollower {
  #worlds: readonly World[] = [EMPTY_WORLD];

  /** Every course of events that explains all answers so far; at least one. */
  get worlds(): readonly World[] {
    return this.#worlds;
  }

  /** @param text what was asked, for the message */
  follow(
    checks: readonly OracleCheck[],
    mode: CheckMode,
    nowUs: number,
    answers: readonly OracleAnswer[],
    text = `at ${nowUs}`,
  ): void {
    const before = this.#worlds;
    this.#worlds = worldsAfter(before, checks, mode, nowUs, answers);
    if (this.#worlds.length > 0) return;
    expect(answers, `against the oracle: ${text}`).toEqual(rightAnswers(before, checks, mode, nowUs));
    throw new Error(`no single course of events explains the answers: ${text}`);
  }

  /** A counter expired or was reset. */
  forget(key: string): void {
    this.#worlds = this.#worlds.map((world) => without(world, key));
  }
}
