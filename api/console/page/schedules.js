// The schedules of the next day: when which entry of which pool begins, worked out here from its cron line.

import { get, segment } from "./api.js";
import { h, patch, svg } from "./dom.js";
import { dayTime } from "./format.js";
import { watch } from "./live.js";
import { empty, problemBox, table } from "./parts.js";

const MINUTE = 60_000;
const DAY_MINUTES = 24 * 60;
const MOST_FIRINGS = 12;
const NAMED = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *" };
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

function fieldOf(text, least, most, words = []) {
    const value = (word) => (words.includes(word.toLowerCase()) ? words.indexOf(word.toLowerCase()) + least : Number(word));
    const found = new Set();
    for (const item of text.split(",")) {
        const [range, step] = item.split("/");
        let [from, to] = range === "*" ? [least, most] : range.split("-").map(value);
        if (to === undefined) to = step ? most : from;
        if (to === 0 && most === 6 && from > 0) to = 7;
        for (let at = from; at <= to; at += Number(step ?? 1)) found.add(most === 6 ? at % 7 : at);
    }
    return found;
}

/** Returns a predicate: true if the cron line, read as by the server, fires in { minute, hour, day, month, weekday }. */
export function cronOf(line) {
    const fields = (NAMED[line] ?? line).trim().split(/\s+/);
    const [minutes, hours, days] = [fieldOf(fields[0], 0, 59), fieldOf(fields[1], 0, 23), fieldOf(fields[2], 1, 31)];
    const months = fieldOf(fields[3], 1, 12, MONTHS);
    const weekdays = fieldOf(fields[4], 0, 6, WEEKDAYS);
    const any = fields[2].startsWith("*") || fields[4].startsWith("*");
    return (at) => minutes.has(at.minute) && hours.has(at.hour) && months.has(at.month)
        && (any ? days.has(at.day) && weekdays.has(at.weekday) : days.has(at.day) || weekdays.has(at.weekday));
}

/** The next day's minutes as a zone's calendar has them. */
function minutesIn(timeZone, from) {
    const format = new Intl.DateTimeFormat("en-US", { timeZone, hourCycle: "h23", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", weekday: "short" });
    return Array.from({ length: DAY_MINUTES }, (_, i) => {
        const part = Object.fromEntries(format.formatToParts(from + i * MINUTE).map(({ type, value }) => [type, value]));
        return { minute: Number(part.minute), hour: Number(part.hour), day: Number(part.day), month: Number(part.month), weekday: WEEKDAYS.indexOf(part.weekday.toLowerCase()) };
    });
}

export function secondsOf(text) {
    const units = { d: 86_400, h: 3600, m: 60, s: 1, ms: 0.001 };
    return [...(text ?? "").matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)].reduce((sum, [, count, unit]) => sum + count * units[unit], 0);
}

function firings(pools, from) {
    const zones = new Map();
    const all = [];
    for (const pool of pools) {
        for (const entry of pool.spec.schedules ?? []) {
            const zone = entry.timeZone ?? "UTC";
            if (!zones.has(zone)) zones.set(zone, minutesIn(zone, from));
            const fits = cronOf(entry.cron);
            const times = zones.get(zone).flatMap((at, i) => (fits(at) ? [from + i * MINUTE] : []));
            times.slice(0, MOST_FIRINGS).forEach((at, i) => all.push({ pool, entry, zone, at, end: entry.duration ? at + secondsOf(entry.duration) * 1000 : null, more: i === MOST_FIRINGS - 1 ? times.length - MOST_FIRINGS : 0 }));
        }
    }
    return all.sort((a, b) => a.at - b.at);
}

/** The schedule in force now, as a bar up to the next change. */
function inForce(pool, from) {
    const now = pool.status.schedule;
    return now?.entry ? [{ pool, entry: { name: now.entry }, at: from, end: now.nextChange ? Date.parse(now.nextChange) : from + DAY_MINUTES * MINUTE }] : [];
}

function bar({ entry, at, end }, x, y, height) {
    const width = end ? Math.max(3, x(end) - x(at)) : 3;
    return svg("g", null, svg("title", null, `${entry.name}, ${dayTime(at)}`),
        end ? svg("rect", { class: "window", x: x(at), y, height, width }) : null, svg("rect", { x: x(at), y, height, width: 3 }),
        svg("text", { class: "name", x: x(at) + 8, y: y + height - 5 }, width > 60 || !end ? entry.name : ""));
}

/** A lane for each pool over 24 hours: windows as bars, moments as ticks. */
function lanes(pools, all, from, width) {
    const left = 104;
    const lane = 26;
    const x = (at) => left + Math.max(0, Math.min(1, (at - from) / (DAY_MINUTES * MINUTE))) * (width - left);
    const height = pools.length * lane + 22;
    const marks = [];
    const step = (width < 600 ? 6 : 3) * 60 * MINUTE;
    for (let at = Math.ceil(from / step) * step; at < from + DAY_MINUTES * MINUTE; at += step) marks.push(at);
    return h("div", { class: "lanes-room" }, svg("svg", { class: "lanes", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "The next 24 hours; the table below has the same in words" },
        marks.map((at) => [svg("line", { x1: x(at), x2: x(at), y1: 0, y2: height - 18 }), svg("text", { x: x(at), y: height - 4, "text-anchor": "middle" }, new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }))]),
        pools.map((pool, i) => [svg("text", { x: 0, y: i * lane + 17 }, pool.metadata.name.slice(0, 14)),
            [...inForce(pool, from), ...all.filter((each) => each.pool === pool)].map((each) => bar(each, x, i * lane + 4, lane - 8))])));
}

