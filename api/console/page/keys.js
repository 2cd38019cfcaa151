// Shortcuts of single keys, which can be switched off, and the help that lists them.

import { h } from "./dom.js";
import { showDialog } from "./parts.js";
import { nextTheme } from "./theme.js";
import { openClaim } from "./workspaces.js";

const KEY = "hearth.shortcuts";
let views = [];
let mayOpen = () => true;
let prefix = false;

function on() { return localStorage.getItem(KEY) !== "off"; }

/** True in elements that take typed text: there a key is no shortcut. */
function typing(target) {
    return target.closest("input, textarea, select, [contenteditable], .terminal-room, dialog") !== null;
}

export function showHelp() {
    if (document.querySelector("dialog[open]")) return;
    const lines = [
        ...views.filter((view) => mayOpen(view.name)).map((view) => [`g ${view.name[0]}`, view.title]),
        ["n", "New workspace"], ["/", "Filter this list"], ["t", "Theme"], ["?", "This help"],
        ["Ctrl Enter", "Run what is in the editor"], ["Ctrl F6", "Leave the terminal with the keyboard"],
    ];
    const dialog = showDialog("Help", [
        h("table", { class: "keys" }, h("caption", { class: "unseen" }, "Shortcuts"),
            h("thead", null, h("tr", null, h("th", { scope: "col" }, "Keys"), h("th", { scope: "col" }, "What they do"))),
            h("tbody", null, lines.map(([keys, what]) => h("tr", null, h("td", null, keys.split(" ").map((key) => h("kbd", null, key))), h("td", null, what))))),
        h("label", { class: "check" }, h("input", {
            type: "checkbox", checked: on(), on: { change() { localStorage.setItem(KEY, this.checked ? "on" : "off"); } },
        }), "Shortcuts of single keys"),
        h("p", { class: "quiet" }, "The console shows what the REST API says, and nothing else. ", h("a", { href: "/docs" }, "API reference")),
        h("div", { class: "row end" }, h("button", { type: "button", autofocus: true, on: { click: () => dialog.close() } }, "Close")),
    ]);
}

function pressed(event) {
    if (!on() || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (prefix) {
        prefix = false;
        const view = views.find((each) => each.name[0] === event.key && mayOpen(each.name));
        if (view) {
            location.hash = `#/${view.name}`;
            event.preventDefault();
        }
        return;
    }
    const actions = {
        g() { prefix = true; setTimeout(() => { prefix = false; }, 1500); },
        n() { if (mayOpen("workspaces")) openClaim(); },
        t: nextTheme,
        "?": showHelp,
        "/"() { document.querySelector("main input[type=search]")?.focus(); },
    };
    if (!actions[event.key]) return;
    actions[event.key]();
    event.preventDefault();
}

/** `allowed(name)` says whether a view may be opened now. */
export function startKeys(all, allowed) {
    views = all;
    mayOpen = allowed;
    document.addEventListener("keydown", pressed);
}
