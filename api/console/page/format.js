// Numbers, times and sizes as people read them.

import { h } from "./dom.js";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count) {
    let value = count;
    let unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit += 1;
    }
    return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export function millis(ms) {
    if (ms === null || ms === undefined) return "–";
    if (ms < 1) return `${ms.toFixed(2)} ms`;
    if (ms < 10) return `${ms.toFixed(1)} ms`;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
    return duration(ms / 1000);
}

export function duration(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
    if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${String(Math.floor(whole / 60) % 60).padStart(2, "0")} min`;
    return `${Math.floor(whole / 86_400)} d ${Math.floor(whole / 3600) % 24} h`;
}

export function number(value, digits = 1) {
    return value.toLocaleString("en", { maximumFractionDigits: digits });
}

export function percent(share) {
    if (share === 0) return "0%";
    return share < 0.001 ? "<0.1%" : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

export function clockTime(at) {
    return new Date(at).toLocaleTimeString("en-GB");
}

export function dayTime(at) {
    const date = new Date(at);
    const today = date.toDateString() === new Date().toDateString();
    return (today ? "" : `${date.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" })} `)
        + date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

const TICKS = {
    ago: (at) => duration((Date.now() - at) / 1000),
    left: (at) => duration((at - Date.now()) / 1000),
};

function ticking(kind, at) {
    return h("time", { datetime: at, title: new Date(at).toLocaleString("en-GB"), "data-tick": kind }, TICKS[kind](new Date(at)));
}

/** How long ago, counted on each second. */
export function age(at) { return ticking("ago", at); }

/** How long until, counted down each second. */
export function until(at) { return ticking("left", at); }

setInterval(() => {
    if (document.hidden) return;
    for (const node of document.querySelectorAll("time[data-tick]")) {
        const text = TICKS[node.dataset.tick](new Date(node.dateTime));
        if (node.textContent !== text) node.firstChild.nodeValue = text;
    }
}, 1000);

/** A short id that can still be told apart; the whole one is its title. */
export function shortId(id) {
    return h("span", { class: "id", title: id }, id.length > 14 ? `${id.slice(0, 11)}…` : id);
}
