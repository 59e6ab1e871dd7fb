// The wall between core and the rest: the only interfaces that the outside implements.
import type { Decision } from "./decision.ts";
import type { ByteString } from "./descriptor.ts";
import type { Limit } from "./limit.ts";
import type { DescriptorStatus } from "./verdict.ts";

/** One question to a store: do these hits fit this counter? */
export interface Check {
  readonly limit: Limit;
  /** The counter's key, see `counter-key.ts`. */
  readonly key: string;
  /** See `hitsOf`. */
  readonly hits: number;
  /**
   * What it means for an atomic request that this check is refused: 0 refuses it, -1 (a shadow rule) does nothing, and a
   * positive number is that of a quota descriptor: the request is refused when all of its quota descriptors are.
   * Absent means 0.
   */
  readonly role?: number;
}

/**
 * How the checks of one request go together.
 * - `each`: every check is judged and charged alone, in order (envoyproxy/ratelimit's way).
 * - `spare`: if any check would be refused, the others are answered as for 0 hits and charge nothing
 *   (`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`).
 * - `spare_refused`: the same, where a limit that no store has to be asked about has refused already.
 * - `atomic`: nothing is charged unless all checks together leave the request unrefused. Then those that have room are.
 *   Checks of one counter are added up before they are judged. Refunds take place in any case, before all else.
 * - `atomic_refused`: the same, where a limit that no store has to be asked about has refused already.
 * - `atomic_quota_passes`: the same, where a quota descriptor that no store has to be asked about passes.
 */
export type CheckMode = "each" | "spare" | "spare_refused" | "atomic" | "atomic_refused" | "atomic_quota_passes";

export interface Store {
  /**
   * Answers all checks of one request together and fills `decisions` at the same indexes.
   * Returns nothing when that is done at once, else a promise.
   *
   * @param budgetMs how long the answer is of use, in milliseconds from now; `Infinity` for no limit
   * @throws StoreError (thrown or as the rejection) when the store could not decide
   */
  evaluate(
    checks: readonly Check[],
    mode: CheckMode,
    decisions: readonly Decision[],
    budgetMs: number,
  ): undefined | Promise<void>;
  /** Forgets a counter. */
  reset(key: string): undefined | Promise<void>;
  close(): undefined | Promise<void>;
}

export interface Clock {
  /** Integer microseconds since 1970. May step back. */
  nowUs(): number;
}

/** Is told about every answered request. Must be cheap and must not throw. */
export interface Observer {
  /** Once for each descriptor that a limit applied to. */
  decided(domain: ByteString, status: DescriptorStatus, hits: number): void;
  /** A request named a domain without rules; once for each of its descriptors. */
  domainNotFound(domain: ByteString): void;
  /** A refusal was turned into a pass by the server's shadow mode. */
  shadowed(): void;
}
