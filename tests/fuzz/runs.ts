/**
 * How long a property is tried. `FUZZ_RUNS=5000` raises every number of runs, `FUZZ_SEED=123` (and `FUZZ_PATH=1:0`) runs one that
 * failed again: fast-check prints both beside the smallest input that fails.
 */
import fc from "fast-check";

/** Options of `fc.assert`. @param least runs in the suite */
export function runs<T>(least: number): fc.Parameters<T> {
  const more = Number(Deno.env.get("FUZZ_RUNS") ?? 0), seed = Deno.env.get("FUZZ_SEED");
  return {
    numRuns: Math.max(least, more),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(Deno.env.has("FUZZ_PATH") ? { path: Deno.env.get("FUZZ_PATH")! } : {}),
  };
}

/** A text with something done to it: a character put in, taken out, replaced, doubled, a part moved or its case changed. */
export function mutated(of: fc.Arbitrary<string>, put: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const step = fc.record({
    kind: fc.constantFrom("put", "cut", "replace", "double", "move", "case"),
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    length: fc.integer({ min: 1, max: 6 }),
    text: put,
  });
  return fc.tuple(of, fc.array(step, { minLength: 1, maxLength: 4 })).map(([text, steps]) =>
    steps.reduce((now, { kind, at, length, text: put }) => {
      const i = Math.floor(at * (now.length + 1)), head = now.slice(0, i), rest = now.slice(i);
      switch (kind) {
        case "put":
          return head + put + rest;
        case "cut":
          return head + rest.slice(length);
        case "replace":
          return head + put + rest.slice(length);
        case "double":
          return head + rest.slice(0, length) + rest;
        case "move":
          return rest + head;
        default:
          return head + (i % 2 ? rest.toUpperCase() : rest.toLowerCase());
      }
    }, text)
  );
}
