// The hash that stands for long parts of counter keys. Core takes it as an argument.
import { createHash } from "node:crypto";
import type { Sha256 } from "./core/counter-key.ts";

export const sha256: Sha256 = (bytes) => createHash("sha256").update(bytes, "latin1").digest("hex");
