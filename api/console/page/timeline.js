// Where the time of a claim or of an execution went: a sentence, its stages as bars, and how busy pool and machine were.

import { get } from "./api.js";
import { h, keep } from "./dom.js";
import { millis, number } from "./format.js";

const LEDGER = ["pull", "unpack", "create", "warm", "queue", "pick", "bind"];

function stagesOf(stages, total, largest) {
    let begin = 0;
    return h("ol", { class: "stages" }, stages.map(({ stage, ms }) => {
        const left = total ? begin / total * 100 : 0;
        begin += ms;
        return h("li", { class: stage === largest ? "largest" : null }, h("span", { class: "stage-name" }, stage),
            h("span", { class: "stage-room", "aria-hidden": "true" }, h("span", { style: { "margin-left": `${Math.min(99, left)}%`, width: `${Math.max(0.5, Math.min(100 - left, total ? ms / total * 100 : 0))}%` } })),
            h("span", { class: "number" }, millis(ms)));
    }));
}

function draw({ sentence, stages, totalMs, largest, queuePlace, poolThen, pressureThen, traceId }) {
    return h("div", { class: "timeline" },
        sentence ? h("p", { class: "sentence" }, sentence) : null,
        stagesOf(stages, totalMs, largest),
        h("p", { class: "quiet" }, [
            `${millis(totalMs)} in all`,
            queuePlace ? `place ${queuePlace} in line` : null,
            poolThen ? `the pool then: ${poolThen.ready} ready, ${poolThen.claimed} claimed, ${poolThen.creating} creating, ${poolThen.waiting} in line` : null,
            pressureThen ? `the machine's pressure then: cpu ${number(pressureThen.cpu)}%, memory ${number(pressureThen.memory)}%, io ${number(pressureThen.io)}%` : null,
        ].filter(Boolean).join(" · "), traceId ? [" · trace ", h("code", null, traceId)] : null));
}

/** The stages a workspace's own `claim` tells, for servers without timelines. */
function fromLedger(claim) {
    const stages = LEDGER.map((stage) => ({ stage, ms: claim[`${stage}Ms`] ?? 0 })).filter((each) => each.ms > 0);
    return { sentence: "", stages, totalMs: claim.totalMs, largest: stages.reduce((most, each) => (each.ms > (most?.ms ?? 0) ? each : most), null)?.stage };
}

/** A node that fills itself with a timeline, or stays empty where the server has none. */
export function timeline(path, claim, signal) {
    const node = keep(h("div"));
    get(path, { signal }).then(
        (found) => node.replaceChildren(draw(found)),
        (problem) => { if (problem.hidden && claim) node.replaceChildren(draw(fromLedger(claim))); });
    return node;
}
