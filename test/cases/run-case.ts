// Plays one recorded case against a weir of its own and throws at the first difference.
//
// Not compared: `redis` and `redisPerSecond`, which show the peer's key layout, and `stats`, which needs a statsd sink.
// The peer answers gRPC UNKNOWN where weir says INVALID_ARGUMENT or UNAVAILABLE; that is one difference for all cases.
import { request as httpRequest } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { status as grpcStatus, type ServiceError } from "@grpc/grpc-js";
import { expect } from "vitest";
import { UNIT_SECONDS, type Unit } from "../../src/core/limit-spec.ts";
import { eventually } from "../support/eventually.ts";
import { connectRls, type RlsAnswer, type RlsClient, type RlsStatus } from "../support/rls-client.ts";
import { launchWeir, metric, redisSettings, type Weir } from "../support/weir-process.ts";
import { clearOfWindowEnd, secondsLeft } from "../support/window.ts";
import type { ExpectedAnswer, ExpectedStatus, HttpStep, PeerCase, ReloadStep, RequestStep, Step } from "./peer-case.ts";

/** Ports of the Redis servers that the cases share. */
export interface Stores {
  readonly redisPort: number;
  /** For limits per second, where a case wants that. */
  readonly secondRedisPort: number;
}

/** Runs a case. Its counters have `prefix` before their keys, so that cases meet neither one another nor old runs. */
export async function runCase(recorded: PeerCase, stores: Stores, prefix: string): Promise<void> {
  await clearOfWindowEnd(3600, 10); // a case must stay within its windows, and longer ones end with an hour
  const settings: Record<string, string> = {
    ...redisSettings(stores.redisPort),
    // As at the recording.
    RUNTIME_WATCH_ROOT: "false",
    ...recorded.settings,
    CACHE_KEY_PREFIX: prefix + (recorded.settings["CACHE_KEY_PREFIX"] ?? ""),
  };
  for (const [name, value] of Object.entries(settings)) {
    settings[name] = value.replace("${REDIS2_PORT}", `${stores.secondRedisPort}`);
  }
  const rules = recorded.files ?? (recorded.config === undefined ? {} : { "config.yaml": recorded.config });
  const starting = launchWeir({ env: settings, rules });
  let client: RlsClient | undefined;
  try {
    // The peer opens its ports when it has Redis, weir at once: so wait until it is healthy, unless it must not be.
    const unhealthy = recorded.configError !== undefined && "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED" in settings;
    const weir = await (unhealthy ? starting.listening() : starting.serving());
    await firstLoad(weir, recorded);
    client = connectRls(weir.grpcPort);
    for (const [index, step] of recorded.steps.entries()) {
      await play(step, weir, client).catch((error: unknown) => {
        throw new Error(`step ${index + 1}: ${error instanceof Error ? error.message : error}`, { cause: error });
      });
    }
  } finally {
    client?.close();
    starting.child.kill("SIGKILL");
    await starting.child.exit;
  }
}

/** Waits until the rules were read, well or badly, and holds the outcome against the case. */
async function firstLoad(weir: Weir, { configError }: PeerCase): Promise<void> {
  const expected = configError === undefined ? { success: 1, error: 0 } : { success: 0, error: 1 };
  const loads = await eventually("the first load", async () => {
    const seen = await loadCounts(weir);
    return seen.success + seen.error > 0 ? seen : undefined;
  });
  expect(loads).toEqual(expected);
  if (configError === undefined) return;
  const lines = weir.child.output().split("\n");
  const { logMentions } = configError;
  if (!lines.some((line) => logMentions.every((word) => line.includes(word)))) {
    throw new Error(`no line of the log mentions ${logMentions.join(" and ")}:\n${weir.child.output()}`);
  }
}

async function play(step: Step, weir: Weir, client: RlsClient): Promise<void> {
  if ("http" in step) return playHttp(step, weir);
  if ("reload" in step) return playReload(step, weir);
  if (step.sleepMs !== undefined) await pause(step.sleepMs);
  if (step.alignToSecond === true) await pause(1005 - (Date.now() % 1000));
  return playRequest(step, client);
}

async function playRequest({ request, repeat = 1, codes, expect: expected, error }: RequestStep, client: RlsClient) {
  if (error !== undefined) {
    const failure = await client.shouldRateLimit(request).then(
      (answer) => expect.fail(`answered ${JSON.stringify(answer)}`),
      (reason: ServiceError) => reason,
    );
    const wanted = error.messageContains === "configuration" ? "UNAVAILABLE" : "INVALID_ARGUMENT";
    expect(grpcStatus[failure.code]).toBe(error.grpcCode === "UNKNOWN" ? wanted : error.grpcCode);
    expect(failure.details.toLowerCase()).toContain(error.messageContains);
    return;
  }
  const seen: string[] = [];
  for (let sent = 1; sent <= repeat; sent++) {
    const fromSecond = nowSecond();
    const answer = await client.shouldRateLimit(request);
    seen.push(answer.overallCode);
    if (sent === repeat && expected !== undefined) compare(answer, expected, fromSecond, nowSecond());
  }
  if (codes !== undefined) expect(seen).toEqual(codes);
}

