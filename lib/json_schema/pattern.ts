/**
 * Regular expressions of strangers, matched in linear time. A tenant's JSON schema may hold a `pattern`, and JavaScript's
 * own engine backtracks: `^(a+)+$` against forty letters would stop the process for everybody. This one walks a state
 * machine (Thompson's construction), so the cost is at most length times program size. What it cannot express
 * (look-around, back-references) is refused when the schema is registered.
 */

/** Instructions, counted repeats expanded. */
const MAX_PROGRAM = 1_000;
const MAX_PATTERN_CHARS = 512;

type Step =
  | { op: "char"; test: (char: string) => boolean }
  | { op: "split"; to: number[] }
  | { op: "start" }
  | { op: "end" }
  | { op: "match" };

type Node =
  | { kind: "char"; test: (char: string) => boolean }
  | { kind: "start" }
  | { kind: "end" }
  | { kind: "sequence"; parts: Node[] }
  | { kind: "choice"; options: Node[] }
  | { kind: "repeat"; node: Node; min: number; max: number };

export interface Pattern {
  /** Whether the pattern occurs anywhere in the text, as `RegExp.test` with the `u` flag says. */
  test(text: string): boolean;
  /** Steps a character may cost. */
  readonly size: number;
}

/** Throws an `Error` that says why the pattern is refused. */
export function compilePattern(source: string): Pattern {
  if (source.length > MAX_PATTERN_CHARS) throw new Error(`is over ${MAX_PATTERN_CHARS} characters`);
  try {
    new RegExp(source, "u");
  } catch {
    throw new Error("is not a regular expression (ECMAScript, u flag)");
  }
  const program = assemble(new Parser(source).parse());
  return { size: program.length, test: (text) => search(program, text) };
}

/** Reads what `RegExp` has accepted, so only the constructs left out need refusing. */
class Parser {
  #chars: string[];
  #at = 0;
  constructor(source: string) {
    this.#chars = [...source];
  }

  parse(): Node {
    return this.#choice();
  }

  #choice(): Node {
    const options = [this.#sequence()];
    while (this.#chars[this.#at] === "|") this.#at++, options.push(this.#sequence());
    return options.length === 1 ? options[0]! : { kind: "choice", options };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#chars.length && !"|)".includes(this.#chars[this.#at]!)) {
      parts.push(this.#quantified(this.#atom()));
    }
    return { kind: "sequence", parts };
  }

  #quantified(node: Node): Node {
    const [min, max] = this.#quantifier() ?? [1, 1];
    return min === 1 && max === 1 ? node : { kind: "repeat", node, min, max };
  }

  #quantifier(): [number, number] | null {
    const rest = this.#chars.slice(this.#at, this.#at + 32).join("");
    const found = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(rest);
    if (found === null) return null;
    this.#at += found[0].length;
    if (found[1] !== undefined) return found[1] === "?" ? [0, 1] : [found[1] === "*" ? 0 : 1, Infinity];
    const min = Number(found[2]);
    return [min, found[3] === undefined ? min : found[4] === "" ? Infinity : Number(found[4])];
  }

  #atom(): Node {
    const char = this.#chars[this.#at++]!;
    if (char === "^") return { kind: "start" };
    if (char === "$") return { kind: "end" };
    if (char === "(") return this.#group();
    if (char === "[") return charNode(this.#until("]", char));
    if (char === "\\") return charNode(this.#escape());
    return charNode(char === "/" ? "\\/" : char);
  }

  #group(): Node {
    if (this.#chars[this.#at] === "?") {
      if (this.#chars[this.#at + 1] !== ":") {
        throw new Error("has a look-around or named group, which are not supported");
      }
      this.#at += 2;
    }
    const node = this.#choice();
    this.#at++;
    return node;
  }

  #escape(): string {
    const char = this.#chars[this.#at++]!;
    if (/[1-9kbB]/.test(char)) {
      throw new Error("has a back-reference or word boundary, which are not supported");
    }
    const length = { c: 1, x: 2, u: 4 }[char];
    if (char === "p" || char === "P" || (char === "u" && this.#chars[this.#at] === "{")) {
      return this.#until("}", `\\${char}`);
    }
    const tail = this.#chars.slice(this.#at, this.#at + (length ?? 0)).join("");
    this.#at += length ?? 0;
    return `\\${char}${tail}`;
  }

  /** Source up to and with an unescaped `close`. */
  #until(close: string, source: string): string {
    for (;;) {
      const char = this.#chars[this.#at++]!;
      source += char;
      if (char === close) return source;
      if (char === "\\") source += this.#chars[this.#at++];
    }
  }
}

/** One character is judged by the platform's own engine, remembered for ASCII. */
function charNode(source: string): Node {
  if (/^\\u[dD][89a-fA-F]/.test(source)) {
    throw new Error("has a surrogate escape: write the character or \\u{…}");
  }
  const one = new RegExp(`^${source}$`, "u");
  const ascii = Array.from({ length: 128 }, (_, code) => one.test(String.fromCharCode(code)));
  return { kind: "char", test: (char) => ascii[char.codePointAt(0)!] ?? one.test(char) };
}

function assemble(root: Node): Step[] {
  const program: Step[] = [];
  const add = (step: Step): number => {
    if (program.length >= MAX_PROGRAM) {
      throw new Error("is too large once its counted repeats are written out");
    }
    return program.push(step) - 1;
  };
  const split = (): { op: "split"; to: number[] } => {
    const step = { op: "split" as const, to: [] as number[] };
    add(step);
    return step;
  };
  function emit(node: Node): void {
    switch (node.kind) {
      case "sequence":
        return node.parts.forEach(emit);
      case "choice": {
        const fork = split();
        const exits: { to: number[] }[] = [];
        for (const option of node.options) {
          fork.to.push(program.length);
          emit(option);
          exits.push(split());
        }
        for (const exit of exits) exit.to.push(program.length);
        return;
      }
      case "repeat": {
        for (let i = 0; i < node.min; i++) emit(node.node);
        if (node.max === Infinity) {
          const loop = program.length, fork = split();
          fork.to.push(program.length);
          emit(node.node);
          split().to.push(loop);
          fork.to.push(program.length);
          return;
        }
        const forks: { to: number[] }[] = [];
        for (let i = node.min; i < node.max; i++) {
          const fork = split();
          fork.to.push(program.length);
          forks.push(fork);
          emit(node.node);
        }
        for (const fork of forks) fork.to.push(program.length);
        return;
      }
      case "char":
        return void add({ op: "char", test: node.test });
      default:
        return void add({ op: node.kind });
    }
  }
  emit(root);
  add({ op: "match" });
  return program;
}

/** All states at once, a character at a time; a new try starts at every position. */
function search(program: Step[], text: string): boolean {
  const chars = [...text];
  let current: number[] = [];
  for (let at = 0;; at++) {
    const active: number[] = [];
    const seen = new Uint8Array(program.length);
    const stack = [0, ...current];
    while (stack.length > 0) {
      const state = stack.pop()!;
      if (seen[state] === 1) continue;
      seen[state] = 1;
      const step = program[state]!;
      if (step.op === "match") return true;
      if (step.op === "char") active.push(state);
      else if (step.op === "split") stack.push(...step.to);
      else if (step.op === "start" ? at === 0 : at === chars.length) stack.push(state + 1);
    }
    if (at === chars.length) return false;
    const char = chars[at]!;
    current = active.filter((state) => (program[state] as Step & { op: "char" }).test(char)).map((state) =>
      state + 1
    );
  }
}
