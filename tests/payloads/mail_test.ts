import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError, type FieldError } from "../../lib/errors.ts";
import { TEXT_BYTES_DEFAULT } from "../../lib/limits.ts";
import { htmlToText, parseMail } from "../../lib/mail.ts";
import { authOf } from "../../lib/mail_headers.ts";
import { capUtf8 } from "../../lib/text.ts";

const demo = (name: string) => Deno.readFile(new URL(`../../demo/mails/${name}`, import.meta.url));
const mail = (text: string) => parseMail(new TextEncoder().encode(text.replaceAll("\n", "\r\n")));

Deno.test("a plain mail is read with its sender's verdicts, its date and its text", async () => {
  const parsed = await parseMail(await demo("plain.eml"));
  assert.deepEqual(parsed.from, { address: "marta.oduya@lindenhof.example", name: "Marta Oduya" });
  assert.deepEqual(parsed.to, [{ address: "noor@werkbank.example", name: "Noor Aziz" }]);
  assert.equal(parsed.delivered_to, "noor@werkbank.example");
  assert.equal(parsed.subject, "Offer for the standing desks");
  assert.equal(parsed.sent_at, Date.parse("2026-10-02T08:14:55Z"));
  assert.equal(parsed.message_id, "<20261002081455.7c1@lindenhof.example>");
  assert.deepEqual(parsed.trust, { verdict: "trusted", spf: "pass", dkim: "pass", dmarc: "pass" });
  assert.equal(parsed.quarantine_reason, null);
  assert.equal(parsed.kind, "mail");
  assert.match(parsed.text, /^Hello Noor,\n\ncould you .*160 × 80 cm/s);
});

Deno.test("a multipart mail gives its plain text once and its attachments as metadata of decoded sizes", async () => {
  const parsed = await parseMail(await demo("multipart_attachment.eml"));
  assert.equal(parsed.from.name, "Jörg Halvorsen");
  assert.equal(parsed.subject, "Re: Offer for the standing desks – floor plan");
  assert.equal(parsed.in_reply_to, "<20261002081455.7c1@lindenhof.example>");
  assert.deepEqual(parsed.references, ["<20261002081455.7c1@lindenhof.example>"]);
  assert.deepEqual(parsed.cc.map(({ address }) => address), [
    "marta.oduya@lindenhof.example",
    "facility@lindenhof.example",
  ]);
  assert.equal(parsed.text.match(/Marta asked me/g)?.length, 1);
  assert.equal(parsed.text.includes("#333"), false);
  assert.deepEqual(parsed.flags, ["has_attachments"]);
  assert.deepEqual(
    parsed.attachments.map(({ filename, content_type }) => [filename, content_type]),
    [["floor-plan room 2.07.pdf", "application/pdf"], ["Ansicht Südwand.png", "image/png"]],
  );
  assert.equal(parsed.attachments[1]!.size, 70);
});

Deno.test("payload_text_cap: the long demo mail is cut before the emoji that lies across the cap", async () => {
  const parsed = await parseMail(await demo("emoji_long.eml"));
  const bytes = new TextEncoder().encode(parsed.text);
  assert.equal(bytes[TEXT_BYTES_DEFAULT]! & 0xc0, 0x80, "the cap lies inside a character");
  const cut = capUtf8(parsed.text, TEXT_BYTES_DEFAULT);
  assert.equal(cut.truncated, true);
  const next = String.fromCodePoint(parsed.text.codePointAt(cut.text.length)!);
  assert.equal(new TextEncoder().encode(next).length, 4);
  assert.match(next, /\p{Extended_Pictographic}/u);
  assert.equal(parsed.kind, "bulk");
});

Deno.test("a mail of HTML alone gives its text without tags, styles and scripts, entities decoded", async () => {
  const parsed = await mail(
    `From: a@x.example\nContent-Type: text/html; charset=utf-8\n
<html><head><title>no</title></head><body><style>p{color:red}</style><p>Ta&szlig;e &amp; L&ouml;ffel</p>
<script>alert(1)</script><p>second &#x1F331;</p></body></html>`,
  );
  assert.match(parsed.text, /^Taße & Löffel\s+second 🌱$/);
  assert.equal(await htmlToText("1 < 2"), "1 < 2");
});

