/**
 * The address ranges no delivery may reach (reference §6 rule 5), checked against the IANA special-purpose registries.
 * Where the registry calls a range globally reachable and it is still here, that is policy: no webhook receiver lives there.
 */

/** One refused range and why. */
export type Range = readonly [cidr: string, reason: string];

export const REFUSED_IPV4: readonly Range[] = [
  ["0.0.0.0/8", "this network, RFC 791"],
  ["10.0.0.0/8", "private use, RFC 1918"],
  ["100.64.0.0/10", "shared address space, RFC 6598"],
  ["127.0.0.0/8", "loopback, RFC 1122"],
  ["168.63.129.16/32", "Azure host services: a public address that answers from inside the host"],
  ["169.254.0.0/16", "link local and cloud metadata, RFC 3927"],
  ["172.16.0.0/12", "private use, RFC 1918"],
  ["192.0.0.0/24", "IETF protocol assignments, RFC 6890"],
  ["192.0.2.0/24", "documentation, RFC 5737"],
  ["192.31.196.0/24", "AS112-v4, RFC 7535 (policy)"],
  ["192.52.193.0/24", "AMT, RFC 7450 (policy)"],
  ["192.88.99.0/24", "deprecated 6to4 relay anycast, RFC 7526"],
  ["192.168.0.0/16", "private use, RFC 1918"],
  ["192.175.48.0/24", "direct delegation AS112, RFC 7534 (policy)"],
  ["198.18.0.0/15", "benchmarking, RFC 2544"],
  ["198.51.100.0/24", "documentation, RFC 5737"],
  ["203.0.113.0/24", "documentation, RFC 5737"],
  ["224.0.0.0/4", "multicast, RFC 5771"],
  ["240.0.0.0/4", "reserved and limited broadcast, RFC 1112"],
];

/**
 * Global unicast. All else is refused at once: mapped, compatible, translated, NAT64, discard-only, unique-local,
 * link-local, site-local and multicast forms lie outside it, whatever IPv4 address they embed.
 */
export const GLOBAL_IPV6 = "2000::/3";

export const REFUSED_IPV6: readonly Range[] = [
  ["2001::/23", "IETF protocol assignments, RFC 2928: Teredo, ORCHID, benchmarking, AMT and more"],
  ["2001:db8::/32", "documentation, RFC 3849"],
  ["2002::/16", "6to4, RFC 3056: embeds any IPv4 address"],
  ["2620:4f:8000::/48", "direct delegation AS112, RFC 7534 (policy)"],
  ["3fff::/20", "documentation, RFC 9637"],
];
