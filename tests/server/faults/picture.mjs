// Makes the picture of a fault: panels as Grafana has them, and below them the console. A line of JSON on standard input is one picture,
// and a line answers it. The panels are those of ../monitoring/picture.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openPage, start } from "../console/browser.mjs";

const MOST = 110 << 10; // bytes of a picture: fewer colours where they are more
const WIDTH = 960; // of the page; of the picture a third more, as it is read at the width of a page of text
const lookOf = (width) => ({ deviceScaleFactor: 1280 / width, colorScheme: "light" });
const drawing = join(dirname(fileURLToPath(import.meta.url)), "../monitoring/picture");
const WIDE = 1120; // of the console with its table of pools, which has many columns
const HIGH = 410; // px of a console's part at most
const FRAMED = 4; // of what one selector finds

const browser = await start();

/** The part `crop` of a view, and the places in it of what the selectors `marks` find. The page draws itself anew, so a frame is no part of it. */
async function consoleShot({ url, token, hash, click, crop, high, marks }) {
    const seen = { requests: 0, elsewhere: [], violations: [], errors: [] };
    const space = hash.startsWith("pools") ? WIDE : WIDTH;
    const page = await openPage(browser, url, seen, { viewport: { width: space, height: 900 }, ...lookOf(space) });
    try {
        if (token) await page.addInitScript((text) => sessionStorage.setItem("hearth.token", text), token);
        await page.goto(new URL(`/#/${hash}`, url).href);
        if (click) await page.locator(click).click();
        const missing = [];
        for (const mark of marks) await page.locator(mark).first().waitFor({ timeout: 8_000 }).catch(() => missing.push(mark));
        await page.waitForTimeout(300); // of what is drawn a moment later
        const boxes = await Promise.all((await page.locator(crop).all()).map((each) => each.boundingBox()));
        const edge = (of) => Math.round(of(boxes.filter(Boolean)));
        const top = edge((all) => Math.max(0, Math.min(...all.map((box) => box.y)) - 12));
        const left = edge((all) => Math.max(0, Math.min(...all.map((box) => box.x)) - 12));
        const right = edge((all) => Math.min(space, Math.max(...all.map((box) => box.x + box.width)) + 12));
        const bottom = edge((all) => Math.min(top + (high ?? HIGH), Math.max(...all.map((box) => box.y + box.height)) + 12));
        const clip = { x: left, y: top, width: right - left, height: bottom - top };
        const frames = [];
        for (const mark of marks) for (const found of (await page.locator(mark).all()).slice(0, FRAMED)) frames.push(await found.boundingBox());
        const place = ({ x, y, width, height }) => ({ left: `${x - left - 4}px`, top: `${y - top}px`, width: `${Math.min(width + 8, right - x - 4)}px`, height: `${height}px` });
        return { missing, width: clip.width, frames: frames.filter(Boolean).map(place), image: (await page.screenshot({ fullPage: true, clip })).toString("base64") };
    } finally {
        await page.context().close();
    }
}

async function draw({ file, board, caption, view }) {
    const shot = view ? await consoleShot(view) : null;
    const context = await browser.newContext({ viewport: { width: WIDTH, height: 100 }, ...lookOf(WIDTH) });
    const page = await context.newPage();
    page.on("pageerror", (error) => { throw error; });
    await page.setContent(readFileSync(join(drawing, "page.html"), "utf8"));
    for (const script of ["units.js", "chart.js", "board.js"]) await page.addScriptTag({ path: join(drawing, script) });
    await page.evaluate(async ({ board, caption, shot, width }) => {
        document.body.style.width = `${width}px`;
        drawBoard(board);
        const footer = document.querySelector("footer");
        footer.textContent = "Graphs: drawn by Hearth's docs, not Grafana, from a test of half a minute. Console: Chromium. Red frames are ours.";
        const words = document.createElement("h2");
        words.textContent = caption;
        words.style.cssText = "font-size: 14px; padding: 4px 0 6px 2px";
        footer.before(words);
        if (!shot) return;
        const image = new Image();
        image.src = `data:image/png;base64,${shot.image}`;
        await image.decode();
        const scale = Math.min(1, (width - 40) / shot.width);
        const room = document.createElement("div");
        room.style.cssText = `border: 1px solid #dfe2e6; border-radius: 3px; overflow: hidden; position: relative; width: ${shot.width}px; zoom: ${scale}`;
        image.style.cssText = `display: block; width: ${shot.width}px`;
        room.append(image);
        for (const frame of shot.frames) {
            const mark = document.createElement("div");
            Object.assign(mark.style, { position: "absolute", border: "2.5px solid #d6303a", borderRadius: "4px", ...frame });
            room.append(mark);
        }
        footer.before(room);
    }, { board, caption, shot, width: WIDTH });
    const whole = await page.screenshot({ fullPage: true });
    await context.close();
    for (const colours of [128, 96, 64, 48]) {
        const small = execFileSync("pngquant", ["--strip", "--nofs", String(colours), "-"], { input: whole });
        writeFileSync(file, small);
        if (small.length < MOST) break;
    }
    return shot?.missing ?? [];
}

for await (const line of createInterface({ input: process.stdin })) {
    try {
        console.log(JSON.stringify({ missing: await draw(JSON.parse(line)), error: null }));
    } catch (error) {
        console.log(JSON.stringify({ missing: [], error: String(error.stack ?? error) }));
    }
}
await browser.close();
