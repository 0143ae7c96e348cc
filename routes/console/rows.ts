/** Every row of the console. */
import { assetRows } from "./assets.ts";
import { endpointList } from "./pages/endpoint_list.tsx";
import { overview } from "./pages/overview.tsx";
import { signInRows, signOutRows } from "./pages/sign_in.tsx";
import { homeOf } from "./reach.ts";
import { type ConsoleRow, type OpenRow, redirect } from "./table.ts";

export const openRows: readonly OpenRow[] = [...assetRows, ...signInRows];

export const consoleRows: readonly ConsoleRow[] = [
  {
    method: "GET",
    path: "/console",
    needs: "session",
    handler: ({ visitor }) => redirect(`/console/${homeOf(visitor.key)}`),
  },
  ...signOutRows,
  { method: "GET", path: "/console/{scope}", needs: "webhooks:read", handler: overview },
  { method: "GET", path: "/console/{scope}/endpoints", needs: "webhooks:read", handler: endpointList },
];