/** Equal to the last field, except for the time left, which must be that of a window aligned to 1970. */
function compare(answer: RlsAnswer, expected: ExpectedAnswer, fromSecond: number, toSecond: number): void {
  const shown = {
    overallCode: answer.overallCode,
    statuses: answer.statuses.map(withoutTime),
    headers: (answer.responseHeadersToAdd ?? []).map(({ key, value }, index) => {
      const range = expected.responseHeadersToAdd?.[index]?.valueRange;
      return { key, value: range === undefined ? value : inRange(value, range) };
    }),
    dynamicMetadata: answer.dynamicMetadata,
  };
  expect(shown).toEqual({
    overallCode: expected.overallCode,
    statuses: expected.statuses.map(withoutTime),
    headers: (expected.responseHeadersToAdd ?? []).map(({ key, value }) => ({ key, value: value ?? "in range" })),
    dynamicMetadata: expected.dynamicMetadata,
  });
  const known = ["overallCode", "statuses", "responseHeadersToAdd", "dynamicMetadata"];
  expect(Object.keys(answer).filter((field) => !known.includes(field))).toEqual([]);
  for (const { currentLimit, durationUntilReset } of answer.statuses) {
    if (currentLimit === undefined) continue;
    const periodSeconds = UNIT_SECONDS[(currentLimit.unit ?? "").toLowerCase() as Unit];
    const left = secondsLeft(periodSeconds, fromSecond, toSecond).map((seconds) => `${seconds}s`);
    expect(left).toContain(durationUntilReset);
  }
}

function withoutTime({ durationUntilReset, ...status }: RlsStatus | ExpectedStatus): object {
  return { limitRemaining: 0, ...status, hasDuration: durationUntilReset !== undefined };
}

function inRange(value: string, [low, high]: readonly [number, number]): string {
  return /^\d+$/.test(value) && Number(value) >= low && Number(value) <= high ? "in range" : value;
}

async function playHttp({ http, expect: expected }: HttpStep, weir: Weir): Promise<void> {
  const { status, contentType, text } = await send(weir.httpPort, http);
  expect({ status, contentType }).toEqual({ status: expected.status, contentType: expected.contentType });
  if (expected.body !== undefined) expect(text).toBe(expected.body);
  if (expected.json !== undefined) {
    const hideDuration = (_: string, value: unknown): unknown =>
      typeof value === "string" && /^\d+s$/.test(value) ? "<duration>" : value;
    expect(JSON.parse(text, hideDuration)).toEqual(expected.json);
  }
}

/** Unlike `fetch`, this sends a body with a GET. */
function send(
  port: number,
  { method, path, body }: HttpStep["http"],
): Promise<{ status: number; contentType: string; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { "content-length": Buffer.byteLength(body) };
    const outgoing = httpRequest({ host: "127.0.0.1", port, method, path, headers, agent: false }, (reply) => {
      let text = "";
      reply.setEncoding("utf8");
      reply.on("data", (piece: string) => {
        text += piece;
      });
      reply.once("error", reject);
      reply.once("end", () =>
        resolve({ status: reply.statusCode ?? 0, contentType: reply.headers["content-type"] ?? "", text }),
      );
    });
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

/** Changes the rule files and waits for the load. Some systems report one change twice, so a count may move by more. */
async function playReload({ reload, expect: expected }: ReloadStep, weir: Weir): Promise<void> {
  const before = await loadCounts(weir);
  for (const [name, text] of Object.entries(reload.files ?? {})) weir.rules.put(name, text);
  for (const name of reload.remove ?? []) weir.rules.remove(name);
  const { configLoad } = expected;
  await eventually(`a load with ${configLoad}`, async () =>
    (await loadCounts(weir))[configLoad] > before[configLoad] ? true : undefined,
  );
  const other = configLoad === "success" ? "error" : "success";
  expect((await loadCounts(weir))[other]).toBe(before[other]);
}

async function loadCounts(weir: Weir): Promise<{ success: number; error: number }> {
  return {
    success: await metric(weir, "ratelimit_service_config_load_success"),
    error: await metric(weir, "ratelimit_service_config_load_error"),
  };
}

function nowSecond(): number {
  return Math.floor(Date.now() / 1000);
}
