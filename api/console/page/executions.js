// Runs commands and code in a workspace, shows their output as it comes, and lists what has run.

import { STREAM, eventsOf, get, pause, post, remove, segment, send } from "./api.js";
import { announce, h, keep, patch } from "./dom.js";
import { age, bytes, millis } from "./format.js";
import { watch } from "./live.js";
import { Output } from "./output.js";
import { act, empty, problemBox, state } from "./parts.js";
import { timeline } from "./timeline.js";

const PAGE = 50;
const KINDS = { ok: "good", running: "busy", failed: "bad", timeout: "bad", killed: "off", oom: "bad", lost: "bad" };
const WORDS = { oom: "out of memory" };

function statusOf(execution) {
    const { status, exitCode, signal } = execution;
    const more = signal ? ` (${signal})` : exitCode ? ` (exit ${exitCode})` : "";
    return state(KINDS[status] ?? "off", (WORDS[status] ?? status) + more);
}

/**
 * Follows an execution to its end and gives it as it is then. `begin` gives the first answer, a stream; if it is cut off,
 * the stream is resumed exactly where it ended. `take` gets each event,
 * and the next one is read when `drained` allows.
 */
export async function followExecution({ begin, take, drained, signal }) {
    let id = "";
    let last = "";
    let response = await begin();
    for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
        try {
            for await (const event of eventsOf(response)) {
                wait = 500;
                last = event.id;
                if (event.event === "started") id = event.data.id;
                take(event);
                await drained?.();
                if (event.event === "exit") return event.data;
            }
        } catch (problem) {
            if (signal.aborted || !id) throw problem;
        }
        do {
            await pause(wait, signal);
            signal.throwIfAborted();
            try {
                response = await send("GET", `/v1/executions/${segment(id)}/events`, { headers: { ...STREAM, "Last-Event-ID": last }, signal });
                break;
            } catch (problem) {
                if (!problem.lost) throw problem;
                wait = Math.min(wait * 2, 10_000);
            }
        } while (true);
    }
}

/** One execution of the list, opened: its output, live while it runs, then its figures and where its time went. */
function details(id, signal) {
    const output = new Output(`Output of ${id}`);
    const after = h("div");
    const node = keep(h("div", { class: "details" }, output.node, after));
    const show = (execution) => {
        after.replaceChildren(h("p", { class: "quiet" }, [
            execution.interpreter ? `interpreter ${execution.interpreter}` : null, `cpu ${millis(execution.usage.cpuMs)}`, `memory ${bytes(execution.usage.peakMemoryBytes)}`,
            execution.truncated ? `${bytes(execution.droppedBytes)} of output not kept` : null,
        ].filter(Boolean).join(" · ")), artifacts(execution), timeline(`/v1/executions/${segment(id)}/timeline`, null, signal));
        if (!output.body.firstChild) output.body.append(h("p", { class: "quiet" }, "No output."));
    };
    (async () => {
        try {
            const execution = await get(`/v1/executions/${segment(id)}`, { signal });
            if (execution.status !== "running") {
                output.whole(execution);
                show(execution);
                return;
            }
            after.replaceChildren(h("p", { class: "row" }, h("button", { type: "button", class: "danger", on: { click() { act(this, after, () => remove(`/v1/executions/${segment(id)}`)); } } }, "Stop")));
            show(await followExecution({
                signal, take: (event) => output.take(event),
                begin: () => send("GET", `/v1/executions/${segment(id)}/events`, { headers: STREAM, signal }),
            }));
        } catch (problem) {
            if (!signal.aborted) after.replaceChildren(problemBox(problem));
        }
    })();
    return node;
}

function artifacts(execution) {
    if (!execution.artifacts?.length) return null;
    return h("ul", { class: "artifacts" }, execution.artifacts.map((each) => h("li", null,
        each.url ? h("a", { href: new URL(each.url, location.href).pathname, download: "" }, each.path) : each.path, ` ${bytes(each.size)}`, each.reason ? ` not kept: ${each.reason}` : null)));
}

