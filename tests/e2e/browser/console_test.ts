/**
 * The console in Chromium: every page in light and dark without an axe violation or a console error, with a picture kept for
 * people; forms, keyboard, live parts and copying as a person uses them; and all of it without JavaScript.
 * Without a Chromium on the machine it says how to get one, and is counted as ignored.
 */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { keys } from "../../../lib/keys.ts";
import { findChromium, HOW_TO_GET_ONE, launch, serve, type Served, shoot, signIn } from "./support.ts";

const CHROMIUM = findChromium();
if (CHROMIUM === null) console.warn(HOW_TO_GET_ONE);
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

function inBrowser(name: string, body: (browser: Browser, served: Served) => Promise<void>): void {
  Deno.test({
    name: CHROMIUM === null ? `${name} (no Chromium: apt-get install chromium)` : name,
    ignore: CHROMIUM === null,
    // Playwright keeps pipes and timers of its own until the process ends.
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const served = await serve();
      const browser = await launch(CHROMIUM!);
      try {
        await body(browser, served);
      } finally {
        await browser.close();
        await served.close();
      }
    },
  });
}

/** A page whose errors, its own and refused loads, fail the test. */
async function open(context: BrowserContext, errors: string[]): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => void errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/the server responded with a status of 4\d\d/.test(message.text())) {
      errors.push(message.text());
    }
  });
  return page;
}

async function withPage(
  browser: Browser,
  options: Parameters<Browser["newContext"]>[0],
  body: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext(options), errors: string[] = [];
  try {
    await body(await open(context, errors));
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
  }
}

function addresses(
  { seeded: { acme, partner, endpoints, attempts, events } }: Served,
): Record<string, string> {
  const retried = attempts.find(({ status }) => status === "failed")!;
  const healthy = `/console/endpoints/${endpoints.healthy.id}`;
  return {
    "sign-in": "/console/sign-in",
    "portal": "/console/portal?token=x",
    "overview-platform": "/console/platform",
    "overview-partner": `/console/${partner}`,
    "overview-tenant": `/console/${acme.id}`,
    "endpoints": `/console/${acme.id}/endpoints`,
    "endpoints-none-fit": `/console/${acme.id}/endpoints?q=nothing`,
    "endpoint-new": `/console/${acme.id}/endpoints/new`,
    "endpoint-healthy": healthy,
    "endpoint-failing": `/console/endpoints/${endpoints.failing.id}`,
    "endpoint-gone": `/console/endpoints/${endpoints.gone.id}?done=saved`,
    "endpoint-filtered": `${healthy}?status=failed`,
    "endpoint-bad-filter": `${healthy}?event_id=no`,
    "endpoint-edit": `${healthy}/edit`,
    "replay": `${healthy}/replay`,
    "replay-counted": `${healthy}/replay?since=2020-01-01T00:00&until=2040-01-01T00:00&status=succeeded`,
    "delivery": `${healthy}/deliveries/${retried.id}`,
    "events": `/console/${acme.id}/events`,
    "event": `/console/events/${events[20]!.id}`,
    "live": `/console/${acme.id}/live`,
    "live-platform": "/console/platform/live",
    "catalogue": `/console/${acme.id}/catalogue`,
    "type": `/console/${acme.id}/catalogue/message.received`,
    "access": `/console/${acme.id}/access`,
    "audit": `/console/${acme.id}/audit`,
    "scopes": "/console/scopes",
    "dead-letters": "/console/dead-letters",
    "not-found": "/console/nothing",
  };
}

interface Violation {
  id: string;
  help: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** What axe finds, one line each. It runs through the debugger, which the page's policy does not bind. */
async function violations(page: Page): Promise<string[]> {
  const source = await Deno.readTextFile(AXE);
  await page.evaluate(source);
  const found = await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  ) as Violation[];
  return found.map(({ id, help, nodes }) =>
    `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`
  );
}

