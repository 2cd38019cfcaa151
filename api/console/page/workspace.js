// One workspace: its facts and what it uses, and in tabs what can be done in it.

import { get, post, remove, segment } from "./api.js";
import { followEgress, followUsage } from "./account.js";
import { claimOf } from "./claims.js";
import { announce, h, keep, patch } from "./dom.js";
import { followEvents } from "./events.js";
import { followExecutions, runner } from "./executions.js";
import { openFiles } from "./files.js";
import { age, bytes, dayTime, number, until } from "./format.js";
import { watch } from "./live.js";
import { act, confirmed, empty, facts, panel, problemBox, state } from "./parts.js";
import { openTerminal } from "./terminal.js";
import { timeline } from "./timeline.js";
import { phase } from "./workspaces.js";

// The context of "Keep variables" and the words typed here live as long as the tab.
const sources = new Map();

async function languagesOf(pool) {
    const [{ images }, { spec }] = await Promise.all([get("/v1/capabilities"), get(`/v1/pools/${segment(pool)}`)]);
    return images.find((each) => [each.name, each.digest, each.reference].includes(spec.template.image))?.languages ?? [];
}

function factsOf(workspace) {
    const labels = Object.entries(workspace.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(", ");
    return facts(["Active", [age(workspace.lastActiveAt), " ago"]], ["Ends at the latest", workspace.expiresAt ? dayTime(workspace.expiresAt) : "never"],
        ["Limits", `${number(workspace.limits.cpu, 2)} cpu, ${bytes(workspace.limits.memoryBytes)}`, `${workspace.limits.pids} processes`],
        ["Network", workspace.network], labels ? ["Labels", labels] : null, workspace.gpus.length ? ["GPUs", workspace.gpus.join(", ")] : null,
        workspace.credentials?.length ? ["Credentials", workspace.credentials.map((each) => each.host).join(", ")] : null,
        ["Root", h("code", null, workspace.root)], ["Sandbox", h("span", { class: "id" }, workspace.sandboxId)]);
}

const TABS = ["run", "terminal", "files", "network", "events"];
const TITLES = { run: "Run", terminal: "Terminal", files: "Files", network: "Network", events: "Events" };

/** Tabs as the ARIA practices have them: arrows move, the panel follows. */
function tabs(openers, signal) {
    const panels = new Map();
    const room = h("div");
    const buttons = TABS.map((name) => h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, on: { click: () => select(name).focus?.() } }, TITLES[name]));
    const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "What to do in the workspace", on: {
        keydown(event) {
            const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            if (!step) return;
            const at = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
            buttons[at].focus();
            select(TABS[at]);
            event.preventDefault();
        },
    } }, buttons);

    function select(name) {
        if (!panels.has(name)) {
            const node = h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: "tab-panel" });
            room.append(node);
            panels.set(name, { node, opened: null });
        }
        TABS.forEach((each, i) => {
            buttons[i].setAttribute("aria-selected", String(each === name));
            buttons[i].tabIndex = each === name ? 0 : -1;
            if (panels.has(each)) panels.get(each).node.hidden = each !== name;
        });
        const panelNow = panels.get(name);
        panelNow.opened ??= openers[name]({ root: panelNow.node, signal }) ?? {};
        return panelNow.opened;
    }

    select("run");
    return keep(h("div", { class: "tabs-room" }, bar, room));
}

function runTab({ root, signal, path, pool, known }) {
    const list = h("div");
    const form = h("div");
    let again = () => {};
    root.append(form, h("h2", null, "Executions"), list);
    languagesOf(pool).catch(() => ["python", "bash"]).then((languages) => {
        if (signal.aborted) return;
        form.append(runner({ path, signal, languages, ran(id, text) { sources.set(id, text); again(); } }));
    });
    again = followExecutions({ root: list, signal, path, sources, known });
}

