// Starts Debian's Chromium, and notes what no page of the console may do: leave its server, break its policy, fail.

import { chromium } from "playwright-core";

export const CHROMIUM = process.env.HEARTH_CHROMIUM ?? "/usr/bin/chromium";

export function start() {
    return chromium.launch({ executablePath: CHROMIUM, args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
}

/** A page with its own storage. `seen` gets: requests elsewhere, violations of the policy, errors of the page, dialogs. */
export async function openPage(browser, url, seen, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(30_000);
    await context.exposeFunction("noteViolation", (text) => seen.violations.push(text));
    await context.addInitScript(() => {
        document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
    });
    const page = await context.newPage();
    const { origin } = new URL(url);
    page.on("request", (request) => {
        seen.requests += 1;
        const to = new URL(request.url());
        if (to.protocol !== "data:" && to.protocol !== "blob:" && to.origin !== origin) seen.elsewhere.push(request.url());
    });
    page.on("console", (message) => { if (/Content Security Policy/.test(message.text())) seen.violations.push(message.text()); });
    page.on("pageerror", (error) => seen.errors.push(String(error.stack ?? error)));
    page.on("dialog", (dialog) => { seen.errors.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
    return page;
}

/** A client of the API that is not the page. */
export function apiOf(url, token) {
    return async (method, path, body) => {
        const response = await fetch(new URL(path, url), {
            method, body: body === undefined ? undefined : JSON.stringify(body),
            headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(token ? { Authorization: `Bearer ${token}` } : {}) },
        });
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return response.status === 204 ? null : response.json();
    };
}
