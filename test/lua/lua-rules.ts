// The rules for Lua in Redis, each a function from a script's text to the lines that break it. They guard against
// mistakes that no test on a running Redis shows reliably: numbers that lose digits as text, ARGV compared as text.
import { type LuaToken, luaTokens } from "./lua-tokens.ts";

export interface LuaRule {
  readonly name: string;
  /** What is wrong, one line each; empty when nothing is. */
  readonly broken: (text: string) => string[];
}

const KEYWORDS = new Set(
  "and break do else elseif end false for function if in local nil not or repeat return then true until while".split(
    " ",
  ),
);
/** What a script may use without declaring it. */
const GLOBALS = new Set(["KEYS", "ARGV", "redis", "struct", "math", "tonumber", "type"]);

export const LUA_RULES: readonly LuaRule[] = [
  {
    name: "never turns a number into text: it would keep 14 digits",
    broken: (text) =>
      namesAndSymbols(text, ["tostring", "..", "format", "concat", "rep", "cjson", "cmsgpack"]).map(
        ({ line, text: token }) => `line ${line}: ${token}`,
      ),
  },
  {
    name: "reads every argument as a number, or as the name of an algorithm",
    broken: (text) =>
      luaTokens(text).flatMap((token, index, tokens) => {
        if (token.text !== "ARGV") return [];
        const [before, last] = [tokens[index - 2]?.text, tokens[index - 1]?.text];
        const asNumber = before === "tonumber" && last === "(";
        const asAlgorithm = before === "algorithms" && last === "[";
        return asNumber || asAlgorithm ? [] : [`line ${token.line}: ARGV is used as it is`];
      }),
  },
  {
    name: "uses what is declared in the script and nothing global",
    broken: undeclared,
  },
  {
    name: "asks Redis for nothing outside pcall but the time",
    broken: (text) =>
      luaTokens(text).flatMap((token, index, tokens) => {
        if (token.text !== "redis") return [];
        const [method, argument] = [tokens[index + 2]?.text, tokens[index + 4]?.text];
        if (method === "pcall" || (method === "call" && argument === "'TIME'")) return [];
        return [`line ${token.line}: redis.${method ?? ""} ${argument ?? ""}`];
      }),
  },
  {
    name: "uses no operation that differs from JavaScript or fails on long lists",
    broken: (text) =>
      namesAndSymbols(text, ["%", "fmod", "modf", "unpack", "random", "loadstring", "getfenv", "setfenv", "pairs"])
        // `struct.unpack` reads bytes and is not the `unpack` of tables.
        .filter(({ before, text: token }) => !(token === "unpack" && before === "struct"))
        .map(({ line, text: token }) => `line ${line}: ${token}`),
  },
];

/** Tokens with one of these texts, and the name that stands before the dot in front of them. */
function namesAndSymbols(text: string, wanted: readonly string[]): (LuaToken & { before: string })[] {
  const tokens = luaTokens(text);
  return tokens.flatMap((token, index) =>
    token.kind !== "string" && wanted.includes(token.text)
      ? [{ ...token, before: tokens[index - 1]?.text === "." ? (tokens[index - 2]?.text ?? "") : "" }]
      : [],
  );
}

/** Names that no local, parameter or loop of the script declares. Fields and keys of tables are no names. */
function undeclared(text: string): string[] {
  const tokens = luaTokens(text);
  const declared = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    if (token.text === "local" && tokens[index + 1]?.text !== "function") addNames(tokens, index + 1, declared);
    if (token.text === "for") addNames(tokens, index + 1, declared);
    if (token.text === "function") {
      const named = tokens[index + 1]?.kind === "name";
      if (named && tokens[index - 1]?.text === "local") declared.add(tokens[index + 1]?.text ?? "");
      addNames(tokens, index + (named ? 3 : 2), declared);
    }
  }
  return tokens.flatMap((token, index) => {
    const isField = tokens[index - 1]?.text === "." || tokens[index - 1]?.text === ":";
    const isKey =
      tokens[index + 1]?.text === "=" && ["{", ","].includes(tokens[index - 1]?.text ?? "") && inBraces(tokens, index);
    if (token.kind !== "name" || isField || isKey || KEYWORDS.has(token.text)) return [];
    if (GLOBALS.has(token.text) || declared.has(token.text)) return [];
    return [`line ${token.line}: ${token.text}`];
  });
}

/** Adds the list of names that starts at `from`. */
function addNames(tokens: readonly LuaToken[], from: number, names: Set<string>): void {
  for (let at = from; tokens[at]?.kind === "name"; at += 2) {
    names.add(tokens[at]?.text ?? "");
    if (tokens[at + 1]?.text !== ",") return;
  }
}

/** Whether a token stands directly inside the braces of a table. */
function inBraces(tokens: readonly LuaToken[], index: number): boolean {
  let depth = 0;
  for (let at = index - 1; at >= 0; at--) {
    const text = tokens[at]?.text;
    if (text === "}" || text === ")" || text === "]") depth += 1;
    else if (text === "{" || text === "(" || text === "[") {
      if (depth === 0) return text === "{";
      depth -= 1;
    }
  }
  return false;
}