function ended(root, id, problem) {
    patch(root, h("div", { class: "head" }, h("h1", { class: "id" }, id)),
        h("section", { class: "ended", "aria-labelledby": "ended-title" }, h("h2", { id: "ended-title" }, state("off", "This workspace has ended")),
            facts(["Reason", problem.reason || "not known"], problem.endedAt ? ["Ended", [age(problem.endedAt), " ago"], dayTime(problem.endedAt)] : null),
            h("p", null, problem.message), h("p", null, h("a", { href: "#/workspaces" }, "All workspaces"))),
        panel("How it began", "began", timeline(`/v1/workspaces/${segment(id)}/timeline`, null, new AbortController().signal)));
    announce(`The workspace has ended: ${problem.reason}`);
}

export function openWorkspace({ root, signal, params: [id], title }) {
    title(`Workspace ${id.slice(0, 11)}`);
    const path = `/v1/workspaces/${segment(id)}`;
    const body = h("div");
    root.append(h("nav", { class: "crumbs", "aria-label": "Way" }, h("a", { href: "#/workspaces" }, "Workspaces"), " / ", h("span", { "aria-current": "page", class: "id" }, id)), body);
    const box = keep(h("div"));
    const usage = keep(h("div", { class: "usage" }));
    const ending = new AbortController();
    signal.addEventListener("abort", () => ending.abort());
    let workspace = null;
    let room = null;
    let began = null;

    async function end() {
        if (!await confirmed("End this workspace?", "Its processes are killed and its files are removed. Executions and their output stay readable for an hour.", "End it")) return;
        await remove(path);
        await again();
    }

    function draw() {
        patch(body,
            h("div", { class: "head" }, h("h1", null, workspace.name ?? h("span", { class: "id" }, id)),
                h("div", { class: "row" }, phase(workspace.phase),
                    h("button", { type: "button", on: { click() { act(this, box, async () => { workspace = await post(`${path}/touch`, undefined); draw(); announce("Counted as activity"); }); } } }, "Keep alive"),
                    h("button", { type: "button", class: "danger", on: { click() { act(this, box, end); } } }, "End"))),
            h("p", { class: "summary-line" }, h("span", null, "Owner ", h("b", null, workspace.tenant)), h("span", null, "Pool ", h("a", { href: `#/pools/${segment(workspace.pool)}` }, workspace.pool)),
                h("span", null, "Age ", h("b", null, age(workspace.createdAt))), h("span", null, "Idle end ", workspace.idleExpiresAt ? h("b", null, "in ", until(workspace.idleExpiresAt)) : h("b", null, "not while it is busy"))),
            box, h("div", { class: "workspace-room" }, room, h("aside", { "aria-label": "About the workspace" },
                panel("Uses now", "uses", usage), panel("How it began", "began", began), panel("Workspace", "facts", factsOf(workspace)))));
    }

    const again = watch({
        load: () => get(path, { signal }), signal: ending.signal, every: 10_000, wants: (event) => event.resource === id,
        show(answer) {
            workspace = answer;
            if (!room) {
                const known = new Set();
                const inside = { path, pool: answer.pool, known };
                began = timeline(`${path}/timeline`, claimOf(id)?.ledger, ending.signal);
                room = tabs({
                    run: (context) => runTab({ ...context, ...inside }),
                    terminal: (context) => openTerminal({ ...context, ...inside }),
                    files: (context) => openFiles({ ...context, ...inside }),
                    network: (context) => { followEgress({ ...context, ...inside, network: () => workspace.network }); },
                    events: (context) => { followEvents({ ...context, wants: (event) => event.resource === id || known.has(event.resource), none: () => empty("No event of this workspace is known.", "Events appear here as they come.") }); },
                }, ending.signal);
                followUsage({ root: usage, signal: ending.signal, path, limits: () => workspace.limits });
            }
            draw();
        },
        fail(problem) {
            if (problem.status === 410) {
                ending.abort();
                ended(body, id, problem);
                return "stop";
            }
            patch(body, h("h1", { class: "id" }, id), problem.hidden ? empty("There is no such workspace.", "It ended more than a day ago, or is another owner's. ", h("a", { href: "#/workspaces" }, "All workspaces")) : problemBox(problem));
            return problem.hidden ? "stop" : "";
        },
    });
}
