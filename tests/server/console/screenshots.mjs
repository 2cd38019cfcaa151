// Writes pictures of the console's views: node screenshots.mjs URL FOLDER [TOKEN]. It opens a workspace and ends it.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { apiOf, openPage, start } from "./browser.mjs";

const [url, folder, token] = process.argv.slice(2);
if (!folder) throw new Error("node screenshots.mjs URL FOLDER [TOKEN]");
const SIZES = [
    ["light", { viewport: { width: 1280, height: 800 }, colorScheme: "light" }],
    ["dark", { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
    ["narrow", { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true }],
];
const CODE = "import matplotlib.pyplot as plt\nfor day, claims in enumerate([120, 340, 280], 1):\n    print(f'day {day}: {claims} claims')\n"
    + "plt.figure(figsize=(6, 2.6)); plt.plot([3, 5, 4, 8, 7, 12]); plt.show()";

mkdirSync(folder, { recursive: true });
const api = apiOf(url, token);
const browser = await start();
const workspace = await api("POST", "/v1/workspaces", { name: "nightly report", language: "python", labels: { job: "42" }, files: [{ path: "report/notes.txt", text: "first line\n" }, { path: "data.csv", text: "day,claims\n1,120\n" }] });
try {
    for (const [name, options] of SIZES) {
        const page = await openPage(browser, url, { requests: 0, elsewhere: [], violations: [], errors: [] }, options);
        if (token) await page.addInitScript((text) => sessionStorage.setItem("hearth.token", text), token);
        const shot = (what) => page.screenshot({ path: join(folder, `${what}-${name}.png`) });
        for (const view of ["pools", `pools/${workspace.pool}`, "workspaces", "schedules", "events", "usage", "log", "gpus"]) {
            await page.goto(new URL(`/#/${view}`, url).href);
            await page.waitForTimeout(1500);
            await shot(view.replace(/\/.*/, "-one"));
        }
        await page.goto(new URL(`/#/workspaces/${workspace.id}`, url).href);
        await page.locator("#source").fill(CODE);
        await page.locator("#source").press("Control+Enter");
        await page.locator(".run-status .state:not(.busy)").waitFor({ timeout: 60_000 });
        await page.waitForTimeout(800);
        await shot("run");
        await page.locator("#tab-terminal").click();
        await page.getByText("The shell runs.").waitFor();
        await page.locator(".terminal-room").click();
        await page.keyboard.type("ls -l --color=always; python3 -c 'print(6 * 7)'\n");
        await page.waitForTimeout(1500);
        await shot("terminal");
        await page.locator("#tab-files").click();
        await page.getByRole("button", { name: "data.csv", exact: true }).click();
        await page.waitForTimeout(800);
        await shot("files");
        await page.context().close();
    }
} finally {
    await api("DELETE", `/v1/workspaces/${workspace.id}`);
    await browser.close();
}
