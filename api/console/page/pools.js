// The pools as they are now, and one pool: what is warm, what is missing and why, its forecast and its schedule.

import { get, segment } from "./api.js";
import { hearthBar, latencyChart, sparkline } from "./chart.js";
import { claimsOf, onClaim } from "./claims.js";
import { h, patch } from "./dom.js";
import { age, dayTime, millis, number, percent, until } from "./format.js";
import { watch } from "./live.js";
import { empty, facts, panel, problemBox, state, table } from "./parts.js";
import { followWorkspaces, openClaim } from "./workspaces.js";

const EVENTS = /^(pool|sandbox|workspace)\./;
// Conditions that are bad when True; of the others False is the bad state, and for some only a beginning.
const BAD_WHEN_TRUE = new Set(["Degraded", "ScalingLimited"]);
const PASSING = new Set(["Progressing"]);

function condition(pool, type) {
    return pool.status.conditions.find((each) => each.type === type);
}

function poolState(pool) {
    if (pool.metadata.deleting) return state("busy", "Deleting");
    if (condition(pool, "Degraded")?.status === "True") return state("bad", "Degraded");
    if (condition(pool, "Ready")?.status === "True") return state("good", "Ready");
    return state("busy", condition(pool, "Ready")?.reason ?? "Filling");
}

/** Why a pool is not well: each bad condition with its message. */
function faults(pool) {
    return pool.status.conditions.filter((each) => each.reason === "UnpackingImage" || (!PASSING.has(each.type) && each.type !== "Ready" && (each.status === "True") === BAD_WHEN_TRUE.has(each.type)));
}

function scheduleCell({ status }) {
    const now = status.schedule;
    if (!now) return h("span", { class: "quiet" }, "none");
    return [h("div", { class: "line" }, now.entry ?? "own numbers", h("span", { class: "quiet" }, ` ${now.min}–${now.max}`)),
        now.nextChange ? h("div", { class: "below line" }, `${dayTime(now.nextChange)} → ${now.nextEntry ?? "own numbers"}`) : null];
}

const COLUMNS = [
    { title: "Pool" }, { title: "State" }, { title: "Sandboxes", wide: true }, { title: "Warm", number: true }, { title: "Claimed", number: true },
    { title: "Creating", number: true }, { title: "In line", number: true }, { title: "Misses", number: true }, { title: "Forecast", number: true },
    { title: "Claim latency" }, { title: "Schedule" },
];

function row(pool) {
    const { name } = pool.metadata;
    const { status } = pool;
    const claims = claimsOf(name);
    const bad = faults(pool);
    return {
        key: name,
        id: name,
        note: bad.length ? bad.map((each) => h("div", { class: "why" }, h("b", null, `${each.type === "Degraded" ? each.reason : each.type}: `), each.message || each.reason)) : null,
        cells: [
            [h("a", { href: `#/pools/${segment(name)}` }, name), h("div", { class: "below" }, pool.spec.template.image)],
            poolState(pool),
            hearthBar(status),
            h("span", { title: `${status.ready} ready, ${status.desired} wanted` }, h("b", null, status.ready), h("span", { class: "quiet" }, ` / ${status.desired}`)),
            status.claimed, status.creating, status.waiting ? h("b", null, status.waiting) : 0, percent(status.missRate),
            [h("div", null, `${number(status.forecast.claimsPerSecond, 2)}/s`), h("div", { class: "below" }, `wants ${status.forecast.target}`)],
            h("div", { class: "spark" }, sparkline(claims, { width: 84 }), claims.length ? h("span", { class: "quiet" }, millis(claims.at(-1).ms)) : null),
            scheduleCell(pool),
        ],
    };
}

function legend() {
    return h("ul", { class: "legend", "aria-label": "Legend" }, [["ready", "ready"], ["creating", "creating"], ["missing", "wanted, not there"], ["claimed", "claimed"]]
        .map(([kind, words]) => h("li", null, h("i", { class: kind, "aria-hidden": "true" }), words)));
}

export function openPools({ root, signal }) {
    const list = h("div");
    root.append(h("div", { class: "head" }, h("h1", null, "Pools"), h("div", { class: "row" }, legend(),
        h("button", { type: "button", class: "primary", on: { click: () => openClaim() } }, "Open a workspace"))), list);
    let pools = [];
    let page = { nextCursor: null };
    let limit = 100;
    const draw = () => patch(list, pools.length ? table("Pools", COLUMNS, pools.map(row), { class: "pools-table" })
        : empty("There are no pools yet.", "Declare one: write a manifest and run ", h("code", null, "hearth apply -f pool.yaml"), "."),
    page.nextCursor && limit < 1000 ? h("p", { key: "more" }, h("button", { type: "button", on: { click: () => { limit += 100; again(); } } }, "More")) : null);
    const again = watch({
        load: () => get(`/v1/pools?limit=${limit}`, { signal }), signal, wants: (event) => EVENTS.test(event.type),
        show(answer) {
            page = answer;
            pools = answer.items;
            draw();
        },
        fail: (problem) => patch(list, problem.status === 403 ? empty("This token does not show pools.") : problemBox(problem)),
    });
    signal.addEventListener("abort", onClaim(() => { if (pools.length) draw(); }));
}

