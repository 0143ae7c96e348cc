/** Every event type of owner kind `mailbox`, in the order of reference §5: the mailbox part of the catalogue. */
import type { EventType } from "../catalogue.ts";
import { identityTypes } from "./identity.ts";
import { messageTypes, verificationReceived } from "./message.ts";
import { outcomeTypes } from "./outcome.ts";
import { suppressionTypes } from "./suppression.ts";

export const mailboxTypes: EventType[] = [
  ...messageTypes,
  ...outcomeTypes,
  verificationReceived,
  ...suppressionTypes,
  ...identityTypes,
];
