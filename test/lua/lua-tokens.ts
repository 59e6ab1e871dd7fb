// Splits Lua into tokens, as far as the rules on lua/ need: comments are dropped, strings stay whole.

export interface LuaToken {
  readonly kind: "name" | "number" | "string" | "symbol";
  readonly text: string;
  readonly line: number;
}

const TOKEN =
  /(?<space>\s+)|(?<comment>--\[\[[\s\S]*?\]\]|--[^\n]*)|(?<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|(?<name>[A-Za-z_]\w*)|(?<number>\d[\w.]*)|(?<symbol>\.\.\.|\.\.|[=~<>]=|[-+*/%^#<>=(){}[\];:,.])/y;

/** @throws Error at what is no Lua that weir would write */
export function luaTokens(text: string): LuaToken[] {
  const tokens: LuaToken[] = [];
  let line = 1;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (found === null) throw new Error(`line ${line}: cannot read ${JSON.stringify(text.slice(at, at + 20))}`);
    for (const kind of ["name", "number", "string", "symbol"] as const) {
      const token = found.groups?.[kind];
      if (token !== undefined) tokens.push({ kind, text: token, line });
    }
    line += found[0].split("\n").length - 1;
  }
  return tokens;
}
