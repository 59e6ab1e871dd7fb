// The recorded cases of envoyproxy/ratelimit: their form and how to read them. Each was recorded from a running peer that
// started with an empty Redis: settings, rule files, requests and the answers it gave.
import { readdirSync, readFileSync } from "node:fs";
import type { JsonValue } from "@bufbuild/protobuf";

export interface PeerCase {
  readonly name: string;
  readonly section: string;
  /** Environment; `${REDIS2_PORT}` stands for the port of a second Redis. */
  readonly settings: Readonly<Record<string, string>>;
  /** Text of the only rule file, `config.yaml`. */
  readonly config?: string;
  /** Several rule files by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Present when the first load must fail. */
  readonly configError?: { readonly logMentions: readonly string[] };
  readonly steps: readonly Step[];
}

interface Wait {
  /** Wait for the start of a second first. */
  readonly alignToSecond?: true;
  /** Wait this long first, milliseconds. */
  readonly sleepMs?: number;
}

export interface RequestStep extends Wait {
  /** A RateLimitRequest in proto3 JSON. */
  readonly request: JsonValue;
  /** How often it is sent; once when absent. */
  readonly repeat?: number;
  /** The overall code of each. */
  readonly codes?: readonly string[];
  /** The last answer. */
  readonly expect?: ExpectedAnswer;
  readonly error?: { readonly grpcCode: string; readonly messageContains: string };
}

export interface ExpectedAnswer {
  readonly overallCode: string;
  readonly statuses: readonly ExpectedStatus[];
  readonly responseHeadersToAdd?: readonly ExpectedHeader[];
  readonly dynamicMetadata?: JsonValue;
}

export interface ExpectedStatus {
  readonly code: string;
  readonly currentLimit?: { readonly requestsPerUnit?: number; readonly unit: string; readonly name?: string };
  readonly limitRemaining?: number;
  readonly durationUntilReset?: { readonly minSeconds: number; readonly maxSeconds: number };
}

export interface ExpectedHeader {
  readonly key: string;
  readonly value?: string;
  /** Lowest and highest number. */
  readonly valueRange?: readonly [number, number];
}

export interface HttpStep {
  readonly http: { readonly method: string; readonly path: string; readonly body: string };
  readonly expect: {
    readonly status: number;
    /** Empty when there is none. */
    readonly contentType: string;
    readonly body?: string;
    /** With `<duration>` in place of durations. */
    readonly json?: JsonValue;
  };
}

export interface ReloadStep {
  readonly reload: { readonly files?: Readonly<Record<string, string>>; readonly remove?: readonly string[] };
  readonly expect: { readonly configLoad: "success" | "error" };
}

export type Step = RequestStep | HttpStep | ReloadStep;

/** Why a case is not expected to pass. */
export interface KnownGap {
  readonly reason: string;
  /** `deliberate`: weir differs on purpose. `later`: what it needs is not there yet. */
  readonly kind: "deliberate" | "later";
}

const FOLDER = new URL("./peer/", import.meta.url);

/** All cases in the order of their files. */
export function peerCases(): readonly PeerCase[] {
  const names = readdirSync(FOLDER).sort();
  return names.map((name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as PeerCase);
}

/** Known gaps by case name. */
export function knownGaps(): ReadonlyMap<string, KnownGap> {
  const text = readFileSync(new URL("./known-gaps.json", import.meta.url), "utf8");
  return new Map(Object.entries(JSON.parse(text) as Record<string, KnownGap>));
}