Deno.test("what is no mail is a 400 that names the field", async () => {
  const deep = (levels: number) =>
    Array.from({ length: levels }, (_, i) => `Content-Type: multipart/mixed; boundary=b${i}.\n\n--b${i}.\n`)
      .join("");
  const table: [string, string, string][] = [
    ["", "body", "empty"],
    ["\0\x01\x02 binary rubbish", "body", "no header field"],
    ["Subject: hi\n\nno sender", "from", "no From"],
    ["From: undisclosed\n\nx", "from", "From without an address"],
    ["From: Group:;\n\nx", "from", "From that is an empty group"],
    [`From: a@x.example\n${deep(60)}`, "body", "parts nest too deep"],
    [`From: a@x.example\nX-Pad: ${"y".repeat(300_000)}\n\nx`, "body", "headers too large"],
    [
      `From: a@x.example\nContent-Type: multipart/mixed; boundary=b\n\n${
        "--b\nContent-Disposition: attachment\nContent-Type: application/pdf\n\nx\n".repeat(101)
      }--b--\n`,
      "attachments",
      "too many attachments",
    ],
  ];
  for (const [text, path, reason] of table) {
    const error = await mail(text).then(() => null, (error) => error);
    assert.ok(error instanceof ApiError, reason);
    assert.equal(error.status, 400);
    assert.equal((error.details?.errors as FieldError[])[0]?.path, path, reason);
  }
});

Deno.test("a mail with broken details is still received: bad date, bad addresses, long lines", async () => {
  const parsed = await mail(
    `From: a@x.example\nDate: not a date\nTo: ok@x.example, not-an-address, ${"z".repeat(400)}@x.example\n` +
      `Subject: ${"s".repeat(2_000)}\n\nx`,
  );
  assert.equal(parsed.sent_at, null);
  assert.deepEqual(parsed.to.map(({ address }) => address), ["ok@x.example"]);
  assert.equal(parsed.subject?.length, 998);
});

Deno.test("recipients past the hundredth are left out of the summary", async () => {
  const to = Array.from({ length: 150 }, (_, i) => `r${i}@x.example`).join(", ");
  assert.equal((await mail(`From: a@x.example\nTo: ${to}\n\nx`)).to.length, 100);
});

Deno.test("P1: the error of a mail that cannot be read quotes nothing of it", async () => {
  const error = await mail(`X-Secret: CANARY\n\nCANARY`).then(() => null, (error) => error);
  assert.equal(JSON.stringify([error.message, error.fix, error.details]).includes("CANARY"), false);
});

Deno.test("any bytes are read or refused with a 400, never another error", async () => {
  const bytes = fc.uint8Array({ maxLength: 400 });
  await fc.assert(
    fc.asyncProperty(bytes, fc.constantFrom("", "From: a@x.example\r\n"), async (tail, head) => {
      const raw = new Uint8Array([...new TextEncoder().encode(head), ...tail]);
      try {
        const parsed = await parseMail(raw);
        assert.ok(parsed.text.isWellFormed());
      } catch (error) {
        assert.ok(error instanceof ApiError);
        assert.equal(error.status, 400);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("verdicts of Authentication-Results: comments and other methods do not count", () => {
  const table = [
    ["", "unknown", "none", "no header"],
    ["mx; dmarc=pass header.from=x", "trusted", "pass", "passed"],
    ["mx; spf=pass; dkim=pass; dmarc=fail", "suspicious", "fail", "failed alignment"],
    ["mx; spf=none (dmarc=pass by the sender)", "unknown", "none", "verdict in a comment"],
    ["mx; x-dmarc=pass", "unknown", "none", "another method's name"],
    ["mx; dmarc=excellent", "unknown", "none", "a result that is none"],
    ["mx; spf=fail", "suspicious", "none", "failed without DMARC"],
  ] as const;
  for (const [value, verdict, dmarc, reason] of table) {
    const trust = authOf(value);
    assert.deepEqual([trust.verdict, trust.dmarc], [verdict, dmarc], reason);
  }
});

Deno.test("what a mail is: report, automatic, calendar, list or plain; and what holds it back", async () => {
  const table = [
    ["Content-Type: multipart/report; boundary=b", "bounce", null],
    ["Auto-Submitted: auto-replied", "auto_reply", null],
    ["Auto-Submitted: no", "mail", null],
    ["Content-Type: text/calendar", "calendar", null],
    ["List-Unsubscribe: <mailto:u@x.example>", "bulk", null],
    ["X-Spam-Flag: YES", "mail", "spam"],
    ["X-Virus-Status: Infected (Eicar)", "mail", "malware"],
    ["Authentication-Results: mx; dmarc=fail", "mail", "dmarc_failed"],
  ] as const;
  for (const [line, kind, reason] of table) {
    const parsed = await mail(`From: a@x.example\n${line}\n\nx`);
    assert.deepEqual([parsed.kind, parsed.quarantine_reason], [kind, reason], line);
  }
});
