// The direction of dependencies: the inside knows nothing of the outside, and adapters know nothing of one another.
// app.ts puts the parts together. Whoever adds a folder to src/ adds a row here.
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, withoutComments } from "./support/source-imports.ts";

interface Room {
  /** Other rooms, or single files of them. */
  readonly rooms: readonly string[];
  readonly packages?: readonly string[];
  /** Modules of Node. */
  readonly node?: readonly string[];
}

const EVERYTHING = "everything";

/** What each room of src/ may import besides itself. A file that stands in src/ itself is a room. */
const MAY_IMPORT: Readonly<Record<string, Room | typeof EVERYTHING>> = {
  // The inside.
  core: { rooms: [] },
  // Adapters.
  rules: { rooms: ["core"], packages: ["yaml"] },
  "stores/memory": { rooms: ["core"] },
  "stores/redis": { rooms: ["core"], packages: ["cluster-key-slot", "ioredis"], node: ["crypto", "fs", "tls", "util"] },
  wire: { rooms: [], node: ["crypto", "fs/promises", "http2", "net"] },
  rls: { rooms: ["core", "gen", "protobuf", "wire/door.ts"], packages: ["@bufbuild/protobuf"] },
  health: { rooms: ["gen", "protobuf", "wire/door.ts"], packages: ["@bufbuild/protobuf"] },
  http: { rooms: ["core"], node: ["http"] },
  admin: { rooms: ["core", "gen"], packages: ["@bufbuild/protobuf"], node: ["http"] },
  protobuf: { rooms: ["core"] },
  metrics: { rooms: ["core"], packages: ["prom-client"] },
  gen: { rooms: [], packages: ["@bufbuild/protobuf"] },
  // Parts of the process.
  "settings.ts": { rooms: ["core"] },
  "logger.ts": { rooms: ["settings.ts"], packages: ["pino"] },
  "sha256.ts": { rooms: ["core"], node: ["crypto"] },
  "undecided-log.ts": { rooms: ["logger.ts"] },
  "reload.ts": { rooms: ["core", "rules"], node: ["crypto", "fs", "path"] },
  // Where everything comes together.
  "app.ts": EVERYTHING,
  cli: EVERYTHING,
};

/** Words that make an answer depend on more than its arguments; core must not say them. */
const IMPURE =
  /\b(?:Date|Math\.random|performance|process|crypto|setTimeout|setInterval|setImmediate|fetch|globalThis|console)\b/;

type Sources = ReadonlyMap<string, string>;

/** The room of a file, by its path below src/. */
function roomOf(path: string): string | undefined {
  return Object.keys(MAY_IMPORT).find((room) => path === room || path.startsWith(`${room}/`));
}

/** Every import that the table does not allow, as `file imports module`. */
function forbiddenImports(sources: Sources): string[] {
  const found: string[] = [];
  for (const [file, text] of sources) {
    const room = roomOf(file);
    const allowed = room === undefined ? undefined : MAY_IMPORT[room];
    if (room === undefined || allowed === undefined) found.push(`${file} is in no room of the table`);
    else if (allowed !== EVERYTHING) {
      for (const specifier of importsOf(text)) {
        if (!mayImport(room, allowed, file, specifier)) found.push(`${file} imports ${specifier}`);
      }
    }
  }
  return found;
}

function mayImport(room: string, allowed: Room, file: string, specifier: string): boolean {
  if (specifier.startsWith(".")) {
    const target = targetOf(file, specifier);
    return [room, ...allowed.rooms].some((open) => target === open || target.startsWith(`${open}/`));
  }
  if (specifier.startsWith("node:")) return (allowed.node ?? []).includes(specifier.slice("node:".length));
  return (allowed.packages ?? []).some((name) => specifier === name || specifier.startsWith(`${name}/`));
}

/** The path below src/ that a relative specifier means. */
function targetOf(file: string, specifier: string): string {
  return posix.join(posix.dirname(file), specifier);
}

