// Reads lua/ once and joins it to the single script that judges a batch of checks.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** In this order: what algorithms share, the algorithms, the loop over them. */
const FILES = [
  "lib/prelude.lua",
  "lib/level.lua",
  "fixed-window.lua",
  "gcra.lua",
  "leaky-bucket.lua",
  "leaky-bucket-shaper.lua",
  "sliding-counter.lua",
  "sliding-counter-segments.lua",
  "sliding-log.lua",
  "token-bucket.lua",
  "token-bucket-interval.lua",
  "batch.lua",
] as const;

export interface Script {
  readonly text: string;
  /** What EVALSHA calls it by. Another release's script has another name, so both can share a server. */
  readonly sha1: string;
}

export function readScript(): Script {
  const text = FILES.map((file) => readFileSync(new URL(`../../../lua/${file}`, import.meta.url), "utf8")).join("\n");
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}
