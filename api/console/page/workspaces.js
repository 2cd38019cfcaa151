// The list of workspaces: open ones, a page at a time, and those that ended lately; and the dialog that opens one.

import { get, post, segment } from "./api.js";
import { claimOf, noteClaim, onClaim } from "./claims.js";
import { announce, h, patch } from "./dom.js";
import { age, millis, until } from "./format.js";
import { onEvent, recent, watch } from "./live.js";
import { act, empty, problemBox, showDialog, state, table } from "./parts.js";

const PAGE = 100;
const ENDED_SHOWN = 30;
const NEW_MS = 30_000;
const ENDED = /^workspace\.(ended|reclaimed)$/;
const PHASES = { Pending: "busy", Active: "good", Paused: "off", Reclaiming: "busy", Gone: "off" };

export function phase(word) { return state(PHASES[word] ?? "off", word); }

const COLUMNS = [
    { title: "Workspace" }, { title: "Owner" }, { title: "Pool" }, { title: "Phase" }, { title: "Age", number: true },
    { title: "Idle end in", number: true }, { title: "Claim", number: true },
];

function row(workspace) {
    const claim = claimOf(workspace.id);
    const name = workspace.name ?? Object.entries(workspace.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(" ");
    return {
        key: workspace.id,
        id: workspace.id,
        cells: [
            [h("a", { href: `#/workspaces/${segment(workspace.id)}`, class: "id" }, workspace.id), name ? h("div", { class: "below" }, name) : null],
            workspace.tenant, h("a", { href: `#/pools/${segment(workspace.pool)}` }, workspace.pool), phase(workspace.phase),
            age(workspace.createdAt),
            workspace.idleExpiresAt ? until(workspace.idleExpiresAt) : h("span", { class: "quiet" }, workspace.phase === "Active" ? "busy" : "–"),
            claim ? h("span", { title: claim.source }, millis(claim.ms), claim.source === "warm" ? null : h("span", { class: "quiet" }, ` ${claim.source}`)) : h("span", { class: "quiet" }, "–"),
        ],
    };
}

/** The workspaces that ended lately, by the events this page knows, newest first. */
function endedRows(words) {
    const ended = recent.filter((event) => ENDED.test(event.type) && fits(words, event.resource, event.pool, event.tenant, event.reason));
    return ended.slice(-ENDED_SHOWN).reverse().map((event) => ({
        key: `${event.id}`,
        cells: [h("a", { href: `#/workspaces/${segment(event.resource)}`, class: "id" }, event.resource), event.tenant, event.pool ?? "–", state("off", event.reason ?? "ended"), [age(event.time), " ago"]],
    }));
}

function fits(words, ...texts) {
    const all = texts.filter(Boolean).join(" ").toLowerCase();
    return words.every((word) => all.includes(word));
}

/** Follows the workspaces of all pools, or of one, in `root`. */
export function followWorkspaces({ root, signal, pool, words = () => [] }) {
    let items = new Map();
    const extra = new Map();
    let known = null;
    let cursor = null;
    let unanswered = 0;
    let more = 0;

    async function load() {
        // The pages that were asked for are read again, so that ended ones vanish from each.
        const found = new Map();
        let next = "";
        let page = {};
        for (let i = 0; i <= more; i += 1) {
            page = await get(`/v1/workspaces?limit=${PAGE}${next && `&cursor=${segment(next)}`}`, { signal });
            page.items.forEach((each) => found.set(each.id, each));
            next = page.nextCursor ?? "";
            if (!next) break;
        }
        return { found, next, unanswered: page.unanswered ?? 0 };
    }

    /** Tells users of screen readers what is new. */
    function say() {
        const fresh = known ? [...items.values()].filter((each) => !known.has(each.id) && (!pool || each.pool === pool)) : [];
        known = new Set(items.keys());
        if (fresh.length) announce(fresh.length === 1 ? `Workspace ${fresh[0].name ?? fresh[0].id} opened in pool ${fresh[0].pool}` : `${fresh.length} workspaces opened`);
    }

    function draw() {
        const asked = words();
        const all = [...new Map([...extra, ...items]).values()].filter((each) => (!pool || each.pool === pool) && fits(asked, each.id, each.name, each.pool, each.tenant, each.phase, ...Object.entries(each.labels ?? {}).map((pair) => pair.join("="))));
        all.sort((a, b) => b.createdAt.localeCompare(a.createdAt));
        const ended = endedRows(asked).filter((each) => !pool || each.cells[2] === pool);
        patch(root,
            all.length ? table("Open workspaces", COLUMNS, all.map(row)) : h("div", { key: "none" }, asked.length && items.size
                ? empty("No workspace fits the filter.", "Change or clear it.")
                : empty("No workspace is open.", "Open one with the button above, or from a program: ", h("code", null, "hearth open"), ".")),
            unanswered ? h("p", { class: "quiet", key: "unanswered" }, `${unanswered} more have not answered since the server's start.`) : null,
            cursor ? h("p", { class: "row", key: "more" }, h("button", { type: "button", on: { click: () => { more += 1; again(); } } }, "More"), h("span", { class: "quiet" }, `${items.size} shown`)) : null,
            ended.length ? h("section", { key: "ended", class: "stack", "aria-labelledby": "ended" }, h("h2", { id: "ended" }, "Ended lately"),
                table("Workspaces that ended lately", [{ title: "Workspace" }, { title: "Owner" }, { title: "Pool" }, { title: "Reason" }, { title: "Ended", number: true }], ended)) : null);
    }

    const again = watch({
        load, signal, every: 15_000,
        wants: (event) => event.type.startsWith("workspace."),
        show(answer) {
            items = answer.found;
            cursor = answer.next;
            unanswered = answer.unanswered;
            say();
            draw();
        },
        fail(problem) {
            patch(root, problem.status === 403 ? empty("This token does not list workspaces.", "Use a token of a user, an operator or an admin.") : problemBox(problem));
        },
    });
    // A new workspace may be on a page that is not shown: it is put on top.
    let looking = false;
    const offEvent = onEvent(async (event) => {
        if (ENDED.test(event.type)) extra.delete(event.resource);
        if (event.type !== "workspace.created" || !cursor || looking || (pool && event.pool !== pool) || Date.now() - Date.parse(event.time) > NEW_MS) return;
        looking = true;
        try {
            const workspace = await get(`/v1/workspaces/${segment(event.resource)}`, { signal });
            extra.set(workspace.id, workspace);
            draw();
        } catch {
            // It has ended already, or belongs to a one shot, which no list shows.
        }
        setTimeout(() => { looking = false; }, 1000);
    });
    const offClaim = onClaim((claim) => { if (items.has(claim.id)) draw(); });
    signal.addEventListener("abort", () => { offEvent(); offClaim(); });
    return draw;
}

export function openWorkspaces({ root, signal }) {
    let words = [];
    const list = h("div");
    const filter = h("input", {
        type: "search", placeholder: "Filter", "aria-label": "Filter workspaces by id, name, label, owner, pool or phase",
        on: { input() { words = this.value.toLowerCase().split(/\s+/).filter(Boolean); draw(); } },
    });
    root.append(h("div", { class: "head" }, h("h1", null, "Workspaces"), h("div", { class: "row" }, filter,
        h("button", { type: "button", class: "primary", on: { click: () => openClaim() } }, "Open a workspace"))), list);
    const draw = followWorkspaces({ root: list, signal, words: () => words });
}

/** Asks for pool and name, claims, and goes to the new workspace. */
export async function openClaim(pool) {
    if (document.querySelector("dialog[open]")) return;
    const pools = h("select", { id: "claim-pool" }, h("option", { value: "" }, "The default pool"));
    const name = h("input", { id: "claim-name", autocomplete: "off", maxlength: "200", placeholder: "optional" });
    const box = h("div");
    const button = h("button", { type: "submit", class: "primary" }, "Open");
    const waiting = new AbortController();
    const form = h("form", {
        on: {
            async submit(event) {
                event.preventDefault();
                const workspace = await act(button, box, () => post("/v1/workspaces", {
                    ...(pools.value ? { pool: pools.value } : {}), ...(name.value.trim() ? { name: name.value.trim() } : {}),
                }, { signal: waiting.signal }));
                if (!workspace) return;
                const { claim } = workspace;
                if (claim) noteClaim({ id: workspace.id, pool: workspace.pool, at: workspace.createdAt, ms: claim.totalMs, source: claim.source, ledger: claim });
                dialog.close();
                location.hash = `#/workspaces/${segment(workspace.id)}`;
            },
        },
    },
    h("label", { for: "claim-pool" }, "Pool"), pools, h("label", { for: "claim-name" }, "Name"), name, box,
    h("div", { class: "row end" }, h("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"), button));
    const dialog = showDialog("Open a workspace", form);
    dialog.addEventListener("close", () => waiting.abort());
    try {
        const { items } = await get("/v1/pools?limit=100");
        pools.append(...items.filter((each) => !each.metadata.deleting).map((each) => h("option", { value: each.metadata.name }, `${each.metadata.name} (${each.status.ready} ready)`)));
        if (pool) pools.value = pool;
    } catch {
        // Without a list the default pool can still be claimed.
    }
}
