// The server's log as it comes, for admins, with a filter that is applied here.

import { STREAM, eventsOf, pause, send } from "./api.js";
import { h, patch } from "./dom.js";
import { empty, problemBox } from "./parts.js";

const KEPT = 2000;
const SHOWN = 400;
const AGAIN_MS = 3000;
const GRAVE = /\blevel=(warn|error)\b|"level":"(warn|error)"/;

function row(line) {
    return h("li", { key: line.key, class: GRAVE.test(line.text) ? "grave" : null }, line.text);
}

/** Calls `take` with each line that the server still has and each new one, and so again after a break, until `signal`. */
async function follow(signal, take, trouble) {
    while (!signal.aborted) {
        try {
            const response = await send("GET", "/v1/logs?limit=1000", { headers: STREAM, signal });
            trouble(null);
            for await (const event of eventsOf(response)) take(event.data);
        } catch (problem) {
            if (signal.aborted || problem.status === 401) return;
            trouble(problem);
            if (problem.hidden) return;
        }
        await pause(AGAIN_MS, signal);
    }
}

export function openLog({ root, signal }) {
    const lines = [];
    let words = [];
    let timer = 0;
    const box = h("div");
    const list = h("ol", { class: "log-lines", tabindex: "0", "aria-label": "Lines of the log, oldest first" });
    const none = h("div");
    const fits = ({ text }) => words.every((word) => text.toLowerCase().includes(word));
    const draw = () => {
        timer = 0;
        // Somebody who has scrolled up reads; the list stays where it is then.
        const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
        const found = lines.filter(fits).slice(-SHOWN);
        patch(list, found.map(row));
        patch(none, found.length ? null : words.length ? empty("No line fits the filter.", "Change or clear it.") : empty("Nothing is logged yet.", "Lines appear here as they come."));
        if (atEnd) list.scrollTop = list.scrollHeight;
    };
    const soon = () => { timer ||= setTimeout(draw, 200); };
    const filter = h("input", {
        type: "search", placeholder: "Filter, as level=error", "aria-label": "Filter lines",
        on: { input() { words = this.value.toLowerCase().split(/\s+/).filter(Boolean); draw(); } },
    });
    root.append(h("div", { class: "head" }, h("h1", null, "Log"), h("div", { class: "row" }, filter)), box, list, none);
    signal.addEventListener("abort", () => clearTimeout(timer));
    draw();
    // The ids of a server that was started again begin anew: a line is known by its text, too.
    const known = new Set();
    let key = 0;
    follow(signal, ({ id, text }) => {
        const name = `${id} ${text}`;
        if (known.has(name)) return;
        known.add(name);
        lines.push({ key: ++key, name, text });
        for (const gone of lines.splice(0, lines.length - KEPT)) known.delete(gone.name);
        soon();
    }, (problem) => patch(box, problem ? problemBox(problem) : null));
}
