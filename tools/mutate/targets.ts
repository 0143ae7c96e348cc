/** What is mutated, and the fast tests that must notice: the rules nobody may get wrong, each with its own tests. */

export interface Target {
  file: string;
  tests: readonly string[];
}

const GUARD = "tests/fuzz/guard_test.ts";

export const TARGETS: readonly Target[] = [
  { file: "lib/ssrf/address.ts", tests: ["tests/ssrf/ranges_test.ts", GUARD] },
  { file: "lib/ssrf/ranges.ts", tests: ["tests/ssrf/ranges_test.ts", GUARD] },
  { file: "lib/ssrf/url.ts", tests: ["tests/ssrf/url_rules_test.ts", "tests/fuzz/url_test.ts", GUARD] },
  { file: "lib/schedule.ts", tests: ["tests/crypto/schedule_test.ts", "tests/fuzz/schedule_test.ts"] },
  {
    file: "lib/signing.ts",
    tests: ["tests/crypto/signing_test.ts", "tests/fuzz/signature_test.ts", "tests/features/v1a_test.ts"],
  },
  { file: "lib/match.ts", tests: ["tests/fuzz/match_test.ts"] },
  { file: "lib/reach.ts", tests: ["tests/fuzz/reach_test.ts"] },
  { file: "lib/edge/jobs.ts", tests: ["tests/fuzz/jobs_test.ts"] },
  { file: "lib/edge/pump.ts", tests: ["tests/fuzz/pump_test.ts"] },
  { file: "routes/auth.ts", tests: ["tests/fuzz/auth_test.ts"] },
  { file: "routes/scope.ts", tests: ["tests/fuzz/scope_test.ts"] },
];
