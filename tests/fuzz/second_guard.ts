/**
 * A second guard after reference §6, written against the text alone and by other means than `lib/ssrf`: it takes the URL apart by
 * hand, knows addresses as bytes under masks, and asks no URL parser and no address library. Where the two differ, one is wrong.
 */
import { domainToASCII } from "node:url";

/** Network and mask, byte by byte. */
type Masked = readonly [net: number[], bits: number];

const V4: Masked[] = [
  [[0], 8],
  [[10], 8],
  [[100, 64], 10],
  [[127], 8],
  [[168, 63, 129, 16], 32],
  [[169, 254], 16],
  [[172, 16], 12],
  [[192, 0, 0], 24],
  [[192, 0, 2], 24],
  [[192, 31, 196], 24],
  [[192, 52, 193], 24],
  [[192, 88, 99], 24],
  [[192, 168], 16],
  [[192, 175, 48], 24],
  [[198, 18], 15],
  [[198, 51, 100], 24],
  [[203, 0, 113], 24],
  [[224], 4],
  [[240], 4],
];
const V6: Masked[] = [
  [[0x20, 0x01, 0x00, 0x00], 23],
  [[0x20, 0x01, 0x0d, 0xb8], 32],
  [[0x20, 0x02], 16],
  [[0x26, 0x20, 0x00, 0x4f, 0x80, 0x00], 48],
  [[0x3f, 0xff, 0x00], 20],
];

function under(bytes: readonly number[], [net, bits]: Masked): boolean {
  for (let i = 0; i * 8 < bits; i++) {
    const mask = 0xff & (0xff << Math.max(0, 8 - (bits - i * 8)));
    if ((bytes[i]! & mask) !== ((net[i] ?? 0) & mask)) return false;
  }
  return true;
}

/** Four bytes of plain dotted decimal, else null. */
function v4Bytes(text: string): number[] | null {
  const parts = text.split(".");
  if (parts.length !== 4) return null;
  const bytes = parts.map((part) => String(Number.parseInt(part, 10)) === part ? Number(part) : -1);
  return bytes.every((byte) => byte >= 0 && byte <= 255) ? bytes : null;
}

/** Sixteen bytes of IPv6 text without a zone, dotted tail included, else null. */
export function v6Bytes(text: string): number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const sides = halves.map((half, i) => half === "" ? [] : groups(half, i === halves.length - 1));
  if (sides.some((side) => side === null)) return null;
  const [head, tail] = [sides[0]!, sides[1] ?? []];
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 || text === "" : missing < 0) return null;
  if (halves.length === 2 && missing < 2) return null; // "::" stands for one group at least
  return [...head, ...Array(missing).fill(0), ...tail];
}

function groups(half: string, last: boolean): number[] | null {
  const bytes: number[] = [];
  const parts = half.split(":");
  for (const [i, part] of parts.entries()) {
    const dotted = last && i === parts.length - 1 ? v4Bytes(part) : null;
    if (dotted !== null) bytes.push(...dotted);
    else if (/^[0-9a-f]{1,4}$/i.test(part)) bytes.push(parseInt(part, 16) >> 8, parseInt(part, 16) & 255);
    else return null;
  }
  return bytes;
}

/** Whether a delivery may go to the address. */
export function addressIsPublic(text: string): boolean {
  const four = v4Bytes(text);
  if (four !== null) return !V4.some((range) => under(four, range));
  const six = v6Bytes(text);
  if (six === null || six[0]! >> 5 !== 1) return false;
  const isatap = (six[8]! & ~2) === 0 && (six[9]! & 0xff) === 0 && six[10] === 0x5e && six[11] === 0xfe ||
    (six[8]! & ~3) === 0 && six[9] === 0 && six[10] === 0x5e && six[11] === 0xfe;
  return !isatap && !V6.some((range) => under(six, range));
}

const REFUSED =
  "localhost localdomain local internal invalid test example onion alt arpa lan corp home intranet private i2p svc";
/** https://fetch.spec.whatwg.org/#bad-port, those from 1024 on. */
const BAD_PORTS =
  "1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080";

/** Whether an endpoint may have the URL, its addresses aside. */
export function urlIsFine(input: string): boolean {
  if (new TextEncoder().encode(input).length > 2_048 || !input.isWellFormed()) return false;
  for (const char of input) {
    const code = char.codePointAt(0)!;
    if (code < 0x21 || code === 0x5c || code >= 0x7f && code <= 0xa0) return false;
    if (code > 0xa0 && (/^\s$/u.test(char) || /^[\p{Cf}\p{Zl}\p{Zp}\p{Zs}]$/u.test(char))) return false;
  }
  if (input.slice(0, 8).toLowerCase() !== "https://" || input.includes("#")) return false;
  let end = 8;
  while (end < input.length && input[end] !== "/" && input[end] !== "?") end++;
  const authority = input.slice(8, end);
  if (authority.includes("@") || authority.includes("[") || authority.includes("]")) return false;
  const [name = "", port, ...more] = authority.split(":");
  return more.length === 0 && portIsFine(port ?? "") && hostIsFine(name);
}

function portIsFine(text: string): boolean {
  if (text === "") return true;
  for (const digit of text) if (digit < "0" || digit > "9") return false;
  const port = Number(text);
  return port === 443 || port >= 1024 && port <= 65_535 && !BAD_PORTS.split(" ").includes(String(port));
}

function hostIsFine(written: string): boolean {
  const host = asciiHost(written);
  if (host === null || host.length > 253) return false;
  const labels = host.split(".");
  const plain = labels.every((label) =>
    label.length >= 1 && label.length <= 63 &&
    [...label].every((c) => c >= "a" && c <= "z" || c >= "0" && c <= "9" || c === "-" || c === "_")
  );
  const top = labels.at(-1)!;
  return plain && labels.length >= 2 && !isNumber(top) && !REFUSED.split(" ").includes(top);
}

/** A last label that the URL standard takes for part of an IPv4 address, in any notation. */
function isNumber(label: string): boolean {
  if (label.startsWith("0x")) return [...label.slice(2)].every((c) => "0123456789abcdef".includes(c));
  return [...label].every((c) => c >= "0" && c <= "9");
}

/** The host in lower-case ASCII: percent escapes read, then IDNA; null when there is no such name. */
function asciiHost(written: string): string | null {
  let text: string;
  try {
    text = written.includes("%") ? percentDecoded(written) : written;
  } catch {
    return null;
  }
  if (/^[\x21-\x7e]*$/.test(text) && !/xn--/i.test(text)) return text.toLowerCase();
  return domainToASCII(text) || null;
}

function percentDecoded(text: string): string {
  const bytes: number[] = [];
  const raw = new TextEncoder().encode(text);
  for (let i = 0; i < raw.length; i++) {
    const hex = raw[i] === 0x25
      ? /^[0-9a-f]{2}$/i.exec(String.fromCharCode(...raw.slice(i + 1, i + 3)))
      : null;
    if (hex === null) bytes.push(raw[i]!);
    else bytes.push(parseInt(hex[0], 16)), i += 2;
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
}

/** Every text of an IPv4 address that some parser somewhere reads: one to four parts, decimal, octal or hex, padded. */
export function notationsOf(bytes: readonly number[], bases: readonly number[], parts: number): string {
  const head = bytes.slice(0, parts - 1);
  const tail = bytes.slice(parts - 1).reduce((sum, byte) => sum * 256 + byte, 0);
  return [...head, tail].map((value, i) => {
    const base = bases[i % bases.length];
    return base === 8 ? "0" + value.toString(8) : base === 16 ? "0x" + value.toString(16) : String(value);
  }).join(".");
}
