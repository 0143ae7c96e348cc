/**
 * The row of an event as it is stored: one run of bytes, small enough that an event of 1 KB stays within its page of the
 * store's file, and a bare `Uint8Array`, which Deno KV takes without V8's serialiser.
 *
 *     0   format: 1
 *     1   ids, two bits each from the lowest: id, tenant, identity, partner (0 none, 1 plain, 2 other)
 *     2   kind by its place in `KINDS`; + 8: the owner is the identity; + 16: `at` is not the key's time
 *     3   body: 0 erased, 1 in chunk rows, 2 the envelope, 3 + n the data of an envelope with the head of API_VERSIONS[n]
 *     4…  the ids that are there, the type, the owner, the sequence (0: none), `at`, then the number of chunk rows, or
 *         the body's bytes to the end; what byte 2 says can be known otherwise is left out
 *
 * A number is in groups of seven bits, the lowest first, 128 set on all but the last. A text is the number
 * 2 × length + wide, then one byte a character, or two if wide, which keeps any string as it is. A plain id has its
 * kind's prefix and 26 more characters, which are all that is stored of it.
 *
 * O3: the head is left out only if it is, byte for byte, what `envelopeHead` makes of the other fields; else the whole
 * envelope is stored. Either way what is read is what was written.
 */
import { Buffer } from "node:buffer";
import { API_VERSIONS, envelopeHead } from "./envelope.ts";
import { invariant } from "./errors.ts";
import { type EventId, type EventKey, PREFIX, ulidTime } from "./ids.ts";
import type { EventRow } from "./keys.ts";

/** A row as readers see it. `body` is put together when it is first asked for; the rest tells of it without. */
export interface StoredRow extends EventRow {
  readonly erased: boolean;
  /** How many chunk rows hold the envelope; 0 if none does. */
  readonly chunks: number;
}

const FORMAT = 1;
/** Where the fields begin. */
const FIELDS = 4;
/** Stored by place: only ever added to. */
const KINDS: readonly EventRow["kind"][] = ["mailbox", "domain", "job", "custom", "platform"];
const KIND_BITS = 7, OWNER_IS_IDENTITY = 8, OTHER_TIME = 16;
const NO_ID = 0, PLAIN_ID = 1, OTHER_ID = 2;
const ERASED = 0, CHUNKS = 1, ENVELOPE = 2, DATA = 3;
const NEWEST = API_VERSIONS.length - 1;
/** Characters of a prefix with its underscore, and of an id. */
const PREFIX_LENGTH = 4, ID_LENGTH = 30;
const CLOSING_BRACE = 0x7d;
// deno-lint-ignore no-control-regex -- the range is what one byte holds
const WIDE = /[^\x00-\xff]/;

// --- Writing -----------------------------------------------------------------------------------------

// All fields are written here first, as their length is known at the end; a row is a copy, never a part of it.
let scratch = new Uint8Array(1_024);
let end = 0;

/** The value to store under the event's key. */
export function encodeEventRow(key: EventKey, row: EventRow): Uint8Array<ArrayBuffer> {
  const { type, tenant, identity, partner, owner, seq, at, body } = row;
  const id = row.id ?? null;
  reserve(
    type.length + owner.length + lengthOf(id) + lengthOf(tenant) + lengthOf(identity) + lengthOf(partner),
  );
  const idForm = formOf(id, PREFIX.event), tenantForm = formOf(tenant, PREFIX.tenant);
  const identityForm = formOf(identity, PREFIX.identity), partnerForm = formOf(partner, PREFIX.partner);
  const ownerIsIdentity = owner === identity, otherTime = at !== ulidTime(key);
  const inline = typeof body !== "number" && body !== null;
  const head = inline ? headLength(key, row, body) : 0;
  scratch[0] = FORMAT;
  scratch[1] = idForm | tenantForm << 2 | identityForm << 4 | partnerForm << 6;
  scratch[2] = KINDS.indexOf(row.kind) | (ownerIsIdentity ? OWNER_IS_IDENTITY : 0) |
    (otherTime ? OTHER_TIME : 0);
  scratch[3] = inline ? (head === 0 ? ENVELOPE : DATA + NEWEST) : body === null ? ERASED : CHUNKS;
  end = FIELDS;
  putId(id, idForm);
  putId(tenant, tenantForm);
  putId(identity, identityForm);
  putId(partner, partnerForm);
  putText(type);
  if (!ownerIsIdentity) putText(owner);
  putNumber(seq ?? 0);
  if (otherTime) putNumber(at);
  if (typeof body === "number") putNumber(body);
  if (!inline) return scratch.slice(0, end);
  const stored = head === 0 ? body : body.subarray(head, body.length - 1);
  const bytes = new Uint8Array(end + stored.length);
  bytes.set(scratch.subarray(0, end));
  bytes.set(stored, end);
  return bytes;
}

const lengthOf = (text: string | null) => text === null ? 0 : text.length;

function reserve(characters: number): void {
  const bytes = 2 * characters + 128;
  if (scratch.length < bytes) scratch = new Uint8Array(bytes);
}

function formOf(id: string | null, prefix: string): number {
  if (id === null) return NO_ID;
  const plain = id.length === ID_LENGTH && id.startsWith(prefix) && id[PREFIX_LENGTH - 1] === "_" &&
    !WIDE.test(id);
  return plain ? PLAIN_ID : OTHER_ID;
}

function putId(id: string | null, form: number): void {
  if (form === PLAIN_ID) putNarrow(id!, PREFIX_LENGTH);
  else if (form === OTHER_ID) putText(id!);
}

