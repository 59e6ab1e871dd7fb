// What source files import, read from their text: static, type-only, re-exported and dynamic imports alike.

/** The specifiers that a file imports, in order, as they stand there. */
export function importsOf(text: string): string[] {
  const code = withoutComments(text);
  const found: { at: number; specifier: string }[] = [];
  for (const pattern of PATTERNS) {
    for (const { index, groups } of code.matchAll(pattern)) {
      found.push({ at: index, specifier: groups?.["specifier"] ?? "" });
    }
  }
  return found.sort((a, b) => a.at - b.at).map(({ specifier }) => specifier);
}

const PATTERNS = [
  // import x from "a"; import type { x } from "a"; export * from "a"
  /(?:^|[;}\s])(?:import|export)\b[^"'`;()]*?\bfrom\s*(["'])(?<specifier>[^"'\n]*)\1/g,
  // import "a"
  /(?:^|[;}\s])import\s*(["'])(?<specifier>[^"'\n]*)\1/g,
  // import("a"), also in a type; require("a")
  /\b(?:import|require)\s*\(\s*(["'`])(?<specifier>[^"'`\n]*)\1/g,
];

/** The text with comments blanked; text in quotes stays. */
export function withoutComments(text: string): string {
  return text.replace(/(["'`])(?:\\[\s\S]|(?!\1)[^\\])*\1|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (part) =>
    part.startsWith("/") ? part.replace(/[^\n]/g, " ") : part,
  );
}
