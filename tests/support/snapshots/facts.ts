/** What a snapshot's store held when it was made: enough to drain it and to know that it was drained right. */

export interface Facts {
  release: string;
  /** Unix ms at which the snapshot was taken. */
  now: number;
  /** Secrets that verify a delivery to a URL; the older one of an overlap is second. */
  secrets: Record<string, string[]>;
  /** Static headers a URL's deliveries carry. */
  headers: Record<string, Record<string, string>>;
  /** An API key, and the pepper it was hashed under, in base64. */
  apiKey: { text: string; pepper: string };
  partner: string;
  tenant: string;
  owner: { kind: "custom"; tenant: string; id: string; sequence: number };
  /** A deterministic id the owner has appended, and its sequence. */
  seen: { id: string; sequence: number };
  /** Events each URL still has to get: fanned out by nobody, in flight, to be retried, or held for the partner. */
  owed: Record<string, string[]>;
  /** Those of them that are held until the partner is active again. */
  held: string[];
  /** The attempt a URL's event waits for, when it has failed before. */
  retried: { url: string; event: string; attempt: number }[];
  /** Events each URL has had: never sent again but by replay. */
  had: Record<string, string[]>;
  deadLetter: { id: string; url: string; event: string };
  /** The envelope of each event that was sent, by its id: what every later attempt must send (O3). "" for a long one. */
  bodies: Record<string, string>;
}
