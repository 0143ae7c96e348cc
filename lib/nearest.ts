/** The known name nearest to a mistyped one, for error texts that name the way out. */

/** Longer input is compared by its head: the cost stays bounded whatever a caller sends. */
const MAX_COMPARED = 128;

/** The name with the fewest edits (insert, delete, replace) to `name`; the first of equals; null when none is known. */
export function nearest(name: string, known: Iterable<string>): string | null {
  const wanted = name.slice(0, MAX_COMPARED).toLowerCase();
  let best: string | null = null;
  let fewest = Infinity;
  for (const candidate of known) {
    const edits = distance(wanted, candidate.slice(0, MAX_COMPARED), fewest);
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

/** Levenshtein distance by rows; stops at `enough` edits, when it can no longer win. */
function distance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough) return enough;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    if (Math.min(...next) >= enough) return enough;
    row = next;
  }
  return row[b.length]!;
}
