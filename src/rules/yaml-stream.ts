// The first document of a YAML text, as nodes of the `yaml` package that still lack values (see yaml-scalar.ts). Nothing
// after the first document is looked at: envoyproxy/ratelimit ignores it, even if it is broken.
import { Composer, CST, Lexer, LineCounter, type ParsedNode, Parser, type ScalarTag } from "yaml";

/** Something is wrong at `offset` of the text, in UTF-16 units. */
export interface SyntaxProblem {
  readonly offset: number;
  readonly message: string;
}

export interface FirstDocument {
  /** `undefined` when the document is empty or broken. */
  readonly root: ParsedNode | undefined;
  readonly lines: LineCounter;
  readonly problem: SyntaxProblem | undefined;
}

/** Collections in collections. Rules 64 levels deep, the longest descriptor there can be, need half of it. */
export const MAX_DEPTH = 256;

/** Tags are kept as they are; listing them here only keeps the package from complaining. */
const TAGS: ScalarTag[] = ["bool", "int", "float", "null", "timestamp", "merge", "binary"].map((name) => ({
  tag: `tag:yaml.org,2002:${name}`,
  default: false,
  resolve: (text: string) => text,
}));

export function firstDocument(text: string): FirstDocument {
  const lines = linesOf(text);
  const tokens = tokensOf(text);
  const refused = refusedToken(tokens);
  if (refused !== undefined) return { root: undefined, lines, problem: refused };
  const composer = new Composer({
    version: "1.1",
    schema: "failsafe",
    customTags: TAGS,
    resolveKnownTags: false,
    merge: false,
    uniqueKeys: false,
    strict: false,
    logLevel: "silent",
  });
  const [document] = composer.compose(tokens, true, text.length);
  const errors = [...(document?.errors ?? [])].sort((a, b) => a.pos[0] - b.pos[0]);
  const [error] = errors;
  if (error !== undefined) {
    return { root: undefined, lines, problem: { offset: error.pos[0], message: shortened(error.message) } };
  }
  return { root: document?.contents ?? undefined, lines, problem: undefined };
}

/** Counted here and not by the parser, which may stop before the end of the text. */
function linesOf(text: string): LineCounter {
  const lines = new LineCounter();
  for (let start = 0; start >= 0; start = nextLine(text, start)) lines.addNewLine(start);
  return lines;
}

/** Where the line after this one begins; -1 when there is none. */
function nextLine(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? -1 : end + 1;
}

function tokensOf(text: string): CST.Token[] {
  const lexer = new Lexer();
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const flow = flowIndentation(lexer);
  let last = "";
  let begun = false;
  for (const lexeme of lexer.lex(text)) {
    const isText = last === CST.SCALAR;
    if (begun && !isText && (lexeme === "..." || (lexeme === "---" && last !== CST.DOCUMENT))) break;
    begun ||= lexeme === CST.DOCUMENT;
    const depth = isText ? 0 : flow(lexeme);
    for (const token of parser.next(lexeme)) tokens.push(token);
    // What follows would be more of the same, without bound.
    if (depth > MAX_DEPTH || tokens.at(-1)?.type === "error") break;
    last = lexeme;
  }
  tokens.push(...parser.end());
  return tokens;
}

/**
 * Lets the lines of `[…]` and `{…}` begin in any column, as go-yaml does and YAML does not. The package has no setting
 * for it, so this reaches for the lexer's own number: the least indentation of the next line. Returns how deep in such
 * collections the lexer is.
 */
function flowIndentation(lexer: Lexer): (lexeme: string) => number {
  const state = lexer as unknown as { indentNext: number };
  let depth = 0;
  let outside = 0;
  return (lexeme) => {
    if (lexeme === "[" || lexeme === "{") {
      if (depth === 0) {
        outside = state.indentNext;
        state.indentNext = 0;
      }
      depth += 1;
    } else if ((lexeme === "]" || lexeme === "}") && depth > 0) {
      depth -= 1;
      if (depth === 0) state.indentNext = outside;
    }
    return depth;
  };
}

/** What the package would accept or choke on: another version of YAML, and nesting without bound. */
function refusedToken(tokens: readonly CST.Token[]): SyntaxProblem | undefined {
  for (const token of tokens) {
    if (token.type === "directive" && /^%YAML\s/.test(token.source) && !/^%YAML\s+1\.1(\s|$)/.test(token.source)) {
      return { offset: token.offset, message: "rule files are YAML 1.1: remove this line" };
    }
    if (token.type === "document") return tooDeep(token);
  }
  return undefined;
}

/** Without recursion, since the package's next step recurses. */
function tooDeep(document: CST.Document): SyntaxProblem | undefined {
  const open: { token: CST.Token; depth: number }[] = [];
  const visit = (token: CST.Token | null | undefined, depth: number) => {
    if (token != null && "items" in token) open.push({ token, depth });
  };
  visit(document.value, 1);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (depth > MAX_DEPTH)
      return { offset: token.offset, message: `this is nested more than ${MAX_DEPTH} levels deep` };
    if (!("items" in token)) continue;
    for (const item of token.items) {
      visit(item.key, depth + 1);
      visit(item.value, depth + 1);
    }
  }
  return undefined;
}

/** The package's message on one line, said better where it is known to mislead. */
function shortened(message: string): string {
  // Most often a first line that is indented more than the rest. go-yaml would pass over the rest in silence.
  if (message.endsWith("at node end")) return "this belongs to nothing above it: check the indentation";
  if (message.startsWith("Missing closing")) return "the quote does not end, or the next line is indented too little";
  return message.trimEnd().split("\n", 1)[0]?.replaceAll("\r", "\\r") ?? message;
}
