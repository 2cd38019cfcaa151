// The events as they come, newest first, with a filter that is applied here.

import { segment } from "./api.js";
import { h, patch } from "./dom.js";
import { clockTime } from "./format.js";
import { liveState, onEvent, onLive, recent } from "./live.js";
import { empty, table } from "./parts.js";

const SHOWN = 200;
const COLUMNS = [{ title: "Time" }, { title: "Event" }, { title: "Resource" }, { title: "Pool" }, { title: "Owner" }, { title: "Reason" }, { title: "Message" }];

function resource(name) {
    if (name.startsWith("ws_")) return h("a", { class: "id", href: `#/workspaces/${segment(name)}` }, name);
    return h("span", { class: "id" }, name);
}

function row(event) {
    return {
        key: event.id,
        class: /degraded|failed|lost|faulty|condemned|refused|deny|silent|suspect/.test(event.type) ? "alarm" : null,
        cells: [h("time", { datetime: event.time, title: new Date(event.time).toLocaleString("en-GB") }, clockTime(event.time)),
            [h("code", null, event.type)], resource(event.resource),
            event.pool ? h("a", { href: `#/pools/${segment(event.pool)}` }, event.pool) : "", event.tenant ?? "", event.reason ?? "", event.message],
    };
}

/** Follows events in `root`, at most so often as a person can read. */
export function followEvents({ root, signal, wants = () => true, shown = SHOWN, none }) {
    let timer = 0;
    const draw = () => {
        timer = 0;
        const found = recent.filter(wants).slice(-shown).reverse();
        patch(root, found.length ? table("Events, newest first", COLUMNS, found.map(row), { class: "events-table" }) : none());
    };
    const soon = () => { timer ||= setTimeout(draw, 300); };
    const ends = [onEvent((event) => { if (wants(event)) soon(); }), onLive(soon)];
    signal.addEventListener("abort", () => {
        clearTimeout(timer);
        ends.forEach((each) => each());
    });
    draw();
    return draw;
}

export function openEvents({ root, signal }) {
    let words = [];
    const list = h("div");
    const filter = h("input", {
        type: "search", placeholder: "Filter, as pool.degraded", "aria-label": "Filter events",
        on: { input() { words = this.value.toLowerCase().split(/\s+/).filter(Boolean); draw(); } },
    });
    root.append(h("div", { class: "head" }, h("h1", null, "Events"), h("div", { class: "row" }, filter)), list);
    const draw = followEvents({
        root: list, signal,
        wants: (event) => words.every((word) => [event.type, event.resource, event.pool, event.tenant, event.reason, event.message].join(" ").toLowerCase().includes(word)),
        none: () => (words.length ? empty("No event fits the filter.", "Change or clear it.")
            : liveState() === "off" ? empty("This token does not show events.") : empty("Nothing has happened yet.", "Events appear here as they come.")),
    });
}
