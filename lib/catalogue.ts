/** Contract of the event catalogue; the list follows. */
import type * as z from "zod";

export interface EventType {
  name: string;
  owner: "mailbox" | "domain" | "job" | "platform";
  /** zod schema of `data`, strict: what goes out is exactly this. */
  data: z.ZodType;
  example: unknown;
  description: string;
}
