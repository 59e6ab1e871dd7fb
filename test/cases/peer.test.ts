// Every recorded case of the peer, over gRPC and HTTP, on Redis. What does not pass stands in known-gaps.json with the
// reason; a case that stands there and passes fails the run, so the list stays true.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { knownGaps, peerCases } from "./peer-case.ts";
import { runCase } from "./run-case.ts";

const cases = peerCases();
const gaps = knownGaps();

/** Tests of this file that run at once, each with a weir of its own. */
const AT_ONCE = 3;
const run = randomBytes(4).toString("hex");

let redis: RedisServer;
let secondRedis: RedisServer;

beforeAll(async () => {
  [redis, secondRedis] = await Promise.all([startRedis(), startRedis()]);
});

afterAll(async () => {
  await redis?.stop();
  await secondRedis?.stop();
});

/** Runs one case when its turn comes. */
const inTurn = turns(AT_ONCE);

describe("the peer's recorded cases", () => {
  it("has a reason for each gap, and each gap is a case", () => {
    const names = new Set(cases.map(({ name }) => name));
    expect([...gaps.keys()].filter((name) => !names.has(name))).toEqual([]);
    expect(
      [...gaps.values()].filter(({ reason, kind }) => reason === "" || !/^(deliberate|later)$/.test(kind)),
    ).toEqual([]);
  });

  for (const [index, recorded] of cases.entries()) {
    const gap = gaps.get(recorded.name);
    const play = (): Promise<void> =>
      inTurn(() =>
        runCase(
          recorded,
          { redisPort: redis.port, secondRedisPort: secondRedis.port },
          `${run}-${String(index + 1).padStart(3, "0")}:`,
        ),
      );
    if (gap === undefined) {
      it.concurrent(`${recorded.section}: ${recorded.name}`, play);
    } else {
      it.concurrent(`${recorded.section}: ${recorded.name} differs (${gap.kind}: ${gap.reason})`, async () => {
        const difference = await play().then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(difference, "it passes: take it off known-gaps.json").toBeDefined();
      });
    }
  }
});

/** Lets so many tasks run at once; the others wait in order. */
function turns(atOnce: number): <T>(task: () => Promise<T>) => Promise<T> {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
