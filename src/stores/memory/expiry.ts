// Counters by key, bounded in number, without those that are as good as new.
//
// A sweep walks over the counters a few at a time, so that no request pays for all. When the store is full, the counter
// among the next few that would expire first makes room, as Redis does with `volatile-ttl`.
import type { Algorithm, AlgorithmState } from "../../core/algorithms/algorithm.ts";

export interface Counter {
  readonly handler: Algorithm;
  readonly state: AlgorithmState;
  expiresUs: number;
}

/** How many counters are compared to find one that makes room. */
const CANDIDATES = 16;

export class CounterMap {
  readonly #counters = new Map<string, Counter>();
  readonly #maxCounters: number;
  #cursor: Iterator<[string, Counter]>;
  #evicted = 0;

  /** @param maxCounters at least 1 */
  constructor(maxCounters: number) {
    this.#maxCounters = maxCounters;
    this.#cursor = this.#counters.entries();
  }

  get size(): number {
    return this.#counters.size;
  }

  /** How many live counters were dropped because the store was full: each lost what it had counted. */
  get evicted(): number {
    return this.#evicted;
  }

  get(key: string): Counter | undefined {
    return this.#counters.get(key);
  }

  /** Adds a counter that is not there yet, making room for it first. */
  add(key: string, counter: Counter, nowUs: number): void {
    if (this.#counters.size >= this.#maxCounters && this.sweep(CANDIDATES, nowUs) === 0) this.#evict();
    this.#counters.set(key, counter);
  }

  delete(key: string): void {
    this.#counters.delete(key);
  }

  /** Looks at the next `count` counters, drops the expired ones and returns how many those were. */
  sweep(count: number, nowUs: number): number {
    let dropped = 0;
    for (let seen = 0; seen < count; seen++) {
      const next = this.#next();
      if (next === undefined) break;
      const [key, counter] = next;
      if (counter.expiresUs <= nowUs) {
        this.#counters.delete(key);
        dropped += 1;
      }
    }
    return dropped;
  }

  #evict(): void {
    let victim: [string, Counter] | undefined;
    for (let seen = 0; seen < CANDIDATES; seen++) {
      const next = this.#next();
      if (next === undefined) break;
      if (victim === undefined || next[1].expiresUs < victim[1].expiresUs) victim = next;
    }
    if (victim !== undefined) {
      this.#counters.delete(victim[0]);
      this.#evicted += 1;
    }
  }

  /** The next counter, from the start again after the last; nothing when there are none. */
  #next(): [string, Counter] | undefined {
    let step = this.#cursor.next();
    if (step.done === true) {
      this.#cursor = this.#counters.entries();
      step = this.#cursor.next();
    }
    return step.done === true ? undefined : step.value;
  }
}