for (const colorScheme of ["light", "dark"] as const) {
  inBrowser(
    `console in Chromium: every page in ${colorScheme} is without an axe violation`,
    async (browser, served) => {
      const letter = served.server.services.ids.next("deadLetter");
      const job = { v: 1, kind: "fanout", events: [served.server.services.ids.ulid()], throws: 13 };
      await served.server.services.kv.atomic()
        .set(keys.deadLetter(letter), { id: letter, job, error: "TypeError", created_at: Date.now() })
        .commit();
      const wrong: string[] = [];
      await withPage(browser, {
        colorScheme,
        viewport: { width: 1280, height: 900 },
        reducedMotion: "reduce",
      }, async (page) => {
        await signIn(page, served.origin, served.key);
        for (const [name, path] of Object.entries(addresses(served))) {
          await page.goto(served.origin + path);
          await shoot(page, `${name}-${colorScheme}`);
          wrong.push(...(await violations(page)).map((text) => `${name}: ${text}`));
        }
      });
      assert.deepEqual(wrong, []);
    },
  );
}

inBrowser("console in Chromium: on a phone nothing is wider than the screen", async (browser, served) => {
  await withPage(browser, { viewport: { width: 360, height: 740 } }, async (page) => {
    await signIn(page, served.origin, served.key);
    for (const [name, path] of Object.entries(addresses(served))) {
      await page.goto(served.origin + path);
      const width = await page.evaluate("document.documentElement.scrollWidth") as number;
      assert.ok(width <= 360, `${name} is ${width} px wide`);
      await shoot(page, `${name}-phone`);
    }
  });
});

/** From creating an endpoint to deleting it. Used with the script and without. */
async function lifeOfAnEndpoint(page: Page, served: Served): Promise<void> {
  const { origin, seeded: { acme }, receiver } = served;
  await signIn(page, origin, served.key);
  await page.goto(`${origin}/console/${acme.id}/endpoints`);
  await page.getByRole("link", { name: "New endpoint" }).click();
  await page.getByLabel("Address", { exact: true }).fill("https://10.0.0.1/hook");
  await page.getByRole("button", { name: "Create the endpoint" }).click();
  await page.getByRole("alert").getByText("Address:").waitFor();
  await page.getByLabel("Address", { exact: true }).fill(`${receiver}/life`);
  await page.getByLabel("Description", { exact: true }).fill("Made in a browser");
  await page.getByRole("button", { name: "Create the endpoint" }).click();
  await page.getByText(/^whsec_/).waitFor();
  await page.getByRole("link", { name: "To the endpoint" }).click();
  await page.getByRole("heading", { level: 1, name: `${receiver}/life` }).waitFor();

  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("The receiver answered 204").waitFor();
  assert.equal(served.received.filter((path) => path === "/life").length, 1);
  await page.goBack();

  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByText("Disabled. Nothing is delivered").waitFor();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText("Enabled. New events are delivered").waitFor();

  await page.getByRole("link", { name: "Replay" }).click();
  await page.getByLabel("Whose state").selectOption("");
  await page.getByRole("button", { name: "Count them" }).click();
  await page.getByRole("button", { name: "Replay 40 events" }).click();
  await page.waitForURL(/\/replays\//);
  for (let tries = 0; !await page.getByText("All were tried").isVisible(); tries++) {
    assert.ok(tries < 100, "the replay ends");
    await page.getByRole("link", { name: "Refresh" }).click();
  }
  assert.equal(served.received.filter((path) => path === "/life").length, 41);
  await page.getByRole("link", { name: "To the endpoint" }).click();

  await page.getByRole("link", { name: /ago|just now/ }).first().click();
  await page.getByRole("button", { name: "Redeliver" }).click();
  await page.getByText("Queued to be delivered again").waitFor();
  await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: `${receiver}/life` })
    .click();

  await page.getByRole("button", { name: "Rotate the secret" }).click();
  await page.getByText(/^whsec_/).waitFor();
  await page.getByRole("link", { name: "To the endpoint" }).click();
  await page.getByText("Delete this endpoint").click();
  await page.getByRole("button", { name: "Delete for good" }).click();
  await page.waitForURL(/\/endpoints\?done=deleted/);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}