function putText(text: string): void {
  const wide = WIDE.test(text);
  putNumber(2 * text.length + (wide ? 1 : 0));
  if (!wide) return putNarrow(text, 0);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    scratch[end++] = code & 255;
    scratch[end++] = code >> 8;
  }
}

function putNarrow(text: string, from: number): void {
  for (let i = from; i < text.length; i++) scratch[end++] = text.charCodeAt(i);
}

function putNumber(n: number): void {
  for (; n > 127; n = Math.floor(n / 128)) scratch[end++] = n % 128 + 128;
  scratch[end++] = n;
}

const headOf = (key: EventKey, row: Omit<EventRow, "body">, version: string): string =>
  envelopeHead({
    id: row.id ?? `evt_${key}`,
    type: row.type,
    occurredAt: row.at,
    tenant: row.tenant,
    identity: row.identity,
    sequence: row.seq,
  }, version);

/** How many bytes of the envelope need no storing; 0 if it does not begin as its fields say. */
function headLength(key: EventKey, row: EventRow, body: Uint8Array): number {
  const head = headOf(key, row, API_VERSIONS[NEWEST]!), { length } = head;
  if (body.length <= length || body[body.length - 1] !== CLOSING_BRACE) return 0;
  // As texts of one byte a character, not of UTF-8: then equal texts are equal bytes, whatever is in them.
  return Buffer.from(body.buffer, body.byteOffset, length).toString("latin1") === head ? length : 0;
}

const encoder = new TextEncoder();

// --- Reading -----------------------------------------------------------------------------------------

/**
 * What a value read under an event's key says; null for null. Stores written before rows were bytes hold the fields as an
 * object, which is read as it is.
 * @throws InvariantError for a form of a later release: nothing is guessed about what was signed (O3).
 */
export function eventRowOf(key: EventKey, value: unknown): StoredRow | null {
  if (value === null) return null;
  if (value instanceof Uint8Array) return new PackedRow(key, value);
  const row = value as EventRow;
  return { ...row, erased: row.body === null, chunks: typeof row.body === "number" ? row.body : 0 };
}

class PackedRow implements StoredRow {
  declare readonly id?: EventId;
  readonly type: string;
  readonly tenant: EventRow["tenant"];
  readonly identity: EventRow["identity"];
  readonly partner: EventRow["partner"];
  readonly kind: EventRow["kind"];
  readonly owner: string;
  readonly seq: number | null;
  readonly at: number;
  readonly erased: boolean;
  readonly chunks: number;
  readonly #key: EventKey;
  readonly #bytes: Uint8Array;
  /** Where the body begins. */
  readonly #from: number;
  #body: Uint8Array<ArrayBuffer> | undefined;

  constructor(key: EventKey, bytes: Uint8Array) {
    const known = bytes[0] === FORMAT && bytes[3]! <= DATA + NEWEST;
    invariant(known, "O3 (the form of an event row is one of this release or an earlier one)");
    const forms = bytes[1]!, flags = bytes[2]!, read = new Reader(bytes);
    const id = read.id(forms & 3, PREFIX.event);
    if (id !== null) this.id = id as EventId;
    this.tenant = read.id(forms >> 2 & 3, PREFIX.tenant) as EventRow["tenant"];
    this.identity = read.id(forms >> 4 & 3, PREFIX.identity) as EventRow["identity"];
    this.partner = read.id(forms >> 6, PREFIX.partner) as EventRow["partner"];
    this.type = read.text();
    this.kind = KINDS[flags & KIND_BITS]!;
    this.owner = flags & OWNER_IS_IDENTITY ? this.identity! : read.text();
    this.seq = read.number() || null;
    this.at = flags & OTHER_TIME ? read.number() : ulidTime(key);
    this.erased = bytes[3] === ERASED;
    this.chunks = bytes[3] === CHUNKS ? read.number() : 0;
    this.#key = key;
    this.#bytes = bytes;
    this.#from = read.at;
  }

  get body(): EventRow["body"] {
    if (this.erased) return null;
    return this.chunks || (this.#body ??= this.#envelope());
  }

  #envelope(): Uint8Array<ArrayBuffer> {
    const stored = this.#bytes.subarray(this.#from), version = this.#bytes[3]! - DATA;
    if (version < 0) return stored.slice();
    const head = headOf(this.#key, this, API_VERSIONS[version]!);
    const envelope = new Uint8Array(head.length + stored.length + 1);
    const { read, written } = encoder.encodeInto(head, envelope);
    // One byte a character: nearly every head is ASCII, where both encodings agree and this one is the quick one.
    if (read !== head.length || written !== head.length) {
      Buffer.from(envelope.buffer).write(head, 0, "latin1");
    }
    envelope.set(stored, head.length);
    envelope[envelope.length - 1] = CLOSING_BRACE;
    return envelope;
  }
}

class Reader {
  at = FIELDS;
  readonly #bytes: Buffer;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  id(form: number, prefix: string): string | null {
    if (form === NO_ID) return null;
    return form === PLAIN_ID
      ? `${prefix}_${this.#characters("latin1", ID_LENGTH - PREFIX_LENGTH)}`
      : this.text();
  }

  text(): string {
    const size = this.number(), length = size >> 1;
    return size & 1 ? this.#characters("utf16le", 2 * length) : this.#characters("latin1", length);
  }

  number(): number {
    for (let n = 0, unit = 1;; unit *= 128) {
      const group = this.#bytes[this.at++]!;
      if (group < 128) return n + group * unit;
      n += (group - 128) * unit;
    }
  }

  #characters(encoding: "latin1" | "utf16le", bytes: number): string {
    return this.#bytes.toString(encoding, this.at, this.at += bytes);
  }
}
