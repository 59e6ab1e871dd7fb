// What is wrong in rule files, and where. Problems keep a set of files from being used; warnings do not. Both are
// collected over all files, so that one look shows everything there is to correct.

/** A place in a rule file. Lines and columns count from 1, columns in UTF-16 units as editors do. */
export interface Place {
  /** Path relative to the directory of the rules. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface Problem extends Place {
  /** The rule: `edge > tenant=acme > path`; empty at the top of a file. */
  readonly path: string;
  /** What is wrong and what to do, in one line. */
  readonly message: string;
}

/** Collects while files are read and compiled. */
export interface Findings {
  readonly problems: Problem[];
  readonly warnings: Problem[];
}

/** One line: `edge.yaml:5:5  edge > tenant: message`. */
export function formatProblem(problem: Problem): string {
  const { path, message } = problem;
  return `${formatPlace(problem)}:${problem.column}  ${path === "" ? "" : `${path}: `}${message}`;
}

/** `edge.yaml:5`, as other messages refer to a place. */
export function formatPlace(place: Place): string {
  return `${place.file}:${place.line}`;
}

export function problemAt(place: Place, path: string, message: string): Problem {
  return { file: place.file, line: place.line, column: place.column, path, message };
}

/** In the order of files, lines and columns. What an alias (`*name`) repeats word for word is kept once. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  const unique = new Map<string, Problem>();
  for (const problem of problems) {
    const key = `${formatPlace(problem)}:${problem.column} ${problem.message}`;
    if (!unique.has(key)) unique.set(key, Object.freeze(problem));
  }
  return Object.freeze(
    [...unique.values()].sort(
      (a, b) =>
        compareText(a.file, b.file) || a.line - b.line || a.column - b.column || compareText(a.message, b.message),
    ),
  );
}

/** The order of code units, which does not depend on the machine's language. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const MAX_SHOWN = 60;

/** A text of a file as messages show it: on one line and not too long. */
export function shown(text: string): string {
  const line = JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text).slice(1, -1);
  return line.replaceAll('\\"', '"');
}