inBrowser(
  "console in Chromium: an endpoint's life, from creating it to deleting it",
  async (browser, served) => {
    await withPage(browser, {}, (page) => lifeOfAnEndpoint(page, served));
  },
);

inBrowser("console in Chromium: all of it without JavaScript", async (browser, served) => {
  await withPage(browser, { javaScriptEnabled: false }, (page) => lifeOfAnEndpoint(page, served));
});

inBrowser(
  "console in Chromium: a portal link signs in once, in a browser of its own",
  async (browser, served) => {
    const { origin, seeded: { acme } } = served;
    let url = "";
    await withPage(browser, {}, async (page) => {
      await signIn(page, origin, served.key);
      await page.goto(`${origin}/console/${acme.id}/access`);
      await page.getByRole("button", { name: "Make a link" }).click();
      url = (await page.locator("#link").textContent())!;
      await shoot(page, "access-made-light");
    });
    await withPage(browser, {}, async (page) => {
      await page.goto(url);
      await page.getByRole("button", { name: "Open the console" }).click();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      assert.equal(await page.getByRole("link", { name: "Customer access" }).count(), 0);
      await page.goto(`${origin}/console/${acme.id}/endpoints`);
      assert.equal(await page.getByRole("link", { name: "New endpoint" }).count(), 0);
      await shoot(page, "portal-endpoints-light");
    });
    const again = await browser.newContext();
    const page = await again.newPage();
    await page.goto(url);
    await page.getByRole("button", { name: "Open the console" }).click();
    await page.getByRole("heading", { name: "This link is over" }).waitFor();
    await again.close();
  },
);

inBrowser(
  "console in Chromium: the live tail shows an event within seconds, and Pause stops it",
  async (browser, served) => {
    const { origin, key, seeded: { acme } } = served;
    const append = async (order: string) => {
      const response = await fetch(`${origin}/v1/tenants/${acme.id}/owners/${order}/events`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ type: "order.paid", data: { order_id: order } }),
      });
      assert.equal(response.status, 201, await response.text());
    };
    await withPage(browser, {}, async (page) => {
      await signIn(page, origin, key);
      await page.goto(`${origin}/console/${acme.id}/live`);
      await append("seen-live");
      await page.clock.runFor(2_000);
      await page.getByText("seen-live").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("status").getByText("Paused").waitFor();
      await append("while-paused");
      const asked: string[] = [];
      page.on("request", (request) => void asked.push(request.url()));
      await page.clock.runFor(20_000);
      assert.deepEqual(asked, []);
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText("while-paused").waitFor();
    });
  },
);

inBrowser(
  "console in Chromium: by keyboard alone: skip link, sign-in, filters, copy",
  async (browser, served) => {
    const { origin, key, seeded: { acme, events } } = served;
    await withPage(browser, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
      await page.goto(`${origin}/console/sign-in`);
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.type(key);
      await page.keyboard.press("Enter");
      await page.waitForURL(/platform/);
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to the content");
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate("document.activeElement.id"), "main");
      await page.goto(`${origin}/console/${acme.id}/events`);
      await page.getByLabel("Type", { exact: true }).focus();
      await page.keyboard.type("order.paid");
      await page.keyboard.press("Enter");
      await page.waitForURL(/type=order.paid/);
      await page.goto(`${origin}/console/events/${events[0]!.id}`);
      await page.locator("[data-copy=pretty]").focus();
      await page.keyboard.press("Enter");
      await page.getByText("Copied").waitFor();
      assert.match(await page.evaluate("navigator.clipboard.readText()") as string, /"type": "order.paid"/);
    });
  },
);
