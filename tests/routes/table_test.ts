/** The route table itself: what a row must say, and what every row keeps (DESIGN: "Routes are rows"). */
import assert from "node:assert/strict";
import * as z from "zod";
import { fieldErrors } from "../../routes/errors.ts";
import { idOf, route } from "../../routes/table.ts";
import { withApi } from "./support.ts";

const common = { method: "GET", path: "/v1/x", summary: "X.", status: 200, handler: () => ({}) } as const;

Deno.test("a row without a permission or a scope does not compile, and one whose params differ does not start", () => {
  // @ts-expect-error: no permission
  route({ ...common, scope: "any" });
  // @ts-expect-error: no scope
  route({ ...common, permission: "public" });
  // @ts-expect-error: no such permission
  route({ ...common, permission: "everything", scope: "any" });
  const params = { tenant_id: idOf("tenant") };
  assert.throws(
    () => route({ ...common, permission: "public", scope: "any", params }),
    /params do not match/,
  );
});

Deno.test(
  "every row: unknown fields refused, secrets marked one-time, ids parsed by their kind, the scope's parameter named",
  withApi((api) => {
    for (const row of api.rows) {
      const what = `${row.method} ${row.path}`;
      if (row.body !== null) {
        const result = row.body.safeParse({ zz_unknown: 1 });
        assert.ok(!result.success, what);
        const errors = fieldErrors(result.error);
        const flagged = errors.some(({ path }) => path === "zz_unknown");
        // A union may name what its closest branch lacks instead: it is refused all the same.
        assert.ok(flagged || result.error.issues.some(({ code }) => code === "invalid_union"), what);
      }
      const shown = row.response === null ? {} : z.toJSONSchema(row.response, { unrepresentable: "any" });
      const fields = (shown as { properties?: object }).properties ?? {};
      assert.equal("secret" in fields, row.oneTime.includes("secret"), what);
      for (const [name, schema] of Object.entries(row.params)) {
        if (name.endsWith("_id")) {
          assert.ok(!schema.safeParse("req_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y").success, what);
        }
      }
      if (typeof row.scope === "object" && "param" in row.scope) {
        const inBody = row.scope.by === "tenant" && row.scope.in === "body";
        assert.ok(inBody ? row.body !== null : Object.hasOwn(row.params, row.scope.param), what);
      }
      assert.equal(row.idempotent, row.method === "POST", what);
      if (row.permission === "public") assert.equal(row.scope, "any", what);
    }
    return Promise.resolve();
  }),
);
