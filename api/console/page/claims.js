// How long claims took, by pool: from the timelines of workspaces whose creation this page is told. A burst is sampled.

import { get, segment } from "./api.js";
import { onEvent } from "./live.js";

const KEPT = 60;
const BETWEEN_MS = 500;
const NEW_MS = 30_000;
// A server without timelines answers 404 each time.
const MOST_MISSES = 20;

const byPool = new Map();
const byWorkspace = new Map();
const listeners = new Set();
const waiting = [];
let timer = 0;
let misses = 0;

/** The latest claims of a pool, oldest first: { id, at, ms, source }. */
export function claimsOf(pool) { return byPool.get(pool) ?? []; }

/** The claim of a workspace, if the page knows it. */
export function claimOf(workspace) { return byWorkspace.get(workspace); }

/** Calls back when a claim is known; gives a function that ends this. */
export function onClaim(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** Notes a claim. `ledger` is that of the answer to a claim made here. */
export function noteClaim({ id, pool, at, ms, source, ledger }) {
    if (byWorkspace.has(id)) return;
    const claim = { id, at: Date.parse(at), ms, source, ledger };
    byWorkspace.set(id, claim);
    if (byWorkspace.size > 2000) byWorkspace.delete(byWorkspace.keys().next().value);
    const list = byPool.get(pool) ?? [];
    byPool.set(pool, list);
    list.push(claim);
    list.sort((a, b) => a.at - b.at);
    if (list.length > KEPT) list.shift();
    listeners.forEach((each) => each(claim));
}

function sourceOf(stages) {
    const has = (name) => stages.some(({ stage, ms }) => stage === name && ms > 0);
    if (has("create") || has("pull")) return "cold";
    return stages.some(({ stage, ms }) => stage === "queue" && ms >= 1) ? "queued" : "warm";
}

async function look() {
    timer = 0;
    const id = waiting.pop();
    if (!id || misses >= MOST_MISSES) return;
    timer = setTimeout(look, BETWEEN_MS);
    if (byWorkspace.has(id)) return;
    try {
        const { pool, startedAt, totalMs, stages } = await get(`/v1/workspaces/${segment(id)}/timeline`);
        misses = 0;
        noteClaim({ id, pool, at: startedAt, ms: totalMs, source: sourceOf(stages) });
    } catch {
        misses += 1;
    }
}

export function startClaims() {
    onEvent((event) => {
        if (event.type !== "workspace.created" || byWorkspace.has(event.resource)) return;
        // The latest are enough for a picture, both of past claims and of a burst.
        waiting.push(event.resource);
        if (waiting.length > (Date.now() - Date.parse(event.time) > NEW_MS ? 20 : 4)) waiting.shift();
        timer ||= setTimeout(look, 50);
    });
}
