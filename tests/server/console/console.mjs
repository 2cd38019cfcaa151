// The cases of console_test.py: a line of JSON { case, url, … } on standard input is one, and a line answers it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { apiOf, openPage, start } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const seen = { requests: 0, elsewhere: [], violations: [], errors: [] };
const browser = await start();
const LINES = 24;  // of a run that goes on while the server is away
let kept = null;  // the page of a case with two halves

async function goTo(page, url, place) {
    await page.goto(new URL(`/#/${place}`, url).href);
    await page.locator("h1").first().waitFor();
}

async function withPage(url, options, work) {
    const page = await openPage(browser, url, seen, options);
    try {
        await work(page);
    } finally {
        await page.context().close();
    }
}

async function withWorkspace({ url, token }, body, work) {
    const api = apiOf(url, token);
    const workspace = await api("POST", "/v1/workspaces", body);
    try {
        await work(workspace, api);
    } finally {
        await api("DELETE", `/v1/workspaces/${workspace.id}`);
    }
}

async function runCode(page, code) {
    await page.locator("#source").fill(code);
    await page.locator("#source").press("Control+Enter");
    await page.locator(".run-status .state:not(.busy)").waitFor({ timeout: 60_000 });
}

/** What axe finds serious or critical. Its script comes through the debugger, which the page's policy does not concern. */
async function accessible(page, where) {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const found = violations.filter((each) => ["serious", "critical"].includes(each.impact));
    assert.deepEqual(found.map((each) => `${where}: ${each.id}: ${each.nodes.map((node) => node.html).join(" ").slice(0, 400)}`), []);
}

