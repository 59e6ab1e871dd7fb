// The most hits that a counter lets pass at once, when it is as good as new.
import type { AlgorithmName } from "../../src/core/limit-spec.ts";
import type { OracleLimit } from "./oracle.ts";
import { mostHits, paceOf } from "./shaper.ts";

export function capacityOf(limit: OracleLimit & { readonly algorithm: AlgorithmName }): number {
  if (limit.algorithm === "fixed_window" || limit.algorithm.startsWith("sliding_window")) return limit.requestsPerUnit;
  return limit.maxDelayUs === undefined ? limit.burst : Number(mostHits(paceOf(limit)));
}
