// Makes a PNG of each dashboard from Grafana's own parts: node grafana.mjs ANSWERS FOLDER. Prints what is wrong with a panel.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { start } from "../../console/browser.mjs";

const [answers, folder] = process.argv.slice(2);
if (!folder) throw new Error("node grafana.mjs ANSWERS FOLDER");
const here = dirname(fileURLToPath(import.meta.url));
const boards = join(here, "../../../../helm/hearth/dashboards");
const WIDTH = 1400, PAGE = "http://grafana.invalid/"; // a page of an origin: Grafana's parts ask for storage
const unused = { ".svg": "text", ".ttf": "empty", ".png": "empty", ".woff": "empty" };
const [script, style] = buildSync({
    entryPoints: [join(here, "page.jsx")], bundle: true, write: false, outdir: "out", format: "iife", logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"', global: "window" }, loader: { ...unused, ".woff2": "dataurl" },
    alias: { "monaco-editor": join(here, "none.mjs"), "react-monaco-editor": join(here, "none.mjs") },
}).outputFiles.map(({ text }) => text);

const browser = await start();
try {
    for (const told of JSON.parse(readFileSync(answers, "utf8"))) {
        const page = await browser.newPage({ viewport: { width: WIDTH, height: 100 } });
        page.on("pageerror", (error) => console.log(`${told.name}: ${error.message}`));
        await page.route("**", (route) => route.request().url() === PAGE ? route.fulfill({ contentType: "text/html", body: "<!doctype html><div id=root></div>" }) : route.abort());
        await page.goto(PAGE);
        await page.addStyleTag({ content: style });
        await page.addScriptTag({ content: script });
        const board = JSON.parse(readFileSync(join(boards, `${told.name}.json`), "utf8"));
        await page.evaluate(([...all]) => drawBoard(...all), [board, told, WIDTH]);
        await page.waitForTimeout(1000); // charts are drawn in later frames
        for (const title of await page.evaluate(() => overflowing())) console.log(`${told.name}: ${title}: the legend has no room`);
        await page.screenshot({ path: join(folder, `grafana-${told.name}.png`), fullPage: true });
        await page.close();
    }
} finally {
    await browser.close();
}
