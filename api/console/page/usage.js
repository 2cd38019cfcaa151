// The usage report: what tenants or pools have used since a time.

import { get } from "./api.js";
import { h, patch } from "./dom.js";
import { bytes, dayTime, duration, number } from "./format.js";
import { watch } from "./live.js";
import { empty, problemBox, table } from "./parts.js";

const SPANS = [["1h", "Last hour"], ["24h", "Last day"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];
const GROUPS = [["tenant", "By owner"], ["pool", "By pool"], ["tenant,pool", "By owner and pool"]];
const NUMBERS = [
    ["claims", "Claims", (value) => number(value, 0)], ["sandboxSeconds", "Sandbox time", duration], ["cpuSeconds", "CPU time", duration],
    ["gpuSeconds", "GPU time", duration], ["memoryByteSeconds", "Memory, GiB h", (value) => number(value / 2 ** 30 / 3600, 2)], ["egressBytes", "Sent outside", bytes],
];

function choose(label, choices, given, changed) {
    return h("label", { class: "inline" }, h("span", { class: "unseen" }, label), h("select", { value: given, on: { change() { changed(this.value); } } },
        choices.map(([value, words]) => h("option", { value }, words))));
}

function row(item, by, most) {
    const names = by.map((each) => item[each] ?? "–");
    return {
        key: names.join("/"),
        cells: [...names, ...NUMBERS.map(([field, , text], i) => (i === 1
            ? [text(item[field]), h("div", { class: "share", "aria-hidden": "true" }, h("span", { style: { width: `${most ? item[field] / most * 100 : 0}%` } }))]
            : text(item[field])))],
    };
}

export function openUsage({ root, signal }) {
    let by = "tenant";
    let since = "24h";
    const body = h("div");
    root.append(h("div", { class: "head" }, h("h1", null, "Usage"), h("div", { class: "row" },
        choose("Group", GROUPS, by, (value) => { by = value; again(); }), choose("Since", SPANS, since, (value) => { since = value; again(); }))), body);
    const again = watch({
        load: () => get(`/v1/usage?by=${by}&since=${since}`, { signal }), signal, every: 30_000,
        show(report) {
            const items = [...report.items].sort((a, b) => b.sandboxSeconds - a.sandboxSeconds);
            const total = { tenant: "All", pool: report.by[0] === "pool" ? "All" : "" };
            NUMBERS.forEach(([field]) => { total[field] = items.reduce((sum, each) => sum + each[field], 0); });
            const columns = [...report.by.map((each) => ({ title: each === "tenant" ? "Owner" : "Pool" })), ...NUMBERS.map(([, title]) => ({ title, number: true }))];
            patch(body, h("p", { class: "quiet" }, `From ${dayTime(report.since)} to ${dayTime(report.until)}.`),
                items.length ? table("Usage", columns, [...items.map((each) => row(each, report.by, items[0].sandboxSeconds)),
                    ...(items.length > 1 ? [{ ...row(total, report.by, 0), key: "total", class: "total" }] : [])])
                    : empty("Nothing was used in this time.", "Choose a longer time, or open a workspace."));
        },
        fail(problem) {
            patch(body, problem.hidden ? empty("This server keeps no usage report for this token.") : problemBox(problem));
            return problem.hidden ? "stop" : "";
        },
    });
}
