// Every command and every YAML block of the README is run; a command that is not known here fails the test.
// WEIR_UPDATE_GOLDEN=1 writes the table of settings into the README.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { compileRules } from "../../src/rules/compile.ts";
import { settingsTable } from "../../src/settings.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { type EdgeStack, startEdge } from "../support/edge-stack.ts";
import { sha256 } from "../support/sha256.ts";
import { clearOfWindowEnd } from "../support/window.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = readFileSync(`${ROOT}/README.md`, "utf8");

/** The blocks of one language. */
function blocks(language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms");
  return [...README.matchAll(fence)].map(([, text = ""]) => text);
}

const COMMANDS = blocks("sh").flatMap((block) => block.trim().split("\n"));

/** weir as `npm start` runs it, on free ports. */
let weir: Child;
let edge: EdgeStack;
const ports = { http: "", grpc: "", debug: "" };

beforeAll(async () => {
  const { PATH = "", HOME = "" } = process.env;
  weir = startChild("npm", ["start"], { PATH, HOME, PORT: "0", GRPC_PORT: "0", DEBUG_PORT: "0", WEIR_DRAIN: "0" });
  for (const name of ["http", "grpc", "debug"] as const) {
    const [, port = ""] = await weir.prints(new RegExp(`^weir: ${name} listening on .*:(\\d+)$`, "m"));
    ports[name] = port;
  }
  edge = await startEdge(Number(ports.grpc));
});

afterAll(async () => {
  await edge?.stop();
  weir?.kill("SIGTERM");
  await weir?.exitsWithin();
});

// Six requests must fall into one window of a minute.
beforeEach(() => clearOfWindowEnd(60, 10));

/** Runs a command as it stands, but for the ports. */
async function run(command: string): Promise<string> {
  const line = command
    .replaceAll("localhost:8080", `localhost:${ports.http}`)
    .replaceAll("localhost:6070", `localhost:${ports.debug}`)
    .replaceAll("localhost:10000", `127.0.0.1:${edge.envoy.port("front")}`);
  return (await promisify(execFile)("sh", ["-c", line], { cwd: ROOT })).stdout;
}

const SIX = "200\n200\n200\n200\n200\n429\n";

/** What each command is expected to do, by how it begins; in the README's order. */
const EXPECTATIONS: readonly (readonly [start: string, check: (command: string) => Promise<void> | void])[] = [
  ["npm ci && npm start", () => expect(weir.output()).toContain("to see a 429, run")],
  ["for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -d", expectOutput(SIX)],
  ["curl -s http://localhost:6070/rlconfig", expectOutput(/^edge\.tenant: unit=MINUTE requests_per_unit=5, /m)],
  ["curl -s http://localhost:6070/metrics", expectOutput(/^ratelimit_service_rate_limit_over_limit\{.*\} 1$/m)],
  ["docker compose up --build", expectComposeFile],
  ["for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -H", expectOutput(SIX)],
  ["curl -si -H 'x-tenant: bob'", expectOutput(/^HTTP\/1.1 429 .*^x-ratelimit-limit: 5, .*^retry-after: \d+\r$/ms)],
  ["npm run -s weir -- check config/rules", expectOutput(/ rules: OK\n$/)],
  ["npm ci && npm test", () => expect(readFileSync(`${ROOT}/.ci/run`, "utf8")).toMatch(/^npm ci && npm test$/m)],
];

function expectOutput(expected: string | RegExp): (command: string) => Promise<void> {
  return async (command) => {
    const output = await run(command);
    if (typeof expected === "string") expect(output).toBe(expected);
    else expect(output).toMatch(expected);
  };
}

/** There is no docker engine here. What the file starts is run by test/e2e; here only its address is checked. */
function expectComposeFile(): void {
  const compose = parse(readFileSync(`${ROOT}/docker-compose.yml`, "utf8"));
  expect(Object.keys(compose.services).sort()).toEqual(["envoy", "redis", "upstream", "weir"]);
  expect(compose.services.envoy.ports).toContain("10000:10000");
}

describe("the README", () => {
  it("has the commands that are tested here, in this order", () => {
    expect(COMMANDS.map((command) => EXPECTATIONS.find(([start]) => command.startsWith(start))?.[0])).toEqual(
      EXPECTATIONS.map(([start]) => start),
    );
  });

  it.each(EXPECTATIONS)("%s", async (start, check) => {
    const command = COMMANDS.find((line) => line.startsWith(start));
    if (command === undefined) throw new Error("the README does not have it");
    await check(command);
  });

  it.each(blocks("yaml").map((text, index) => [index + 1, text]))("has rules that load: block %d", (_index, text) => {
    const options = { keyPrefix: "", mergeDomains: false, sha256 };
    const outcome = compileRules([{ name: "readme.yaml", text: `${text}` }], options);
    expect(outcome).not.toHaveProperty("problems");
    expect(outcome.warnings).toEqual([]);
  });

  it("has the table of all settings", () => {
    const between = /(<!-- settings: [^\n]*-->\n\n).*?(<!-- \/settings -->)/s;
    expect(README).toMatch(between);
    const wanted = README.replace(between, (_all, before, after) => `${before}${settingsTable()}\n\n${after}`);
    if (process.env["WEIR_UPDATE_GOLDEN"] === "1") writeFileSync(`${ROOT}/README.md`, wanted);
    else expect(README).toBe(wanted);
  });
});