function conditionsPanel(pool) {
    return panel("Conditions", "conditions", table("Conditions", [{ title: "Condition" }, { title: "Status" }, { title: "Reason" }, { title: "Message" }, { title: "For", number: true }],
        pool.status.conditions.map((each) => ({
            key: each.type,
            cells: [each.type, state(PASSING.has(each.type) ? (each.status === "True" ? "busy" : "off") : (each.status === "True") !== BAD_WHEN_TRUE.has(each.type) ? "good" : "bad", each.status),
                each.reason, each.message, each.lastTransitionTime ? age(each.lastTransitionTime) : "–"],
        }))));
}

function specFacts({ spec }) {
    const { template } = spec;
    return facts(["Image", template.image], ["Resources", `${template.resources.cpu} cpu, ${template.resources.memory}, disk ${template.resources.workspace}`],
        ["Network", template.network.mode, template.network.allow?.length ? template.network.allow.join(", ") : ""],
        template.gpu?.count ? ["GPU", `${template.gpu.count} × ${template.gpu.product?.join(" or ") || "any"}`, template.gpu.sharing] : null,
        ["Warm", `${spec.warm.min}–${spec.warm.max}`, `at most ${spec.warm.parallelCreates} created at a time`],
        ["Sizing", spec.sizing.mode, spec.sizing.mode === "Predictive" ? `miss rate ${percent(spec.sizing.missRate)}` : ""],
        ["When empty", spec.onEmpty.action, spec.onEmpty.action === "Queue" ? `up to ${spec.onEmpty.maxWait}, ${spec.onEmpty.maxQueue} in line` : ""],
        ["Idle timeout", spec.lifecycle.idleTimeout, spec.lifecycle.onIdle], ["Lifetime", spec.lifecycle.maxLifetime],
        ["Limits", `${spec.limits.members} sandboxes`, `${spec.limits.perTenant} for each tenant`]);
}

function nowFacts({ status }) {
    return facts(["Warm", `${status.ready} of ${status.desired}`], ["Claimed", status.claimed], ["Creating", status.creating], ["Draining", status.draining],
        ["Failed", status.failed], ["In line", status.waiting], ["Misses", percent(status.missRate), "of the claims"],
        ["Forecast", `${number(status.forecast.claimsPerSecond, 2)} claims/s`, `wants ${status.forecast.target} warm`],
        ["Start takes", status.forecast.startSeconds ? millis(status.forecast.startSeconds * 1000) : "–"],
        status.schedule ? ["Schedule", status.schedule.entry ?? "own numbers", `warm ${status.schedule.min}–${status.schedule.max}`] : null,
        status.schedule?.nextChange ? ["Next change", [dayTime(status.schedule.nextChange), " → ", status.schedule.nextEntry ?? "own numbers"], ["in ", until(status.schedule.nextChange)]] : null);
}

export function openPool({ root, signal, params: [name], title }) {
    title(`Pool ${name}`);
    const body = h("div");
    const list = h("div");
    root.append(h("nav", { class: "crumbs", "aria-label": "Way" }, h("a", { href: "#/pools" }, "Pools"), " / ", h("span", { "aria-current": "page" }, name)),
        h("div", { class: "head" }, h("h1", null, name), h("button", { type: "button", class: "primary", on: { click: () => openClaim(name) } }, "Open a workspace")),
        body, h("section", { "aria-labelledby": "here" }, h("h2", { id: "here" }, "Workspaces"), list));
    let pool = null;
    const draw = () => {
        const claims = claimsOf(name);
        patch(body, h("div", { class: "pool-now" }, poolState(pool), hearthBar(pool.status), legend()),
            faults(pool).map((each) => h("p", { class: "warning", key: each.type }, h("span", { "aria-hidden": "true" }, "▲ "), h("b", null, each.type === "Degraded" ? `Degraded: ${each.reason}. ` : `${each.type}: `), each.message)),
            h("div", { class: "columns" }, panel("Now", "now", nowFacts(pool)), panel("Declared", "declared", specFacts(pool))),
            panel("Claim latency", "latency", claims.length ? latencyChart(claims, Math.max(300, root.clientWidth - 34)) : empty("No claim was seen yet.", "Each claim made from now on is drawn here.")),
            conditionsPanel(pool));
    };
    watch({
        load: () => get(`/v1/pools/${segment(name)}`, { signal }), signal, wants: (event) => event.pool === name && EVENTS.test(event.type),
        show(answer) {
            pool = answer;
            draw();
        },
        fail(problem) {
            if (problem.hidden) root.replaceChildren(h("h1", null, name), empty(`There is no pool ${name}.`, h("a", { href: "#/pools" }, "All pools")));
            else patch(body, problemBox(problem));
            return problem.hidden ? "stop" : "";
        },
    });
    followWorkspaces({ root: list, signal, pool: name });
    signal.addEventListener("abort", onClaim(() => { if (pool) draw(); }));
}
