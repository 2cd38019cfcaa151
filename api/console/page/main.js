// Begins the page: the router, the views a token may see, the signs of the connection, theme, help and sign-out.

import { get } from "./api.js";
import { showHelp, startKeys } from "./keys.js";
import { startClaims } from "./claims.js";
import { announce, h, patch } from "./dom.js";
import { onLive, retryLive, startLive, stopLive } from "./live.js";
import { onSession, signInForm, signOut, token } from "./session.js";
import { startTheme } from "./theme.js";
import { openEvents } from "./events.js";
import { openGpus } from "./gpus.js";
import { openLog } from "./log.js";
import { openPool, openPools } from "./pools.js";
import { openSchedules } from "./schedules.js";
import { openUsage } from "./usage.js";
import { openWorkspace } from "./workspace.js";
import { openWorkspaces } from "./workspaces.js";

// A view with `probe` is in the menu only where the server lets this token read that.
const VIEWS = [
    { name: "pools", title: "Pools", probe: "/v1/pools?limit=1", open: openPools, one: openPool },
    { name: "workspaces", title: "Workspaces", probe: "/v1/workspaces?limit=1", open: openWorkspaces, one: openWorkspace },
    { name: "schedules", title: "Schedules", probe: "/v1/pools?limit=1", open: openSchedules },
    { name: "events", title: "Events", probe: "/v1/events?limit=1", open: openEvents },
    { name: "usage", title: "Usage", probe: "/v1/usage?by=tenant&since=1h", open: openUsage },
    { name: "log", title: "Log", probe: "/v1/logs?limit=1", open: openLog },
    { name: "gpus", title: "GPUs", probe: "/v1/gpus?limit=1", open: openGpus, some: true },
];
const main = document.getElementById("main");
const allowed = new Set(VIEWS.map((view) => view.name).filter((name) => !["gpus", "usage", "log"].includes(name)));
let closing = new AbortController();
let signedOff = false;

function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part; // typed by somebody
    }
}

function placeOf(hash) {
    const [name = "pools", ...rest] = hash.replace(/^#\/?/, "").split("?")[0].split("/").filter(Boolean).map(decoded);
    return { view: VIEWS.find((each) => each.name === name) ?? VIEWS[0], params: rest };
}

function drawMenu() {
    const { view } = placeOf(location.hash);
    patch(document.getElementById("views"), signedOff ? [] : VIEWS.filter((each) => allowed.has(each.name)).map((each) =>
        h("a", { href: `#/${each.name}`, key: each.name, "aria-current": each === view ? "page" : null }, each.title)));
    document.querySelector("#views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function leave() {
    closing.abort();
    closing = new AbortController();
}

function open() {
    // In-page links, as the one that skips the menu, are no views.
    if (location.hash && !location.hash.startsWith("#/")) return;
    leave();
    drawMenu();
    if (signedOff) return;
    const { view, params } = placeOf(location.hash);
    const root = h("div", { class: `view ${view.name}` });
    main.replaceChildren(root);
    const title = (text) => { document.title = `${text} · Hearth`; };
    title(view.title);
    const context = { root, signal: closing.signal, params, title };
    if (params.length && view.one) view.one(context);
    else view.open(context);
    if (opened) {
        main.focus({ preventScroll: true });
        scrollTo(0, 0);
        announce(`${view.title}`);
    }
    opened = true;
}
let opened = false;

async function probe() {
    const answers = new Map();
    for (const { probe: path } of VIEWS) if (!answers.has(path)) answers.set(path, get(path).catch((problem) => problem));
    for (const view of VIEWS) {
        const answer = await answers.get(view.probe);
        if (answer.status === 401) return;
        if (answer instanceof Error ? answer.hidden : view.some && answer.items.length === 0) allowed.delete(view.name);
        else if (!(answer instanceof Error)) allowed.add(view.name);
    }
    drawMenu();
    const { view, params } = placeOf(location.hash);
    const first = VIEWS.find((each) => allowed.has(each.name));
    if (!allowed.has(view.name) && !params.length && first) location.replace(`#/${first.name}`);
}

async function sayVersion() {
    try {
        const { version, runtime, runtimeVersion } = await get("/v1/capabilities");
        document.getElementById("version").textContent = `Hearth ${version} · ${runtime} ${runtimeVersion}`;
    } catch {
        document.getElementById("version").textContent = "";
    }
}

const WORDS = { connecting: ["busy", "Connecting"], live: ["good", "Live"], lost: ["bad", "No answer"], off: ["off", "Not live"] };
// A server that restarts within this time has no banner.
const PATIENCE_MS = 1200;

function startBanner() {
    const banner = document.getElementById("banner");
    const live = document.getElementById("live");
    let timer = 0;
    onLive((state, before) => {
        const [kind, word] = WORDS[state];
        live.className = `live ${kind}`;
        live.textContent = word;
        clearTimeout(timer);
        if (state === "lost") {
            timer = setTimeout(() => {
                banner.hidden = false;
                patch(banner, h("p", null, "The server does not answer. This page shows its last state and connects again by itself. Workspaces keep running meanwhile."),
                    h("button", { type: "button", on: { click: retryLive } }, "Try now"));
            }, PATIENCE_MS);
        } else if (state === "live" || state === "off") {
            if (!banner.hidden) announce("The server answers again.");
            banner.hidden = true;
        }
        if (before === "lost" && state === "connecting") banner.hidden = true;
    });
}

function begin(anew) {
    signedOff = false;
    document.getElementById("live").hidden = false;
    document.getElementById("sign-out").hidden = token() === null;
    startLive(anew);
    open();
    probe();
    sayVersion();
}

function showSignIn(why) {
    if (signedOff) return;
    signedOff = true;
    stopLive();
    leave();
    drawMenu();
    document.title = "Sign in · Hearth";
    document.getElementById("sign-out").hidden = true;
    document.getElementById("version").textContent = "";
    document.getElementById("live").hidden = true;
    main.replaceChildren(signInForm(why));
    main.querySelector("input").focus();
}

onSession((what) => {
    if (what === "in") begin(true);
    else if (what === "out") showSignIn("You have signed out. This tab has forgotten the token.");
    else showSignIn(token() ? "The server does not accept this token." : "");
});
addEventListener("hashchange", open);
addEventListener("unhandledrejection", (event) => {
    if (event.reason?.name === "AbortError" || event.reason?.lost || event.reason?.status === 401) event.preventDefault();
});
document.getElementById("sign-out").addEventListener("click", signOut);
document.getElementById("help").addEventListener("click", showHelp);
document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
startTheme();
startKeys(VIEWS, (name) => allowed.has(name) && !signedOff);
startBanner();
startClaims();
begin(true);
