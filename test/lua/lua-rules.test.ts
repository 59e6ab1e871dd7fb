// lua/ keeps its rules, and there is one file for each algorithm.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { HANDLERS } from "../../src/core/algorithms/registry.ts";
import { readScript } from "../../src/stores/redis/scripts.ts";
import { limitSpec, MINUTE } from "../support/make-limit.ts";
import { LUA_RULES } from "./lua-rules.ts";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");
const luaFiles = (folder: string): string[] =>
  readdirSync(new URL(folder, ROOT)).filter((name) => name.endsWith(".lua"));

/** Files that are no algorithm. */
const FRAME = ["batch.lua"];
const files = [
  ...luaFiles("lua/").map((name) => `lua/${name}`),
  ...luaFiles("lua/lib/").map((name) => `lua/lib/${name}`),
];
const fileOf = (handler: string): string =>
  `${handler.replace("sliding_window", "sliding").replaceAll(/[_.]/g, "-")}.lua`;

/** For each rule, a script that breaks it on its first line. */
const BREAKERS: Readonly<Record<string, readonly string[]>> = {
  "never turns a number into text: it would keep 14 digits": [
    "local a = tostring(1)",
    "local a = 'k' .. 1",
    "local a = 1 local b = string.format('%d', a)",
  ],
  "reads every argument as a number, or as the name of an algorithm": [
    "local a = ARGV[1]",
    "if ARGV[2] == '1' then end",
    "local n = #ARGV",
  ],
  "uses what is declared in the script and nothing global": [
    "count = 1",
    "local a = count",
    "function f() end",
    "local t = { [count] = 1 }",
    "local t = { a = count }",
    "local a, b = 1, max(b, 2)",
    "for i = 1, count do end",
  ],
  "asks Redis for nothing outside pcall but the time": [
    "redis.call('GET', KEYS[1])",
    "redis.setresp(3)",
    "local a = redis.sha1hex('x')",
  ],
  "uses no operation that differs from JavaScript or fails on long lists": [
    "local a = 5 % 3",
    "local a = math.fmod(5, 3)",
    "return unpack({})",
    "local a = table.unpack({})",
  ],
};

describe("rules", () => {
  const { text } = readScript();

  for (const { name, broken } of LUA_RULES) {
    it(`the script ${name}`, () => {
      expect(broken(text)).toEqual([]);
    });

    it.each(BREAKERS[name] ?? [])(`a script that breaks it is seen: ${name}: %s`, (breaker) => {
      expect(broken(`${breaker}\n`)).toEqual([expect.stringMatching(/^line 1: /)]);
    });
  }

  it("have a script that breaks them", () => {
    expect(Object.keys(BREAKERS)).toEqual(LUA_RULES.map(({ name }) => name));
  });

  it("let comments and quoted text say anything", () => {
    for (const { broken } of LUA_RULES)
      expect(broken("-- tostring(ARGV[1]) % x ..\nlocal a = 'tostring % ..'\n")).toEqual([]);
  });
});

describe("files", () => {
  it.each(files)("%s opens with a comment that says what it is", (file) => {
    const name = file.replace(/^.*\//, "").replace(/\.lua$/, "");
    expect(read(file).split("\n")[0]).toMatch(new RegExp(`^-- ${name}: \\S`));
  });

  it.each(files)("%s ends every line without blanks and uses no tabs", (file) => {
    expect(read(file)).not.toMatch(/[ \t]\n|\t/);
    expect(read(file)).toMatch(/[^\n]\n$/);
  });

  it("are one for each algorithm, none without, and each is part of the script", () => {
    const algorithms = HANDLERS.map(({ name }) => fileOf(name));
    expect(
      luaFiles("lua/")
        .filter((name) => !FRAME.includes(name))
        .sort(),
    ).toEqual(algorithms.sort());
    for (const file of files) expect(readScript().text).toContain(read(file));
  });

  it.each(HANDLERS)("$name registers itself and reads as many numbers as its twin makes", ({ name, compile }) => {
    const registered = [
      ...read(`lua/${fileOf(name)}`).matchAll(
        /^algorithms(?:\.(\w+)|\['([\w.]+)'\]) = \{ params = (\d+), step = \w+ \}$/gm,
      ),
    ];
    const compiled = compile(
      limitSpec({
        algorithm: "gcra",
        requestsPerUnit: 5,
        periodUs: MINUTE,
        burst: 7,
        countDenied: true,
        maxDelayUs: 1,
        segments: 6,
      }),
    );
    if ("problem" in compiled) throw new Error(compiled.problem);
    expect(registered.map(([, word, quoted, params]) => [word ?? quoted, Number(params)])).toEqual([
      [name, compiled.params.length],
    ]);
  });

  it.each(HANDLERS)("$name has a twin with the same base name", ({ name }) => {
    expect(read(`src/core/algorithms/${fileOf(name).replace(".lua", ".ts")}`)).toContain(`name: "${name}"`);
  });
});
