// Small pictures of numbers, as SVG; each says in words what it shows.

import { h, svg } from "./dom.js";
import { clockTime, millis } from "./format.js";

/** Claim latency over the latest claims, on a logarithmic scale; a cold or queued claim is a hollow point. */
export function sparkline(claims, { width = 120, height = 28 } = {}) {
    if (!claims.length) return h("span", { class: "quiet" }, "–");
    const least = Math.log10(Math.max(0.01, Math.min(...claims.map((each) => each.ms))));
    const most = Math.log10(Math.max(0.01, ...claims.map((each) => each.ms)));
    const x = (i) => (claims.length === 1 ? width / 2 : 3 + i * (width - 6) / (claims.length - 1));
    const y = (ms) => (most - least < 0.05 ? height / 2 : height - 4 - (Math.log10(Math.max(0.01, ms)) - least) / (most - least) * (height - 8));
    const sorted = claims.map((each) => each.ms).sort((a, b) => a - b);
    const words = `${claims.length} ${claims.length === 1 ? "claim" : "claims"}, median ${millis(sorted[Math.floor(sorted.length / 2)])}, slowest ${millis(sorted.at(-1))}`;
    return svg("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words },
        svg("title", null, words),
        svg("polyline", { points: claims.map((each, i) => `${x(i).toFixed(1)},${y(each.ms).toFixed(1)}`).join(" ") }),
        claims.map((each, i) => (i === claims.length - 1 || each.source !== "warm"
            ? svg("circle", { cx: x(i).toFixed(1), cy: y(each.ms).toFixed(1), r: 2.4, class: each.source }) : null)));
}

/** The latest claims as bars with a scale, for a page of its own. */
export function latencyChart(claims, width) {
    const height = 150;
    const left = 52;
    const bottom = height - 20;
    const most = Math.max(1, ...claims.map((each) => each.ms));
    const top = 10 ** Math.ceil(Math.log10(most));
    const floor = 0.1;
    const y = (ms) => bottom - Math.log10(Math.max(floor, ms) / floor) / Math.log10(top / floor) * (bottom - 10);
    const slot = Math.min(28, (width - left - 8) / claims.length);
    const lines = [];
    for (let ms = floor * 10; ms <= top; ms *= 10) lines.push(ms);
    return svg("svg", { class: "latency", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `How long the latest ${claims.length} claims took` },
        lines.map((ms) => [svg("line", { x1: left, x2: width, y1: y(ms), y2: y(ms) }), svg("text", { x: left - 6, y: y(ms) + 3.5, "text-anchor": "end" }, millis(Math.round(ms)))]),
        claims.map((each, i) => svg("rect", { x: left + 4 + i * slot, width: Math.max(1, slot - 2), y: y(each.ms), height: Math.max(1, bottom - y(each.ms)), class: each.source },
            svg("title", null, `${clockTime(each.at)}: ${millis(each.ms)}, ${each.source}`))),
        svg("line", { class: "base", x1: left, x2: width, y1: bottom, y2: bottom }),
        svg("text", { x: left + 4, y: height - 5 }, clockTime(claims[0].at)),
        slot * claims.length > 160 ? svg("text", { x: left + 4 + slot * claims.length, y: height - 5, "text-anchor": "end" }, clockTime(claims.at(-1).at)) : null);
}

const MOST_CELLS = 48;

/** A pool's sandboxes as cells: warm ones glow, claimed ones are solid, those under way are hatched, missing ones hollow. */
export function hearthBar({ ready, claimed, creating, desired }) {
    const missing = Math.max(0, desired - ready - creating);
    const all = ready + claimed + creating + missing;
    const scale = all > MOST_CELLS ? MOST_CELLS / all : 1;
    const cells = [["ready", ready], ["creating", creating], ["missing", missing], ["claimed", claimed]]
        .flatMap(([kind, count]) => Array.from({ length: count ? Math.max(1, Math.round(count * scale)) : 0 }, () => h("i", { class: kind })));
    return h("div", { class: "hearth-bar", role: "img", "aria-label": `${ready} ready of ${desired} wanted, ${creating} creating, ${claimed} claimed` },
        cells.length ? cells : h("span", { class: "quiet" }, "no sandboxes"));
}
