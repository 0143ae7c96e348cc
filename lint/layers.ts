/**
 * Lint rules that keep the layers (ARCHITECTURE.md): the clock, randomness, timers and the network are touched at the
 * edge alone, and keys of the store are built in `lib/keys.ts` alone. Everything else takes them as ports.
 */

/** Path inside the project → may it touch this kind of effect? */
const TOOLS = /(^|\/)(tests|tools|lint|bench|sim)\/|(^|\/)main\.ts$|(^|\/)lib\/edge\/ports\.ts$/;
/** The files that dial and resolve, by design. */
const NETWORK = /(^|\/)lib\/edge\/(dialer\w*|resolver|pools)\.ts$/;
const KEYS = /(^|\/)lib\/keys\.ts$|(^|\/)(tests|tools|lint|bench)\//;

type Effect = "the clock" | "randomness" | "timers" | "the network";

/** `object.member`, called or passed on. */
const MEMBERS: Record<string, Effect> = {
  "Date.now": "the clock",
  "performance.now": "the clock",
  "Math.random": "randomness",
  "crypto.getRandomValues": "randomness",
  "crypto.randomUUID": "randomness",
  "AbortSignal.timeout": "timers",
  "Deno.connect": "the network",
  "Deno.connectTls": "the network",
  "Deno.startTls": "the network",
  "Deno.listen": "the network",
  "Deno.listenTls": "the network",
  "Deno.listenDatagram": "the network",
  "Deno.resolveDns": "the network",
  "Deno.serve": "the network",
};

/** Globals that are called. */
const CALLS: Record<string, Effect> = {
  setTimeout: "timers",
  setInterval: "timers",
  setImmediate: "timers",
  fetch: "the network",
  Date: "the clock",
};

/** Globals that are constructed. */
const CONSTRUCTED: Record<string, Effect> = {
  WebSocket: "the network",
  EventSource: "the network",
  WebSocketStream: "the network",
};

/** What `node:crypto` has beside pure functions. */
const RANDOM_IMPORTS = new Set([
  "randomBytes",
  "randomUUID",
  "randomInt",
  "randomFill",
  "randomFillSync",
  "webcrypto",
]);
const NETWORK_MODULES = /^(undici$|npm:undici|node:(net|tls|dns|http|https|http2|dgram)(\/|$))/;
const TIMER_MODULES = /^node:timers(\/|$)/;

/** Members of the store that take a key first. */
const KEYED_CALLS = new Set(["get", "set", "delete"]);
const KEY_PROPERTIES = new Set(["key", "prefix", "start", "end"]);

/** Slashes forward, so the patterns above hold on every system. */
const pathOf = (filename: string): string => filename.replaceAll("\\", "/");

function allowed(filename: string, effect: Effect): boolean {
  const path = pathOf(filename);
  return TOOLS.test(path) || (effect === "the network" && NETWORK.test(path));
}

const effects: Deno.lint.Rule = {
  create(context) {
    const refuse = (node: Deno.lint.Node, what: string, effect: Effect): void => {
      if (allowed(context.filename, effect)) return;
      context.report({
        node,
        message: `${what} touches ${effect} outside the edge`,
        hint: "Take it as a port (lib/edge/ports.ts): now(), timers, random, ids, resolver, dialer.",
      });
    };
    return {
      MemberExpression(node) {
        const { property } = node;
        const object = unwrapGlobal(node.object);
        if (property.type !== "Identifier" || object === null) return;
        const what = `${object}.${property.name}`;
        if (Object.hasOwn(MEMBERS, what)) refuse(node, what, MEMBERS[what]!);
        else if (object === "globalThis" && property.name !== "Date" && Object.hasOwn(CALLS, property.name)) {
          refuse(node, what, CALLS[property.name]!);
        }
      },
      CallExpression(node) {
        if (node.callee.type !== "Identifier" || !Object.hasOwn(CALLS, node.callee.name)) return;
        refuse(node, `${node.callee.name}()`, CALLS[node.callee.name]!);
      },
      NewExpression(node) {
        if (node.callee.type !== "Identifier") return;
        const { name } = node.callee;
        if (name === "Date" && node.arguments.length === 0) refuse(node, "new Date()", "the clock");
        else if (Object.hasOwn(CONSTRUCTED, name)) refuse(node, `new ${name}()`, CONSTRUCTED[name]!);
      },
      ImportDeclaration(node) {
        if (node.importKind === "type") return;
        const from = node.source.value;
        if (NETWORK_MODULES.test(from)) refuse(node, from, "the network");
        if (TIMER_MODULES.test(from)) refuse(node, from, "timers");
        if (from !== "node:crypto") return;
        for (const specifier of node.specifiers) {
          if (specifier.type !== "ImportSpecifier" || specifier.imported.type !== "Identifier") continue;
          const { name } = specifier.imported;
          if (RANDOM_IMPORTS.has(name)) refuse(specifier, name, "randomness");
        }
      },
    };
  },
};

/** `x` of `x.y` and of `globalThis.x.y`. */
function unwrapGlobal(node: Deno.lint.Node): string | null {
  if (node.type === "Identifier") return node.name;
  if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return null;
  return unwrapGlobal(node.object) === "globalThis" ? node.property.name : null;
}

const keys: Deno.lint.Rule = {
  create(context) {
    if (KEYS.test(pathOf(context.filename))) return {};
    const refuse = (node: Deno.lint.Node): void =>
      context.report({
        node,
        message: "A key of the store is built outside lib/keys.ts",
        hint: "Add a function to `keys` in lib/keys.ts, with the schema of its value beside it.",
      });
    return {
      CallExpression(node) {
        const { callee } = node, first = node.arguments[0];
        if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
        if (first?.type !== "ArrayExpression") return;
        if (KEYED_CALLS.has(callee.property.name)) refuse(first);
        else if (callee.property.name === "getMany") {
          for (const item of first.elements) if (item?.type === "ArrayExpression") refuse(item);
        }
      },
      Property(node) {
        if (node.value.type !== "ArrayExpression" || node.key.type !== "Identifier") return;
        // An empty array or one of numbers is no key of this store: all families begin with a name.
        const first = node.value.elements[0];
        const named = first?.type === "SpreadElement" ||
          first?.type === "Literal" && typeof first.value === "string";
        if (KEY_PROPERTIES.has(node.key.name) && named) refuse(node.value);
      },
    };
  },
};

const plugin: Deno.lint.Plugin = { name: "layers", rules: { effects, keys } };
export default plugin;
