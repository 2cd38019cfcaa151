// Makes a PNG of each dashboard: node picture.mjs ANSWERS FOLDER. Debian's Chromium opens page.html; pngquant makes the files small.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { start } from "../../console/browser.mjs";

const [answers, folder] = process.argv.slice(2);
if (!folder) throw new Error("node picture.mjs ANSWERS FOLDER");
const here = dirname(fileURLToPath(import.meta.url));

const browser = await start();
try {
    for (const board of JSON.parse(readFileSync(answers, "utf8"))) {
        const page = await browser.newPage({ viewport: { width: 1400, height: 100 } });
        page.on("pageerror", (error) => { throw error; });
        await page.setContent(readFileSync(join(here, "page.html"), "utf8"));
        for (const script of ["units.js", "chart.js", "board.js"]) await page.addScriptTag({ path: join(here, script) });
        await page.evaluate((what) => drawBoard(what), board);
        const file = join(folder, `dashboard-${board.name}.png`);
        await page.screenshot({ path: file, fullPage: true });
        execFileSync("pngquant", ["--force", "--strip", "--output", file, "--nofs", "64", file]);
        await page.close();
    }
} finally {
    await browser.close();
}
