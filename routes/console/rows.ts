/** Every row of the console. */
import { assetRows } from "./assets.ts";
import { accessPage } from "./pages/access.tsx";
import { auditPage } from "./pages/audit.tsx";
import { cataloguePage, typePage } from "./pages/catalogue.tsx";
import { deadLetters, redrive } from "./pages/dead_letters.tsx";
import { deliveryPage, redeliver } from "./pages/delivery.tsx";
import { endpointPage } from "./pages/endpoint.tsx";
import { removeEndpoint, rotate, sendTest, setEnabled } from "./pages/endpoint_acts.tsx";
import { editEndpoint, newEndpoint } from "./pages/endpoint_form.tsx";
import { endpointList } from "./pages/endpoint_list.tsx";
import { eventPage, find } from "./pages/event.tsx";
import { eventList } from "./pages/events.tsx";
import { livePage } from "./pages/live.tsx";
import { overview } from "./pages/overview.tsx";
import { replayForm, runReplay } from "./pages/replay.tsx";
import { replayProgress } from "./pages/replay_progress.tsx";
import { scopesPage } from "./pages/scopes.tsx";
import { signInRows, signOutRows } from "./pages/sign_in.tsx";
import { homeOf } from "./reach.ts";
import { type ConsoleRow, type OpenRow, redirect } from "./table.ts";

export const openRows: readonly OpenRow[] = [...assetRows, ...signInRows];

type Handler = ConsoleRow["handler"];
const get = (path: string, needs: ConsoleRow["needs"], handler: Handler): ConsoleRow => ({
  method: "GET",
  path: `/console${path}`,
  needs,
  handler,
});
const post = (path: string, needs: ConsoleRow["needs"], handler: Handler): ConsoleRow => ({
  method: "POST",
  path: `/console${path}`,
  needs,
  handler,
});

const ENDPOINT = "/endpoints/{webhook_id}";

export const consoleRows: readonly ConsoleRow[] = [
  get("", "session", ({ visitor }) => redirect(`/console/${homeOf(visitor.key)}`)),
  ...signOutRows,
  get("/scopes", "session", scopesPage),
  get("/find", "session", find),
  get("/dead-letters", "platform:ops", deadLetters),
  post("/dead-letters/{dead_letter_id}/redrive", "platform:ops", redrive),
  get("/events/{event_id}", "events:read", eventPage),

  get(ENDPOINT, "webhooks:read", endpointPage),
  get(`${ENDPOINT}/edit`, "webhooks:manage", editEndpoint),
  post(`${ENDPOINT}/edit`, "webhooks:manage", editEndpoint),
  post(`${ENDPOINT}/enable`, "webhooks:manage", (c) => setEnabled(c, true)),
  post(`${ENDPOINT}/disable`, "webhooks:manage", (c) => setEnabled(c, false)),
  post(`${ENDPOINT}/test`, "webhooks:manage", sendTest),
  post(`${ENDPOINT}/rotate-secret`, "webhooks:manage", rotate),
  post(`${ENDPOINT}/delete`, "webhooks:manage", removeEndpoint),
  get(`${ENDPOINT}/replay`, "webhooks:manage", replayForm),
  post(`${ENDPOINT}/replay`, "webhooks:manage", runReplay),
  get(`${ENDPOINT}/replays/{run}`, "webhooks:read", replayProgress),
  get(`${ENDPOINT}/deliveries/{delivery_id}`, "webhooks:read", deliveryPage),
  post(`${ENDPOINT}/deliveries/{delivery_id}/redeliver`, "webhooks:manage", redeliver),

  get("/{scope}", "webhooks:read", overview),
  get("/{scope}/endpoints", "webhooks:read", endpointList),
  get("/{scope}/endpoints/new", "webhooks:manage", newEndpoint),
  post("/{scope}/endpoints/new", "webhooks:manage", newEndpoint),
  get("/{scope}/events", "events:read", eventList),
  get("/{scope}/live", "events:read", livePage),
  get("/{scope}/catalogue", "events:read", cataloguePage),
  get("/{scope}/catalogue/{name}", "events:read", typePage),
  get("/{scope}/audit", "audit:read", auditPage),
  get("/{scope}/access", "webhooks:manage", accessPage),
  post("/{scope}/access", "webhooks:manage", accessPage),
];
