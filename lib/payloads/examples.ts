/** Ids and people of the examples: invented, and the same throughout, so that the catalogue reads as one story. */
import type { MessageSummary } from "./shapes.ts";

export const EXAMPLE = {
  tenant: "ten_01K6GZ3T9QW5X8V7R2N4M6P1BD",
  identity: "idn_01K6GZ4A7DSE0JY5H3C8F2K9TM",
  message: "msg_01K6H0Q2V8N3B5C7X9Z1M4K6JD",
  outbound: "msg_01K6H2S4X0P5D7E9Z1B3M6K8TF",
  thread: "thr_01K6H0Q2V9R4T6Y8W0A2S5D7FG",
  attachment: "att_01K6H0Q2VAJ5K7M9N1P3Q5R7ST",
  address: "adr_01K6GZ4A7E1B3D5F7H9K2M4P6R",
  previousAddress: "adr_01K6GZ4A7F2C4E6G8J0M3N5Q7S",
  key: "key_01K6GZ5B8FTG1KZ6J4D9G3M0VN",
  user: "usr_01K6GZ6C9GVH2M07K5EAH4N1WP",
} as const;

const noor = { address: "noor@werkbank.example", name: "Noor Aziz" };

export const exampleSummary: MessageSummary = {
  id: EXAMPLE.message,
  thread_id: EXAMPLE.thread,
  direction: "inbound",
  status: "received",
  from: { address: "marta.oduya@lindenhof.example", name: "Marta Oduya" },
  to: [noor],
  cc: [],
  delivered_to: "noor@werkbank.example",
  is_primary_recipient: true,
  subject: "Offer for the standing desks",
  sent_at: "2026-10-02T08:14:55.000Z",
  received_at: "2026-10-02T08:15:02.417Z",
  kind: "mail",
  labels: ["sales"],
  in_reply_to: null,
  flags: ["has_attachments"],
};

export const exampleOutbound: MessageSummary = {
  ...exampleSummary,
  id: EXAMPLE.outbound,
  direction: "outbound",
  status: "sent",
  from: noor,
  to: [exampleSummary.from],
  delivered_to: null,
  is_primary_recipient: false,
  subject: "Re: Offer for the standing desks",
  sent_at: "2026-10-02T09:02:11.120Z",
  received_at: null,
  labels: [],
  in_reply_to: "<20261002081455.7c1@lindenhof.example>",
  flags: [],
};
