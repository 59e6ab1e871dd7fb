// SHA-256 for tests that compile rules.
import { createHash } from "node:crypto";
import type { Sha256 } from "../../src/core/counter-key.ts";

export const sha256: Sha256 = (bytes) => createHash("sha256").update(bytes, "latin1").digest("hex");
