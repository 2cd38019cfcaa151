// The machine's GPUs and who has them. Operators only: the menu has this view only where the server shows it.

import { get, post, segment } from "./api.js";
import { h, patch } from "./dom.js";
import { bytes } from "./format.js";
import { watch } from "./live.js";
import { act, empty, problemBox, state, table } from "./parts.js";

const KINDS = { Free: "good", Leased: "good", Scrubbing: "busy", Faulty: "bad", Condemned: "bad", Split: "off", Gone: "off" };
const COLUMNS = [{ title: "GPU" }, { title: "Product" }, { title: "Memory", number: true }, { title: "State" }, { title: "Held by" }, { title: "Action" }];

export function openGpus({ root, signal }) {
    const box = h("div");
    const list = h("div");
    root.append(h("div", { class: "head" }, h("h1", null, "GPUs")), box, list);

    function row(gpu) {
        return {
            key: gpu.uuid,
            cells: [
                [h("span", { class: "id" }, gpu.uuid), gpu.parent ? h("div", { class: "below" }, `of ${gpu.parent}`) : null],
                [gpu.product, gpu.profile ? h("div", { class: "below" }, gpu.profile) : null], bytes(gpu.memoryBytes),
                [state(KINDS[gpu.state] ?? "off", gpu.state), gpu.reason ? h("div", { class: "below why" }, gpu.reason) : null],
                gpu.holders.length ? gpu.holders.map((each) => h("div", { key: each.sandboxId },
                    each.workspaceId ? h("a", { class: "id", href: `#/workspaces/${segment(each.workspaceId)}` }, each.workspaceId) : "warm",
                    h("span", { class: "quiet" }, ` ${each.pool}${each.tenant ? `, ${each.tenant}` : ""}`))) : h("span", { class: "quiet" }, "nobody"),
                gpu.state === "Condemned" ? h("button", { type: "button", "aria-label": `Scrub again ${gpu.uuid}`, on: {
                    click() { act(this, box, () => post(`/v1/gpus/${segment(gpu.uuid)}/scrub`, undefined)).then(again); },
                } }, "Scrub again") : "",
            ],
        };
    }

    const again = watch({
        load: () => get("/v1/gpus?limit=100", { signal }), signal, every: 10_000, wants: (event) => event.type.startsWith("gpu.") || event.type.startsWith("workspace."),
        show: ({ items }) => patch(list, items.length ? table("GPUs", COLUMNS, items.map(row)) : empty("This machine has no GPUs.")),
        fail(problem) {
            patch(list, problem.hidden ? empty("This token does not show GPUs.") : problemBox(problem));
            return problem.hidden ? "stop" : "";
        },
    });
}
