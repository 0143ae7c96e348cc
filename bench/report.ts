/** Prints what was measured: a JSON line for machines as each thing is known, and a table for people at the end. */
import type { Line } from "./measures.ts";

export const say = (fact: Record<string, unknown>): void => console.log(JSON.stringify(fact));

/** Prints the table; returns the names of the targets that were missed. */
export function report(lines: readonly Line[]): string[] {
  const rows = lines.map((line) => [
    line.name,
    `${range(line.value)} ${line.unit}`,
    line.ratio === null ? "" : range(line.ratio),
    line.target,
    line.met === null ? "" : line.met ? "yes" : "NO",
  ]);
  console.log("\n" + table([["measure", "median [min to max]", "ratio", "target", "met"], ...rows]));
  const missed = lines.filter((line) => line.met === false).map((line) => line.name);
  for (const name of missed) console.log(`missed: ${name}`);
  return missed;
}

/** Columns padded to their widest cell, two spaces apart. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd()).join(
    "\n",
  );
}

function range({ median, min, max }: Line["value"]): string {
  return min === max ? figure(median) : `${figure(median)} [${figure(min)} to ${figure(max)}]`;
}

/** Three figures that count, thousands apart. */
function figure(x: number): string {
  if (Math.abs(x) >= 100) return Math.round(x).toLocaleString("en-US");
  return x.toFixed(Math.abs(x) >= 10 ? 1 : 2);
}
