/**
 * Judges resolved addresses (reference §6 rule 5). Pure. In: address texts as DNS gave them; out: a verdict.
 * Invariant D3 rests on it: what it has not passed is not dialled.
 */
import ipaddr from "ipaddr.js";
import { GLOBAL_IPV6, type Range, REFUSED_IPV4, REFUSED_IPV6 } from "./ranges.ts";

/** `rule` is a stable code: `not_an_address` or `private_address`; `message` says which address and why. */
export type AddressVerdict = { ok: true } | { ok: false; rule: AddressRule; message: string };
export type AddressRule = "not_an_address" | "private_address" | "no_address";

type Parsed<A> = readonly [address: A, bits: number, reason: string];

const V4 = REFUSED_IPV4.map(([cidr, reason]: Range): Parsed<ipaddr.IPv4> => {
  const [address, bits] = ipaddr.IPv4.parseCIDR(cidr);
  return [address, bits, reason];
});
const V6 = REFUSED_IPV6.map(([cidr, reason]: Range): Parsed<ipaddr.IPv6> => {
  const [address, bits] = ipaddr.IPv6.parseCIDR(cidr);
  return [address, bits, reason];
});
const GLOBAL = ipaddr.IPv6.parseCIDR(GLOBAL_IPV6);

/** Four decimal octets without leading zeros: the only IPv4 text that every parser reads alike. */
const OCTET = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const DOTTED = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

/** One address. Anything but plain dotted IPv4 or IPv6 text without a zone is refused. */
export function judgeAddress(ip: string): AddressVerdict {
  if (DOTTED.test(ip)) return judgeV4(ip);
  if (ip.includes("%") || !ipaddr.IPv6.isValid(ip)) {
    return { ok: false, rule: "not_an_address", message: `${JSON.stringify(ip)} is not an IP address` };
  }
  return judgeV6(ip);
}

/** All A and AAAA answers of one look-up: at least one, and every one public. One bad answer refuses the name. */
export function judgeAnswers(addresses: readonly string[]): AddressVerdict {
  if (addresses.length === 0) {
    return { ok: false, rule: "no_address", message: "the host name has no address" };
  }
  for (const address of addresses) {
    const verdict = judgeAddress(address);
    if (!verdict.ok) return verdict;
  }
  return { ok: true };
}

function judgeV4(ip: string): AddressVerdict {
  const address = ipaddr.IPv4.parse(ip);
  for (const [range, bits, reason] of V4) if (address.match(range, bits)) return refused(ip, reason);
  return { ok: true };
}

function judgeV6(ip: string): AddressVerdict {
  const address = ipaddr.IPv6.parse(ip);
  if (!address.match(GLOBAL)) return refused(ip, `outside ${GLOBAL_IPV6}, not global unicast`);
  for (const [range, bits, reason] of V6) if (address.match(range, bits)) return refused(ip, reason);
  if (isIsatap(address.parts)) return refused(ip, "an ISATAP interface id, which embeds an IPv4 address");
  return { ok: true };
}

/** RFC 5214: interface id 0000:5efe or 0200:5efe and an IPv4 address; the universal and group bits do not matter. */
function isIsatap(parts: readonly number[]): boolean {
  return (parts[4]! & 0xfcff) === 0 && parts[5] === 0x5efe;
}

const refused = (ip: string, reason: string): AddressVerdict => ({
  ok: false,
  rule: "private_address",
  message: `the host resolves to ${ip}, which is not public (${reason})`,
});
