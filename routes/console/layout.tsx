/** The frame around every page: navigation by place, who is signed in, the way to the content for keyboards. */
import { holds } from "../../lib/reach.ts";
import { CSRF_FIELD } from "./csrf.ts";
import type { Place } from "./reach.ts";
import type { Html, NavName, Visitor } from "./table.ts";

export interface FrameProps {
  title: string;
  body: Html;
  visitor: Visitor;
  place: Place;
  nav: NavName | null;
  csrf: string;
  version: string;
}

export const STYLE_PATH = "/console/assets/console.css";
export const SCRIPT_PATH = "/console/assets/console.js";
export const ICON_PATH = "/console/assets/icon.svg";

export function Document({ title, children }: { title: string; children?: Html }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title} · Pylota webhooks</title>
        <link rel="icon" href={ICON_PATH} type="image/svg+xml" />
        <link rel="stylesheet" href={STYLE_PATH} />
        <script src={SCRIPT_PATH} defer></script>
      </head>
      {children}
    </html>
  );
}

export function Brand({ href }: { href: string }) {
  return (
    <a class="brand" href={href}>
      <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
        <rect width="22" height="22" rx="6" fill="#2a4bbd" />
        <path d="M6 15.5V6.5h5.2a3.1 3.1 0 0 1 0 6.2H9.4" fill="none" stroke="#fff" stroke-width="2" />
        <circle cx="15" cy="15" r="1.9" fill="#9fe3c0" />
      </svg>
      Pylota webhooks
    </a>
  );
}

export function Frame(p: FrameProps) {
  const home = `/console/${p.place.path}`;
  return (
    <Document title={p.title}>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <div class="app">
          <header class="side">
            <Brand href={home} />
            <PlaceLink place={p.place} visitor={p.visitor} />
            <nav class="nav" aria-label="Console">
              <NavList entries={entriesOf(p.place, p.visitor)} current={p.nav} />
              {p.visitor.key.level === "platform"
                ? (
                  <>
                    <h2 id="nav-operation">Operation</h2>
                    <NavList entries={operation(p.visitor)} current={p.nav} labelledby="nav-operation" />
                  </>
                )
                : null}
            </nav>
            <div class="who">
              <div>
                <b>{p.visitor.portal ? "Portal link" : p.visitor.key.name}</b>
                <div class="muted">{whoText(p.visitor)}</div>
              </div>
              <form method="post" action="/console/sign-out">
                <input type="hidden" name={CSRF_FIELD} value={p.csrf} />
                <button class="small-button" type="submit">Sign out</button>
              </form>
              <div class="muted">Version {p.version}</div>
            </div>
          </header>
          <main id="main" tabindex={-1}>{p.body}</main>
        </div>
      </body>
    </Document>
  );
}

const LEVELS = { platform: "Whole service", partner: "Partner", tenant: "Tenant" } as const;

function PlaceLink({ place, visitor }: { place: Place; visitor: Visitor }) {
  const level = LEVELS[place.scope.level];
  const wide = visitor.key.level === "platform" || visitor.key.level === "partner";
  if (!wide) {
    return (
      <div class="place">
        <b>{place.name}</b>
        <span>{level}</span>
      </div>
    );
  }
  return (
    <a class="place" href="/console/scopes">
      <b>{place.name}</b>
      <span>
        {level} <span>Switch</span>
      </span>
    </a>
  );
}

type Entry = [name: NavName, href: string, text: string];

function entriesOf(place: Place, { key, portal }: Visitor): Entry[] {
  const base = `/console/${place.path}`, tenant = place.tenant !== null;
  const entries: Entry[] = [];
  if (holds(key, "webhooks:read")) {
    entries.push(["overview", base, "Overview"], ["endpoints", `${base}/endpoints`, "Endpoints"]);
  }
  if (holds(key, "events:read")) {
    if (tenant) entries.push(["events", `${base}/events`, "Events"]);
    entries.push(["live", `${base}/live`, "Live tail"]);
    entries.push(["catalogue", `${base}/catalogue`, "Event types"]);
  }
  if (tenant && !portal && key.level !== "identity" && holds(key, "webhooks:manage")) {
    entries.push(["access", `${base}/access`, "Customer access"]);
  }
  if (key.level !== "identity" && holds(key, "audit:read")) entries.push(["audit", `${base}/audit`, "Audit"]);
  return entries;
}

function operation({ key }: Visitor): Entry[] {
  const entries: Entry[] = [];
  if (holds(key, "platform:ops")) entries.push(["dead-letters", "/console/dead-letters", "Dead letters"]);
  entries.push(["scopes", "/console/scopes", "Tenants and partners"]);
  return entries;
}

function NavList({ entries, current, labelledby }: {
  entries: Entry[];
  current: NavName | null;
  labelledby?: string;
}) {
  return (
    <ul {...(labelledby === undefined ? {} : { "aria-labelledby": labelledby })}>
      {entries.map(([name, href, text]) => (
        <li>
          <a href={href} {...(name === current ? { "aria-current": "page" } : {})}>{text}</a>
        </li>
      ))}
    </ul>
  );
}

function whoText({ key, portal }: Visitor): string {
  const may = holds(key, "webhooks:manage") ? "manages" : "reads";
  return portal ? `${may === "manages" ? "Managing" : "Read only"}` : `${key.level}-level key, ${may}`;
}
