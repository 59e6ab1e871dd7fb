// "Did you mean …?": the known word that is closest to a misspelled one.

/** The word that the fewest edits separate from `written`, if they are few for its length. The first wins a tie. */
export function nearestWord(written: string, words: Iterable<string>): string | undefined {
  const target = written.toLowerCase().replaceAll("-", "_");
  let nearest: string | undefined;
  let fewest = Math.max(1, Math.floor(target.length / 3)) + 1;
  for (const word of words) {
    // Each missing or added letter is an edit of its own, so most words need no closer look.
    if (Math.abs(word.length - target.length) >= fewest) continue;
    const edits = editDistance(target, word);
    if (edits < fewest) {
      fewest = edits;
      nearest = word;
    }
  }
  return nearest;
}

/** Letters to add, remove, change or swap with their neighbour (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let edits = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, at(beforeLast, j - 2) + 1);
      }
      row.push(edits);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0;
}
