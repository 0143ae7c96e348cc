/** The pages of /docs in Chromium: no axe violation in light and dark, nothing refused by the policy, no side scroll on a phone. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { guideNames } from "../../routes/docs/guides.ts";
import { findChromium, HOW_TO_GET_ONE, launch, serve } from "../e2e/browser/support.ts";

const CHROMIUM = findChromium();
if (CHROMIUM === null) console.warn(HOW_TO_GET_ONE);
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const ARTIFACTS = new URL("../artifacts/docs/", import.meta.url);
const PAGES = ["/docs", "/docs/api", ...guideNames.map((name) => `/docs/guides/${name}`)];

Deno.test({
  name: "docs: every page in a browser, light and dark, wide and narrow, without JavaScript",
  ignore: CHROMIUM === null,
  // Playwright keeps pipes and timers of its own until the process ends.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const served = await serve();
    const browser = await launch(CHROMIUM!);
    await Deno.mkdir(ARTIFACTS, { recursive: true });
    try {
      for (const colorScheme of ["light", "dark"] as const) {
        for (const width of [1280, 390]) {
          // The pages have no script; it is on for axe alone, which is put in past the policy.
          const context = await browser.newContext({
            colorScheme,
            viewport: { width, height: 900 },
            bypassCSP: true,
          });
          const page = await context.newPage();
          for (const path of PAGES) {
            const where = `${path}, ${colorScheme}, ${width} px`;
            await page.goto(served.origin + path);
            await page.screenshot({
              path: new URL(`${path.slice(1).replaceAll("/", "-")}-${colorScheme}-${width}.png`, ARTIFACTS)
                .pathname,
            });
            const wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
            assert.equal(wide, false, `${where} scrolls sideways`);
            if (path === "/docs/api" && (width !== 1280 || colorScheme === "dark")) continue; // long: once is enough
            await page.addScriptTag({ path: AXE });
            // deno-lint-ignore no-explicit-any
            const { violations }: any = await page.evaluate(
              "axe.run(document, { resultTypes: ['violations'] })",
            );
            assert.deepEqual(
              // deno-lint-ignore no-explicit-any
              violations.map((v: any) => `${v.id}: ${v.nodes.slice(0, 3).map((n: any) => n.html).join(" ")}`),
              [],
              where,
            );
          }
          await context.close();
        }
      }
      const context = await browser.newContext({ javaScriptEnabled: false });
      const page = await context.newPage();
      const refused: string[] = [];
      page.on("console", (message) => void refused.push(message.text()));
      const loaded: string[] = [];
      page.on("request", (request) => void loaded.push(new URL(request.url()).pathname));
      for (const path of PAGES) await page.goto(served.origin + path);
      assert.deepEqual(refused, []);
      assert.deepEqual(loaded.filter((path) => path !== "/favicon.ico"), PAGES, "a page is one request");
      await context.close();
    } finally {
      await browser.close();
      await served.close();
    }
  },
});
