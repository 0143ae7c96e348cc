/** The mutants of a file: each is one small change that a test should notice. */
import { codeOf } from "./scan.ts";

export interface Mutant {
  /** Offsets into the file, and what stands there instead. */
  from: number;
  to: number;
  becomes: string;
  /** 1-based. */
  line: number;
  /** The line before and after, trimmed: how `justified.ts` names a mutant. */
  was: string;
  is: string;
}

/** One kind of change: where it applies, and its replacements of the whole match. */
interface Rule {
  at: RegExp;
  becomes: (match: RegExpExecArray) => string[];
}

const swap = (pairs: Record<string, string[]>): Rule => ({
  at: new RegExp(
    `(?<= )(?:${Object.keys(pairs).map((op) => op.replace(/[|*+?^$&%/]/g, "\\$&")).join("|")})(?= |\\n)`,
    "g",
  ),
  becomes: ([operator]) => pairs[operator]!,
});
const words = (pairs: Record<string, string>): Rule => ({
  at: new RegExp(
    `(?<![\\w$])(?:${Object.keys(pairs).map((w) => w.replace(".", "\\.")).join("|")})(?![\\w$:])`,
    "g",
  ),
  becomes: ([word]) => [pairs[word]!],
});

const RULES: readonly Rule[] = [
  swap({
    "===": ["!=="],
    "!==": ["==="],
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["*"],
    "&": ["|"],
    "<<": [">>"],
    ">>>": [">>"],
    "^": ["&"],
    "+=": ["-="],
    "-=": ["+="],
  }),
  words({
    "true": "false",
    "false": "true",
    "Math.min": "Math.max",
    "Math.max": "Math.min",
    "Math.floor": "Math.ceil",
    "Math.ceil": "Math.floor",
    "Math.round": "Math.trunc",
  }),
  {
    at: /\.(every|some|startsWith|endsWith)(?=\()/g,
    becomes: ([, name]) => [
      "." +
      ({ every: "some", some: "every", startsWith: "endsWith", endsWith: "startsWith" } as Record<
        string,
        string
      >)[name!]!,
    ],
  },
  {
    at: /(?<![\w$.#"])(?:0x[\da-f_]+|\d[\d_]*)(?![\w$.])/gi,
    becomes: ([n]) => [String(Number(n!.replaceAll("_", "")) + 1)],
  },
  { at: /!(?=[\w($])(?<![\w)\]]!)/g, becomes: () => [""] },
  { at: /(?<=\bif )\((?=.*\) )/g, becomes: () => ["(true || ", "(false && "] },
  { at: /\+\+|--/g, becomes: ([op]) => [op === "++" ? "--" : "++"] },
  // Statements of one line, taken out: calls, assignments, throws, early ends.
  {
    at:
      /(?<=^ +(?:if \(.*\) )?)(?:(?:await |void )?(?!return|const|let|export|function|case|default)[\w.#$!\]["]+(?:\(.*\)| [+-]?= .*|\+\+|--);)$/gm,
    becomes: () => [";"],
  },
  { at: /(?<=^ +(?:if \(.*\) )?)(?:throw .*;|break;|continue;)$/gm, becomes: () => [";"] },
  { at: /(?<=^ +if \(.*\) )return\b.*;$/gm, becomes: () => [";"] },
];

/** What a table holds as text: a network's length, and one entry of a list that has a line of its own. */
const TEXT_RULES: readonly Rule[] = [
  { at: /(?<="[\da-f.:]+\/)\d+(?=")/g, becomes: ([n]) => [String(Number(n) - 1), String(Number(n) + 1)] },
  { at: /^ +(?:\["[^"\n]+", "[^"\n]+"\]|"[a-z0-9]+"),(?: \/\/.*)?$/gm, becomes: () => [""] },
];

/** Every mutant of a text, in order of place. */
export function mutantsOf(text: string): Mutant[] {
  const code = codeOf(text);
  const found = new Map<string, Mutant>();
  const all = [
    ...RULES.map((rule) => ({ ...rule, over: code })),
    ...TEXT_RULES.map((rule) => ({ ...rule, over: text })),
  ];
  for (const { at, becomes, over } of all) {
    for (const match of over.matchAll(at)) {
      const from = match.index, to = from + match[0].length;
      for (const replacement of becomes(match as RegExpExecArray)) {
        const mutant = mutantAt(text, from, to, replacement);
        if (mutant !== null) found.set(`${from} ${to} ${replacement}`, mutant);
      }
    }
  }
  return [...found.values()].sort((a, b) => a.from - b.from);
}

function mutantAt(text: string, from: number, to: number, replacement: string): Mutant | null {
  let [begins, ends, becomes] = [from, to, replacement];
  if (replacement.endsWith("|| ") || replacement.endsWith("&& ")) {
    // A condition: all of it up to its closing bracket counts, not its first operand.
    const close = closing(text, from);
    if (close === -1) return null;
    ends = close;
    becomes = `${replacement}(${text.slice(from + 1, close)})`;
  }
  const lineStart = text.lastIndexOf("\n", begins - 1) + 1;
  const lineEnd = (text + "\n").indexOf("\n", ends);
  return {
    from: begins,
    to: ends,
    becomes,
    line: text.slice(0, begins).split("\n").length,
    was: text.slice(lineStart, lineEnd).trim(),
    is: (text.slice(lineStart, begins) + becomes + text.slice(ends, lineEnd)).trim(),
  };
}

/** Offset of the bracket that closes the one at `at`, on the same line; -1 when there is none. */
function closing(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length && text[i] !== "\n"; i++) {
    if (text[i] === "(") depth++;
    if (text[i] === ")" && --depth === 0) return i;
  }
  return -1;
}

export const applied = (text: string, mutant: Mutant): string =>
  text.slice(0, mutant.from) + mutant.becomes + text.slice(mutant.to);