const CASES = {
    async pools({ url, pool }) {
        await withPage(url, {}, async (page) => {
            await page.goto(url);
            await page.locator(`tr[data-id="${pool}"] .state.good`).waitFor();
            await page.locator(".live.good").waitFor();
            const cells = await page.locator(`tr[data-id="${pool}"] td`).allTextContents();
            assert.match(cells[2], /^\d+ \/ \d+$/);
            await page.locator(`tr[data-id="${pool}"] a`).first().click();
            await page.locator("#conditions").waitFor();
        });
    },

    async claim({ url, token, pool }) {
        await withPage(url, {}, async (page) => {
            await goTo(page, url, "workspaces");
            await page.locator(".live.good").waitFor();
            await page.evaluate(() => { window.stayed = true; });
            await withWorkspace({ url, token }, { pool, name: "made elsewhere" }, async ({ id }) => {
                const row = page.locator(`tr[data-id="${id}"]`);
                await row.getByText("made elsewhere").waitFor();
                assert.ok(await page.evaluate(() => window.stayed), "the page was loaded again");
            });
        });
    },

    async code(given) {
        await withPage(given.url, {}, (page) => withWorkspace(given, { pool: given.pool }, async ({ id }) => {
            await goTo(page, given.url, `workspaces/${id}`);
            await runCode(page, "from PIL import Image\nprint('printed', 6 * 7)\nImage.new('RGB', (120, 60), 'orange').show()\n6 * 9");
            const output = page.locator(".runner .output");
            assert.match(await output.textContent(), /printed 42\n[^]*54/);
            await page.waitForFunction(() => document.querySelector(".runner .output img")?.naturalWidth === 120);
            await page.locator(".executions .summary").first().click();
            await page.locator(".details pre").first().getByText("printed 42").waitFor();
        }));
    },

    async terminal(given) {
        await withPage(given.url, {}, (page) => withWorkspace(given, { pool: given.pool }, async ({ id }) => {
            await goTo(page, given.url, `workspaces/${id}`);
            await page.locator("#tab-terminal").click();
            await page.getByText("The shell runs.").waitFor();
            // A canvas has no text; the emulator's text for screen readers has the same.
            await page.getByLabel("Text for screen readers").check();
            await page.locator(".terminal-room").click();
            await page.keyboard.type("echo typed-$((6*7)); stty size\n");
            await page.waitForFunction(() => /typed-42/.test(document.querySelector(".xterm-accessibility-tree")?.textContent));
            await page.keyboard.press("Control+F6");
            assert.equal(await page.evaluate(() => document.activeElement.type), "checkbox");
        }));
    },

    async log({ url, token }) {
        const api = apiOf(url, token);
        await withPage(url, {}, async (page) => {
            await goTo(page, url, "log");
            const { id } = await api("POST", "/v1/workspaces", {});
            await api("DELETE", `/v1/workspaces/${id}`);
            await page.locator(".log-lines li", { hasText: `workspace=${id}` }).first().waitFor();
            await page.getByLabel("Filter lines").fill("no line has this");
            await page.getByText("No line fits the filter.").waitFor();
            await page.getByLabel("Filter lines").fill(id);
            await page.waitForFunction((word) => [...document.querySelectorAll(".log-lines li")].every((each) => each.textContent.includes(word)), id);
            assert.ok(await page.locator(".log-lines li").count() > 0);
        });
    },

    async end(given) {
        const api = apiOf(given.url, given.token);
        const { id } = await api("POST", "/v1/workspaces", { pool: given.pool });
        await withPage(given.url, {}, async (page) => {
            await goTo(page, given.url, `workspaces/${id}`);
            await page.getByRole("button", { name: "End", exact: true }).click();
            await page.getByRole("button", { name: "Cancel" }).click();
            await api("GET", `/v1/workspaces/${id}`);
            await page.getByRole("button", { name: "End", exact: true }).click();
            await page.getByRole("button", { name: "End it" }).click();
            await page.getByText("This workspace has ended").waitFor();
            await page.locator(".ended dd", { hasText: "deleted" }).waitFor();
            await goTo(page, given.url, "workspaces");
            await page.locator("section", { hasText: "Ended lately" }).locator("tr", { hasText: id }).getByText("deleted").waitFor();
        });
    },

    async user({ url, admin, token, own, foreign }) {
        await withPage(url, {}, async (page) => {
            await page.goto(url);
            await page.getByLabel("Token").fill("hearth_wrong");
            await page.getByRole("button", { name: "Sign in" }).click();
            await page.getByText("does not accept this token").waitFor();
            await page.getByLabel("Token").fill(token);
            await page.getByRole("button", { name: "Sign in" }).click();
            await page.locator("nav a", { hasText: "Workspaces" }).click();
            await page.locator(`tr[data-id="${own}"]`).waitFor();
            assert.equal(await page.locator(`tr[data-id="${foreign}"]`).count(), 0);
            assert.equal(await page.locator("nav a", { hasText: "GPUs" }).count(), 0);
            assert.equal(await page.locator("nav a", { hasText: "Log" }).count(), 0);
            assert.equal(await page.locator(".problem").count(), 0);
            await goTo(page, url, "gpus");
            await page.getByText("This token does not show GPUs.").waitFor();
            assert.equal(await page.evaluate(() => [...Object.values(localStorage)].some((each) => each.includes("hearth_"))), false);
            await page.getByRole("button", { name: "Sign out" }).click();
            await page.getByLabel("Token").fill(admin);
            await page.getByRole("button", { name: "Sign in" }).click();
            await goTo(page, url, "workspaces");
            await page.locator(`tr[data-id="${foreign}"]`).waitFor();
        });
    },

    async hostile(given) {
        await withPage(given.url, {}, (page) => withWorkspace(given, { pool: given.pool, name: "<img src=x onerror=window.bad=1>" }, async ({ id }, api) => {
            await api("POST", `/v1/workspaces/${id}/executions`, { command: "touch -- '<img src=x onerror=window.bad=1>'" });
            await goTo(page, given.url, `workspaces/${id}`);
            await runCode(page, `
import sys
class Bad:
    def _repr_html_(self): return "<img src=x onerror=window.bad=1><script>window.bad=1</script>"
    def _repr_svg_(self): return "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' onload='window.bad=1'><script>window.bad=1</script><image href='http://192.0.2.1/x.png'/></svg>"
print("<img src=x onerror=window.bad=1><script>window.bad=1</script>")
print("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07\\x1b]8;;javascript:window.bad=1\\x07link\\x1b]8;;\\x07 \\x1b[2J\\x1b[999;999H \\u202egnp.exe \\x1b[8mhidden\\x1b[0m end")
sys.stdout.write("x" * (1 << 20) + "\\n")
print("after the line")
Bad()`);
            const output = page.locator(".runner .output");
            await output.getByText("after the line").waitFor();
            const started = Date.now();
            assert.equal(await page.evaluate(() => window.bad), undefined);
            assert.equal(await page.locator('img[src="x"], main script, .output b, .output a').count(), 0);
            assert.match(await page.title(), /^Workspace /);
            assert.ok((await output.textContent()).length < 300_000, "all of a long line is in the page");
            await page.locator('.output img[src^="data:image/svg+xml"]').waitFor();
            await page.getByText("characters above are not shown").waitFor();
            await runCode(page, `
class Page:
    def _repr_html_(self): return "<b onclick=window.bad=1>BOLD</b><script>window.bad=1</script>"
Page()`);
            await output.getByText("Page object at").waitFor();
            assert.equal(await page.locator(".output b").count(), 0);
            await page.locator("#tab-files").click();
            await page.locator("#panel-files th", { hasText: "onerror" }).waitFor();
            assert.ok(Date.now() - started < 10_000, "the page hangs");
            await goTo(page, given.url, "workspaces");
            await page.locator(`tr[data-id="${id}"]`).waitFor();
            assert.equal(await page.evaluate(() => window.bad), undefined);
        }));
    },

    async axe(given) {
        for (const colorScheme of ["light", "dark"]) {
            await withPage(given.url, { colorScheme }, (page) => withWorkspace(given, { pool: given.pool, name: "axe" }, async ({ id }) => {
                for (const view of ["pools", `pools/${given.pool}`, "workspaces", "schedules", "events", "usage", "log", "gpus"]) {
                    await goTo(page, given.url, view);
                    await page.locator(".table-room, .empty, .panel").first().waitFor();
                    await accessible(page, `${view} ${colorScheme}`);
                }
                await goTo(page, given.url, `workspaces/${id}`);
                await runCode(page, "print('shown')\n1 / 0");
                await page.locator(".meter").first().waitFor();
                for (const tab of ["run", "terminal", "files", "network", "events"]) {
                    await page.locator(`#tab-${tab}`).click();
                    await page.locator(`#panel-${tab} > :visible`).first().waitFor();
                    await accessible(page, `${tab} ${colorScheme}`);
                }
                await page.getByRole("button", { name: "Help and shortcuts" }).click();
                await accessible(page, `help ${colorScheme}`);
            }));
        }
    },

    async follow(given) {
        const { id } = await apiOf(given.url)("POST", "/v1/workspaces", { pool: given.pool });
        kept = await openPage(browser, given.url, seen);
        await goTo(kept, given.url, `workspaces/${id}`);
        await kept.locator("#how").selectOption("");
        await kept.locator("#source").fill(`for i in $(seq ${LINES}); do echo line-$i; sleep 0.25; done`);
        await kept.locator("#source").press("Control+Enter");
        await kept.getByText("line-2").waitFor();
        await kept.locator(".live.good").waitFor();
        assert.equal(await kept.locator("#banner").isVisible(), false);
    },

    async lost() {
        await kept.locator("#banner").getByText("does not answer").waitFor();
        await kept.locator(".live.bad").waitFor();
    },

    async back() {
        await kept.locator("#banner").waitFor({ state: "hidden" });
        await kept.locator(".live.good").waitFor();
        await kept.locator(".run-status .state:not(.busy)").waitFor();
        assert.equal(await kept.locator(".runner .output pre").textContent(), Array.from({ length: LINES }, (_, i) => `line-${i + 1}\n`).join(""));
        await kept.context().close();
        kept = null;
    },

    async harmless() {
        assert.ok(seen.requests > 0, "no page has been opened");
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const given = JSON.parse(line);
    let error = null;
    try {
        await CASES[given.case](given);
        assert.deepEqual([seen.elsewhere, seen.violations, seen.errors], [[], [], []], "requests elsewhere, violations of the policy, errors");
    } catch (failure) {
        error = String(failure.stack ?? failure);
        for (const list of [seen.elsewhere, seen.violations, seen.errors]) list.length = 0;
    }
    console.log(JSON.stringify({ error }));
}
await browser.close();
