// The demonstration with the very rules that docker-compose.yml mounts: what its comment and the README promise.
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type EdgeStack, startEdge } from "../support/edge-stack.ts";
import { startWeir, type Weir } from "../support/weir-process.ts";
import { clearOfWindowEnd } from "../support/window.ts";

const RULES = new URL("../../config/rules/", import.meta.url);

let weir: Weir;
let edge: EdgeStack;

beforeAll(async () => {
  const rules = readdirSync(RULES).map((name) => [name, readFileSync(new URL(name, RULES), "utf8")] as const);
  weir = await startWeir({ rules: Object.fromEntries(rules) });
  edge = await startEdge(weir.grpcPort);
});

afterAll(async () => {
  await edge?.stop();
  await weir?.stop();
});

beforeEach(() => clearOfWindowEnd(60, 5));

/** Status, `x-ratelimit-limit` and `x-ratelimit-remaining` of so many requests. */
async function answers(times: number, path: string, tenant: string): Promise<unknown[]> {
  const seen: unknown[] = [];
  for (let sent = 0; sent < times; sent++) {
    const { status, headers } = await edge.get(path, { "x-tenant": tenant });
    seen.push([status, headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]]);
  }
  return seen;
}

it("refuses the sixth request of a minute", async () => {
  const limit = '5, 5;w=60;name="per-tenant", 1000;w=3600;name="per-address"';
  expect(await answers(6, "/", "ann")).toEqual([
    [200, limit, "4"],
    [200, limit, "3"],
    [200, limit, "2"],
    [200, limit, "1"],
    [200, limit, "0"],
    [429, limit, "0"],
  ]);
});

it("refuses the third export of a minute, and leaves the tenant its other requests", async () => {
  const limit = '2, 5;w=60;name="per-tenant", 2;w=60;name="export", 1000;w=3600;name="per-address"';
  expect(await answers(3, "/export", "bob")).toEqual([
    [200, limit, "1"],
    [200, limit, "0"],
    [429, limit, "0"],
  ]);
  expect(await answers(1, "/", "bob")).toEqual([
    [200, '5, 5;w=60;name="per-tenant", 1000;w=3600;name="per-address"', "1"],
  ]);
});

it("gives a tenant with a rule of its own more", async () => {
  expect(await answers(1, "/", "acme")).toEqual([
    [200, '50, 50;w=60;name="acme", 1000;w=3600;name="per-address"', "49"],
  ]);
});
