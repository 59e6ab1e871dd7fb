import { describe, expect, it } from "vitest";
import { answerJson, type JsonAnswer } from "../../src/rls/json.ts";
import { limiterOf } from "../support/limiter-of.ts";

const RULES = "domain: d\ndescriptors: [{ key: ü, rate_limit: { unit: day, requests_per_unit: 3 } }]";

function ask(body: string | Uint8Array): Promise<JsonAnswer> {
  return answerJson(Buffer.from(body), {
    limiter: limiterOf(RULES).limiter,
    limits: { maxDescriptors: 2, maxEntries: 2 },
    response: { headers: undefined, dynamicMetadata: false },
  });
}

const request = (descriptor: unknown): string => JSON.stringify({ domain: "d", descriptors: [descriptor] });
const entries = [{ key: "ü", value: "x" }];

describe("a question in JSON", () => {
  it("is answered in JSON, with zeros left out", async () => {
    expect(await ask(request({ entries }))).toEqual({
      overLimit: false,
      body:
        '{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":3,"unit":"DAY"},' +
        '"limitRemaining":2,"durationUntilReset":"86400s"}]}',
    });
    const over = await ask(request({ entries, hits_addend: "18446744073709551615" }));
    expect([over.overLimit, JSON.parse(over.body).statuses[0].code]).toEqual([true, "OVER_LIMIT"]);
  });

  it("may use either spelling of names, and numbers for units", async () => {
    const { body } = await ask(request({ entries, limit: { requests_per_unit: 1, unit: 7, unitMultiplier: 2 } }));
    expect(JSON.parse(body).statuses[0]).toEqual({
      code: "OK",
      currentLimit: { requestsPerUnit: 1, unit: "WEEK", unitMultiplier: 2 },
      durationUntilReset: "1209600s",
    });
  });

  it.each([
    ["no JSON", "not json", "RequestError"],
    ["nothing", "", "RequestError"],
    ["bytes that are no UTF-8", Buffer.from([0x22, 0xff, 0x22]), "RequestError"],
    ["an unknown field", '{"domain":"d","descriptor":[]}', "RequestError"],
    ["no domain", '{"descriptors":[{}]}', "RequestError"],
    ["a limit without a period", request({ entries, limit: { unit: "HOUR", unitMultiplier: 0 } }), "RequestError"],
    ["too many entries", request({ entries: [{}, {}, {}] }), "TooLargeError"],
    ["too many descriptors", '{"domain":"d","descriptors":[{},{},{}]}', "TooLargeError"],
  ])("is refused with %s", async (_what, body, name) => {
    await expect(ask(body)).rejects.toMatchObject({ name });
  });
});
