/**
 * The places of a TypeScript text where code is: what is left when comments, strings, the text of templates, regular expressions,
 * imports and type declarations are taken away. Not a parser: it knows as much of the language as this project's own style needs
 * (`deno fmt` puts spaces around every binary operator and none around those of generics).
 */

/** The text with everything that is no code blanked out, offset for offset. */
export function codeOf(text: string): string {
  const out = text.split("");
  const blank = (from: number, to: number) => {
    for (let i = from; i < to; i++) if (out[i] !== "\n") out[i] = " ";
  };
  let at = 0, last = "";
  /** Depth of braces at which each open `${` ends. */
  const templates: number[] = [];
  let depth = 0;
  while (at < text.length) {
    const char = text[at]!, two = text.slice(at, at + 2);
    if (two === "//" || two === "/*") {
      const end = two === "//" ? text.indexOf("\n", at) : text.indexOf("*/", at) + 2;
      blank(at, end);
      at = end;
    } else if (char === '"' || char === "'") {
      const end = stringEnd(text, at, char);
      blank(at, end);
      at = end;
      last = '"';
    } else if (char === "`" || char === "}" && templates.at(-1) === depth) {
      if (char === "}") templates.pop(), depth--;
      const end = templateEnd(text, at + 1);
      blank(at, end);
      if (text[end - 1] === "{") templates.push(++depth);
      at = end;
      last = text[end - 1] === "{" ? "{" : '"';
    } else if (char === "/" && /[(,=:[!&|?{};+~^]|return|^$/.test(last)) {
      const end = regexEnd(text, at);
      blank(at, end);
      at = end;
      last = '"';
    } else {
      if (char === "{") depth++;
      if (char === "}") depth--;
      const word = /^[\w$#]+/.exec(text.slice(at, at + 64))?.[0] ?? char;
      if (word.trim() !== "") last = word;
      at += word.length;
    }
  }
  const code = out.join("");
  for (const [from, to] of typesOf(code)) blank(from, to);
  return out.join("");
}

function stringEnd(text: string, at: number, quote: string): number {
  for (let i = at + 1;; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === quote) return i + 1;
  }
}

/** Past the closing back-tick, or past the `${` that comes before it. */
function templateEnd(text: string, at: number): number {
  for (let i = at;; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "`") return i + 1;
    else if (text[i] === "$" && text[i + 1] === "{") return i + 2;
  }
}

function regexEnd(text: string, at: number): number {
  let inClass = false;
  for (let i = at + 1;; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "[") inClass = true;
    else if (text[i] === "]") inClass = false;
    else if (text[i] === "/" && !inClass) return i + 1 + /^[a-z]*/.exec(text.slice(i + 1))![0].length;
  }
}

/** Imports, interfaces, type aliases and what stands behind `as`, `satisfies` and between `<` and `>` of a call. */
function typesOf(code: string): [number, number][] {
  const ranges: [number, number][] = [];
  for (const match of code.matchAll(/^(?:import|(?:export )?(?:declare )?(?:interface|type)) /gm)) {
    const isBlock = match[0].includes("interface");
    let depth = 0, i = match.index;
    for (; i < code.length; i++) {
      if ("{([".includes(code[i]!)) depth++;
      if ("})]".includes(code[i]!) && --depth === 0 && isBlock) break;
      if (code[i] === ";" && depth === 0) break;
    }
    ranges.push([match.index, i + 1]);
  }
  return ranges;
}
