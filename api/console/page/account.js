// The present use of a workspace, and its account of requests to the outside.

import { get } from "./api.js";
import { h, patch } from "./dom.js";
import { bytes, clockTime, duration, millis, number } from "./format.js";
import { watch } from "./live.js";
import { empty, facts, meter, problemBox, state, table } from "./parts.js";

const GOOD = /^(allow|hit|miss|fetched|stored|passed|ok)/;

/** CPU, memory, disk and processes of now; cpu as share since the look before. */
export function followUsage({ root, signal, path, limits }) {
    let before = null;
    watch({
        load: () => get(`${path}/usage`, { signal }), signal, every: 5000, wants: (event) => event.type === "execution.finished" && path.endsWith(event.resource),
        show(usage) {
            const now = performance.now();
            const cores = before ? Math.max(0, (usage.cpuMs - before.cpuMs) / (now - before.at)) : 0;
            before = { cpuMs: usage.cpuMs, at: now };
            const { cpu, memoryBytes, pids } = limits();
            patch(root, meter("CPU", cores, cpu, `${number(cores, 2)} of ${number(cpu, 2)} cores`, `${duration(usage.cpuMs / 1000)} in all`),
                meter("Memory", usage.memoryBytes, memoryBytes, `${bytes(usage.memoryBytes)} of ${bytes(memoryBytes)}`, `peak ${bytes(usage.memoryPeakBytes)}`),
                meter("Disk", usage.diskBytes, usage.diskLimitBytes, usage.diskLimitBytes ? `${bytes(usage.diskBytes)} of ${bytes(usage.diskLimitBytes)}` : bytes(usage.diskBytes)),
                meter("Processes", usage.processes, pids, `${usage.processes} of ${pids}`),
                usage.gpus.length ? facts(["GPUs", usage.gpus.join(", ")]) : null);
        },
        fail(problem) {
            patch(root, problem.hidden || problem.status === 410 ? [] : problemBox(problem));
            return problem.hidden || problem.status === 410 ? "stop" : "";
        },
    });
}

const COLUMNS = [{ title: "Time" }, { title: "Destination" }, { title: "Kind" }, { title: "Decision" }, { title: "Status", number: true }, { title: "Sent", number: true }, { title: "Received", number: true }, { title: "Took", number: true }];

/** The requests that the workspace has sent to the outside. */
export function followEgress({ root, signal, path, network }) {
    watch({
        load: () => get(`${path}/egress`, { signal }), signal, every: 10_000, wants: (event) => event.type.startsWith("egress."),
        show(egress) {
            patch(root, h("h2", null, "Requests to the outside"), facts(["Network", network()], ["Requests", number(egress.requests, 0)], ["Refused", number(egress.refused, 0)], ["Sent", bytes(egress.sentBytes)], ["Received", bytes(egress.receivedBytes)]),
                egress.latest.length ? table("The latest requests", COLUMNS, egress.latest.map((each, i) => ({
                    key: `${each.at} ${i}`,
                    cells: [clockTime(each.at), h("span", { class: "break" }, each.destination), each.kind, state(GOOD.test(each.decision) ? "good" : "bad", each.decision), each.status || "–", bytes(each.sentBytes), bytes(each.receivedBytes), millis(each.durationMs)],
                }))) : empty("Nothing has been sent.", network() === "None" ? "This workspace has no network: its pool has network mode None." : "Requests appear here with the gateway's decision."));
        },
        fail(problem) {
            patch(root, problem.hidden ? empty("This token does not show the account.") : problemBox(problem));
            return problem.hidden || problem.status === 410 ? "stop" : "";
        },
    });
}
