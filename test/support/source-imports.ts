// What source files import, read from their text: static, type-only, re-exported and dynamic imports alike.

export interface Import {
  /** As it stands in the file. */
  readonly specifier: string;
  /** `import type` and `export type`, which are gone when the program runs. */
  readonly typesOnly: boolean;
}

/** What a file imports, in order. */
export function importsOf(text: string): Import[] {
  const code = withoutComments(text);
  const found: (Import & { at: number })[] = [];
  for (const pattern of PATTERNS) {
    for (const { index, groups } of code.matchAll(pattern)) {
      found.push({ at: index, specifier: groups?.["specifier"] ?? "", typesOnly: groups?.["type"] !== undefined });
    }
  }
  return found.sort((a, b) => a.at - b.at).map(({ specifier, typesOnly }) => ({ specifier, typesOnly }));
}

const PATTERNS = [
  // import x from "a"; import type { x } from "a"; export * from "a"
  /(?:^|[;}\s])(?:import|export)\s(?<type>\s*type\s(?!\s*from\b))?[^"'`;()]*?\bfrom\s*(["'])(?<specifier>[^"'\n]*)\2/g,
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
