// node look.mjs MODULES BROWSER FOLDER NAME=PAGE...: opens pages at three widths, light and dark, and in print. It writes a
// line of JSON for each look, with the faults that axe finds, and keeps a picture in FOLDER.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, executablePath, folder, ...files] = process.argv.slice(2);
const need = createRequire(path.join(modules, "x.js"));
const { chromium } = need("playwright-core");
const axe = fs.readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");
const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args });

function tell(found) {
  process.stdout.write(`${JSON.stringify(found)}\n`);
}

async function findFaults(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, impact, nodes }) => ({ id, impact, first: nodes[0].target.join(" "), count: nodes.length }));
}

async function useControls(page) {
  const used = {};
  const verdicts = page.locator("#map .buttons").first().getByRole("button");
  if (await verdicts.count()) {
    const cells = page.locator("#map .map").first().locator("li:visible");
    const all = await cells.count();
    await verdicts.first().click();
    used.filtered = (await cells.count()) < all;
    await verdicts.first().click();
    used.shown = (await cells.count()) === all;
  }
  const field = page.locator("input.around");
  if (await field.count()) {
    const drawing = page.locator("svg.timeline").first();
    const before = await drawing.boundingBox();
    await page.locator(".zoom button").nth(1).click();
    used.zoomed = Math.round((await drawing.boundingBox()).width / before.width);
    await page.locator(".zoom button").first().click();
    await field.fill("");
    const rows = page.locator("#moments tbody tr:visible");
    const all = await rows.count();
    await drawing.click({ position: { x: before.width / 2, y: 50 } });
    used.asked = /^\d\d:\d\d:\d\d/.test(await field.inputValue());
    used.around = (await rows.count()) <= Math.min(12, all);
    used.marks = await page.locator(".mark").count();
  }
  return used;
}

for (const each of files) {
  const [name, file] = each.split("=");
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 768, 1280]) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const errors = [];
      page.on("pageerror", (error) => errors.push(String(error)));
      await page.goto(pathToFileURL(file).href);
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      const look = `${name}-${colorScheme}-${width}`;
      await page.screenshot({ path: path.join(folder, `${look}.png`), fullPage: true });
      const faults = await findFaults(page);
      const used = width === 1280 && colorScheme === "light" ? await useControls(page) : {};
      if (width === 1280 && colorScheme === "light") {
        await page.reload();
        await page.pdf({ path: path.join(folder, `${name}.pdf`), format: "A4" });
      }
      tell({ look, sideways, faults, used, errors });
      await page.close();
    }
  }
}
await browser.close();