function warm({ warm: numbers }) {
    if (!numbers) return "–";
    return numbers.min === undefined ? `at most ${numbers.max}` : numbers.max === undefined ? `at least ${numbers.min}` : `${numbers.min}–${numbers.max}`;
}

export function openSchedules({ root, signal }) {
    const body = h("div");
    root.append(h("div", { class: "head" }, h("h1", null, "Schedules"), h("span", { class: "quiet" }, `The next 24 hours, in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`)), body);
    watch({
        load: () => get("/v1/pools?limit=1000", { signal }), signal, every: 60_000, wants: (event) => event.type.startsWith("pool."),
        show({ items }) {
            const from = Math.floor(Date.now() / MINUTE) * MINUTE;
            const pools = items.filter((each) => each.spec.schedules?.length);
            const all = firings(pools, from);
            patch(body, !pools.length ? empty("No pool has a schedule.", "Add ", h("code", null, "spec.schedules"), " to a pool, for example to keep it small at night.") : [
                table("In force now", [{ title: "Pool" }, { title: "In force" }, { title: "Warm", number: true }, { title: "Next change" }], pools.map(({ metadata, status }) => ({
                    key: metadata.name, cells: [h("a", { href: `#/pools/${segment(metadata.name)}` }, metadata.name), status.schedule?.entry ?? "own numbers", status.schedule ? `${status.schedule.min}–${status.schedule.max}` : "–",
                        status.schedule?.nextChange ? `${dayTime(status.schedule.nextChange)} → ${status.schedule.nextEntry ?? "own numbers"}` : "none is near"],
                }))),
                lanes(pools, all, from, Math.max(340, root.clientWidth - 34)),
                all.length ? table("What begins in the next 24 hours", [{ title: "When" }, { title: "Pool" }, { title: "Entry" }, { title: "Warm", number: true }, { title: "Until" }, { title: "Cron" }], all.map((each) => ({
                    key: `${each.pool.metadata.name}/${each.entry.name}/${each.at}`,
                    cells: [dayTime(each.at), each.pool.metadata.name, [each.entry.name, each.entry.sweep ? h("span", { class: "quiet" }, " replaces warm sandboxes") : null, each.more > 0 ? h("span", { class: "quiet" }, ` and ${each.more} times more`) : null],
                        warm(each.entry), each.end ? dayTime(each.end) : each.entry.warm ? "the next entry" : "–", h("code", null, `${each.entry.cron} ${each.zone}`)],
                }))) : empty("Nothing begins in the next 24 hours.")]);
        },
        fail: (problem) => { patch(body, problem.status === 403 ? empty("This token does not show pools.") : problemBox(problem)); },
    });
}
