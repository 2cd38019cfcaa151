// Makes a PNG of each dashboard: node picture.mjs ANSWERS FOLDER. Debian's Chromium opens page.html; pngquant makes the files small.

import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { start } from "../../console/browser.mjs";

const [answers, folder] = process.argv.slice(2);
if (!folder) throw new Error("node picture.mjs ANSWERS FOLDER");
const MOST = 150 << 10; // bytes of a picture: fewer colours where they are more
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
        const whole = readFileSync(file);
        for (const colours of [256, 128, 96, 64]) {
            writeFileSync(file, execFileSync("pngquant", ["--strip", "--nofs", String(colours), "-"], { input: whole }));
            if (statSync(file).size < MOST) break;
        }
        await page.close();
    }
} finally {
    await browser.close();
}