/** The form that runs something, and the output of its latest run. */
export function runner({ path, signal, languages, ran }) {
    const output = new Output("Output of the latest run");
    const status = h("p", { class: "run-status", role: "status" });
    const box = h("div");
    const how = h("select", { id: "how" }, h("option", { value: "" }, "Command (shell)"), languages.map((each) => h("option", { value: each }, each)));
    const source = h("textarea", { id: "source", rows: "5", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": "run-note" });
    const variables = h("input", { type: "checkbox", id: "variables" });
    const run = h("button", { type: "submit", class: "primary" }, "Run");
    const stop = h("button", { type: "button", class: "danger", hidden: true, on: { click() { act(this, box, () => remove(`/v1/executions/${segment(running)}`)); } } }, "Stop");
    let running = "";
    const contexts = new Map();

    async function contextOf(language) {
        if (!contexts.has(language)) contexts.set(language, (await post(`${path}/contexts`, { language, name: "console" })).id);
        return contexts.get(language);
    }

    async function begin() {
        const language = how.value;
        const context = language && variables.checked ? await contextOf(language) : null;
        return send("POST", `${path}/executions`, {
            headers: STREAM, signal,
            json: language ? { code: source.value, language, ...(context ? { context } : {}) } : { command: source.value },
        });
    }

    async function submit() {
        if (run.disabled || !source.value.trim()) return;
        output.clear();
        status.replaceChildren(state("busy", "running"));
        const text = source.value;
        await act(run, box, async () => {
            try {
                const execution = await followExecution({
                    begin, signal,
                    take(event) {
                        if (event.event === "started") {
                            running = event.data.id;
                            stop.hidden = false;
                            ran(running, text);
                        }
                        output.take(event);
                    },
                });
                output.flush();
                status.replaceChildren(statusOf(execution), ` ${millis(execution.durationMs)}`,
                    execution.contextKept === false ? h("span", { class: "quiet" }, " its variables are gone") : "");
                if (execution.contextKept === false) contexts.clear();
                announce(`The run has ended: ${execution.status}`);
                box.replaceChildren(...[artifacts(execution)].filter(Boolean));
            } catch (problem) {
                status.replaceChildren();
                if (problem.status === 404 || problem.status === 410) contexts.clear();
                throw problem;
            } finally {
                stop.hidden = true;
            }
        });
    }

    const changed = () => { variables.closest("label").hidden = !how.value; };
    how.addEventListener("change", changed);
    if (languages.includes("python")) how.value = "python";
    source.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            submit();
        }
    });
    const node = h("form", { class: "runner", on: { submit(event) { event.preventDefault(); submit(); } } },
        h("div", { class: "row" }, h("label", { for: "how" }, "Run"), how, h("label", { class: "check" }, variables, "Keep variables")),
        h("label", { class: "unseen", for: "source" }, "Command or code"), source,
        h("div", { class: "row" }, run, stop, h("span", { class: "quiet", id: "run-note" }, "Ctrl+Enter runs it"), status), box, output.node);
    changed();
    return node;
}

/** The executions of a workspace, newest first. `sources` has what was typed, by id; `known` gets the ids. */
export function followExecutions({ root, signal, path, sources, known }) {
    const opened = new Map();
    let limit = PAGE;
    let items = [];
    let cursor = null;
    const row = (each) => {
        const open = opened.get(each.id);
        return h("li", { key: each.id, class: "execution" },
            h("button", { type: "button", class: "summary", "aria-expanded": String(Boolean(open)), on: { click: () => toggle(each.id) } },
                h("span", { class: "chevron", "aria-hidden": "true" }, open ? "▾" : "▸"), statusOf(each),
                h("span", { class: "what" }, sources.get(each.id)?.trim().split("\n")[0].slice(0, 120) ?? (each.language ? `${each.language} code` : "command")),
                h("span", { class: "quiet" }, millis(each.durationMs)), h("span", { class: "quiet" }, age(each.startedAt), " ago"), h("span", { class: "id quiet" }, each.id)),
            open ? open.node : null);
    };
    const draw = () => patch(root, items.length ? h("ul", { class: "executions" }, items.map(row)) : empty("Nothing has run here yet.", "Run a command or code above."),
        cursor ? h("p", { key: "more" }, h("button", { type: "button", on: { click: () => { limit = Math.min(1000, limit * 2); again(); } } }, "More")) : null);

    function toggle(id) {
        const open = opened.get(id);
        if (open) {
            open.ending.abort();
            opened.delete(id);
        } else {
            const ending = new AbortController();
            signal.addEventListener("abort", () => ending.abort());
            opened.set(id, { ending, node: details(id, ending.signal) });
        }
        draw();
    }

    const again = watch({
        load: () => get(`${path}/executions?limit=${limit}`, { signal }), signal, every: 5000, wants: (event) => event.type === "execution.finished" && known.has(event.resource),
        show(answer) {
            items = answer.items;
            cursor = answer.nextCursor;
            items.forEach((each) => known.add(each.id));
            draw();
        },
        fail(problem) {
            patch(root, problem.hidden ? empty("This token does not show the executions.") : problemBox(problem));
            return problem.hidden || problem.status === 410 ? "stop" : "";
        },
    });
    return again;
}
