import assert from "node:assert/strict";
import fc from "fast-check";
import { attemptError } from "../../lib/keys.ts";
import { MAX_RETRY_AFTER_MS } from "../../lib/limits.ts";
import { classifyCode, classifyResponse, isOurCode, parseRetryAfter } from "../../lib/outcome.ts";

const NOW = Date.UTC(2026, 9, 1, 12, 0, 0);

Deno.test("outcome: any 2xx succeeds, every other status has its code", () => {
  const expected: [from: number, to: number, error: string][] = [
    [300, 399, "redirect"],
    [400, 409, "status_4xx"],
    [410, 410, "status_410"],
    [411, 499, "status_4xx"],
    [500, 599, "status_5xx"],
  ];
  for (let status = 200; status < 300; status++) {
    assert.deepEqual(classifyResponse(status, "60", NOW), { kind: "succeeded", httpStatus: status });
  }
  for (const [from, to, error] of expected) {
    for (let status = from; status <= to; status++) {
      assert.deepEqual(classifyResponse(status, null, NOW), { kind: "failed", error, httpStatus: status });
    }
  }
});

Deno.test("outcome: whatever a receiver answers, the code is one the log knows", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 999 }), fc.option(fc.string()), (status, retryAfter) => {
    const outcome = classifyResponse(status, retryAfter, NOW);
    if (outcome.kind === "failed") attemptError.parse(outcome.error);
  }));
});

Deno.test("outcome: Retry-After counts on 429 and 503 alone", () => {
  for (const status of [429, 503]) {
    const outcome = classifyResponse(status, "120", NOW);
    assert.equal(outcome.kind === "failed" && outcome.retryAfterMs, 120_000);
  }
  for (const status of [400, 500, 502, 301, 410]) {
    assert.equal("retryAfterMs" in classifyResponse(status, "120", NOW), false);
  }
});

Deno.test("outcome: Retry-After in seconds or as a date, at most 24 h, nothing else", () => {
  const rows: [value: string | null, ms: number | null, reason: string][] = [
    ["1", 1_000, "seconds"],
    [" 30 ", 30_000, "white space round it"],
    ["0", null, "no pause"],
    ["86400", MAX_RETRY_AFTER_MS, "24 h"],
    ["86401", MAX_RETRY_AFTER_MS, "capped"],
    ["9".repeat(400), MAX_RETRY_AFTER_MS, "capped, beyond any number"],
    ["Thu, 01 Oct 2026 12:01:00 GMT", 60_000, "HTTP date"],
    ["Thursday, 01-Oct-26 12:01:00 GMT", 60_000, "RFC 850 date"],
    ["Thu, 01 Oct 2026 11:59:00 GMT", null, "a date gone by"],
    ["Sat, 01 Oct 2050 12:00:00 GMT", MAX_RETRY_AFTER_MS, "a far date, capped"],
    ["-5", null, "negative"],
    ["1.5", null, "not whole"],
    ["1e3", null, "not digits"],
    ["soon", null, "no date"],
    ["2026", 2_026_000, "digits are seconds, not a year"],
    ["", null, "empty"],
    [null, null, "absent"],
  ];
  for (const [value, ms, reason] of rows) assert.equal(parseRetryAfter(value, NOW), ms, reason);
});

Deno.test("outcome: one table of error codes, a numeric timeout code included", () => {
  const rows: [code: string, error: string][] = [
    ["ECONNREFUSED", "connect"],
    ["ECONNRESET", "connect"],
    ["EHOSTUNREACH", "connect"],
    ["UND_ERR_SOCKET", "connect"],
    ["HPE_INVALID_CONSTANT", "connect"],
    ["UND_ERR_CONNECT_TIMEOUT", "timeout"],
    ["ETIMEDOUT", "timeout"],
    [String(23), "timeout"],
    ["TimeoutError", "timeout"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "tls"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "tls"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "tls"],
    ["constructor", "connect"],
  ];
  for (const [code, error] of rows) assert.equal(classifyCode(code), error, code);
});

Deno.test("D4: codes of our own making are told apart", () => {
  for (const code of ["EMFILE", "ENOBUFS", "shutdown"]) assert.equal(isOurCode(code), true, code);
  for (const code of ["ECONNREFUSED", "ETIMEDOUT", "deadline", "ENETUNREACH"]) {
    assert.equal(isOurCode(code), false, code);
  }
});