/** A circle of imports, as its files in order; nothing when there is none. Imports of types count. */
function importCircle(sources: Sources): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const specifier of importsOf(sources.get(file) ?? "")) {
      const circle = specifier.startsWith(".") ? visit(targetOf(file, specifier), [...way, file]) : undefined;
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of sources.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

/** Lines of core that depend on more than arguments. */
function impureLines(sources: Sources): string[] {
  return [...sources]
    .filter(([file]) => roomOf(file) === "core")
    .flatMap(([file, text]) =>
      withoutComments(text)
        .split("\n")
        .flatMap((line, index) => (IMPURE.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
    );
}

const ROOT = new URL("../src/", import.meta.url);
const SOURCES: Sources = new Map(
  readdirSync(ROOT, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.[jt]s$/.test(file))
    .map((file) => [file.replaceAll("\\", "/"), readFileSync(new URL(file, ROOT), "utf8")]),
);

describe("src/", () => {
  it("imports in the allowed directions only", () => {
    expect(forbiddenImports(SOURCES)).toEqual([]);
  });

  it("has no circular imports", () => {
    expect(importCircle(SOURCES)).toBeUndefined();
  });

  it("has a core whose answers depend on its arguments alone", () => {
    expect(impureLines(SOURCES)).toEqual([]);
  });

  it("imports only files that are there", () => {
    const missing = [...SOURCES].flatMap(([file, text]) =>
      importsOf(text).filter((specifier) => specifier.startsWith(".") && !SOURCES.has(targetOf(file, specifier))),
    );
    expect(missing).toEqual([]);
  });

  it("speaks of node:http2 in wire/ alone, and of Redis's client in stores/redis/ alone", () => {
    const speakOf = (name: string): string[] =>
      [...SOURCES].filter(([, text]) => importsOf(text).includes(name)).map(([file]) => roomOf(file) ?? file);
    expect(new Set(speakOf("node:http2"))).toEqual(new Set(["wire"]));
    expect(new Set(speakOf("ioredis"))).toEqual(new Set(["stores/redis"]));
  });

  it("has every room of the table", () => {
    const rooms = new Set([...SOURCES.keys()].map(roomOf));
    expect(Object.keys(MAY_IMPORT).filter((room) => !rooms.has(room))).toEqual([]);
  });
});

describe("the check", () => {
  it.each([
    ["core/limit.ts", 'import { x } from "./decision.ts";', true],
    ["core/limit.ts", 'import { x } from "../rules/parse.ts";', false],
    ["core/limit.ts", 'import type { x } from "../stores/memory/store.ts";', false],
    ["core/algorithms/gcra.ts", 'import { createHash } from "node:crypto";', false],
    ["core/limit.ts", 'import yaml from "yaml";', false],
    ["core/limit.ts", 'type X = import("../rls/service.ts").X;', false],
    ["core/limit.ts", 'const x = await import(\n  "../rls/service.ts"\n);', false],
    ["core/limit.ts", 'export * from "../rls/service.ts";', false],
    ["core/limit.ts", 'import {\n  a,\n  type b,\n} from "../rls/service.ts";', false],
    ["core/limit.ts", 'import "../app.ts";', false],
    ["core/limit.ts", 'const x = require("node:fs");', false],
    ["core/limit.ts", '// import { x } from "../rls/service.ts";\n/* import("../app.ts") */', true],
    ["stores/redis/store.ts", 'import { x } from "../memory/store.ts";', false],
    ["stores/redis/store.ts", 'import { Redis } from "ioredis";', true],
    ["stores/memory/store.ts", 'import { Redis } from "ioredis";', false],
    ["stores/memory/store.ts", 'import { x } from "node:fs";', false],
    ["rls/service.ts", 'import { x } from "../wire/door.ts";', true],
    ["rls/service.ts", 'import { x } from "../wire/listen.ts";', false],
    ["rls/service.ts", 'import { x } from "../gen/envoy/service/ratelimit/v3/rls_pb.js";', true],
    ["rls/service.ts", 'import { x } from "@bufbuild/protobuf/wkt";', true],
    ["http/server.ts", 'import { x } from "../rls/json.ts";', false],
    ["metrics/prometheus.ts", 'import { x } from "../gen/y.js";', false],
    ["wire/node-http2.ts", 'import { x } from "../core/errors.ts";', false],
    ["rules/parse.ts", 'import { x } from "../app.ts";', false],
    ["rules/parse.ts", 'import { x } from "yamlish";', false],
    ["app.ts", 'import { x } from "./wire/listen.ts"; import "node:http2";', true],
    ["cli/serve.ts", 'import { x } from "../app.ts";', true],
    ["elsewhere/x.ts", "", false],
    ["utils.ts", "", false],
  ])("of %s with %j passes: %s", (file, text, passes) => {
    expect(forbiddenImports(new Map([[file, text]])).length === 0).toBe(passes);
  });

  it("finds circles of any length, and only circles", () => {
    const circle = [
      ["core/a.ts", 'import { b } from "./b.ts";'],
      ["core/b.ts", 'import type { c } from "./algorithms/c.ts";'],
      ["core/algorithms/c.ts", 'export { a } from "../a.ts";'],
    ] as const;
    expect(importCircle(new Map(circle))).toEqual(["core/a.ts", "core/b.ts", "core/algorithms/c.ts", "core/a.ts"]);
    expect(importCircle(new Map(circle.slice(0, 2)))).toBeUndefined();
    const diamond = [
      ["a.ts", 'import "./b.ts"; import "./c.ts";'],
      ["b.ts", 'import "./d.ts";'],
      ["c.ts", 'import "./d.ts";'],
      ["d.ts", ""],
    ] as const;
    expect(importCircle(new Map(diamond))).toBeUndefined();
    expect(importCircle(new Map([["a.ts", 'import "./a.ts";']]))).toEqual(["a.ts", "a.ts"]);
  });

  it.each([
    ["const now = Date.now();", 1],
    ["const x = Math.random();", 1],
    ["const x = process.env;", 1],
    ["// Date of the rule", 0],
    ["const updated = candidate;", 0],
    ["const x = Math.floor(1.5);", 0],
  ])("of the purity of %j finds %d lines", (text, lines) => {
    expect(impureLines(new Map([["core/x.ts", text]]))).toHaveLength(lines);
    expect(impureLines(new Map([["rls/x.ts", text]]))).toEqual([]);
  });
});
