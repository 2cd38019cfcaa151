// Small parts that several views are made of: problems, tables, states, dialogs.

import { h } from "./dom.js";

/** The server's words for what went wrong, its hint, and the request's id for the log. */
export function problemBox(problem) {
    return h("div", { class: "problem", role: "alert" },
        h("p", { class: "problem-message" }, h("span", { "aria-hidden": "true" }, "▲ "), problem.message),
        problem.errors?.length ? h("ul", null, problem.errors.map((each) => h("li", null, `${each.pointer ?? ""} ${each.reason ?? ""}`.trim()))) : null,
        problem.hint ? h("p", null, problem.hint) : null,
        problem.requestId ? h("p", { class: "quiet" }, "Request ", h("code", null, problem.requestId)) : null);
}

export function empty(title, ...say) {
    return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", null, ...say));
}

function noteRow(row, columns) {
    return h("tr", { role: "row", key: `${row.key} note`, class: "note" }, h("td", { role: "cell", colspan: columns.length }, row.note));
}

/** A table that a narrow screen shows as blocks; explicit roles keep it a table for screen readers.
 * A row: key, cells, and perhaps id, class and a note below all cells. */
export function table(caption, columns, rows, options = {}) {
    return h("div", { class: "table-room" }, h("table", { class: options.class, role: "table" },
        h("caption", { class: "unseen" }, caption),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((column) =>
            h("th", { scope: "col", role: "columnheader", class: column.number ? "number" : null }, column.title)))),
        h("tbody", { role: "rowgroup" }, rows.map((row) => [h("tr", { role: "row", key: row.key, class: row.note ? "noted" : row.class, "data-id": row.id }, row.cells.map((cell, i) => {
            const props = { "data-label": columns[i].title, class: [columns[i].number ? "number" : "", columns[i].wide ? "wide" : ""].join(" ").trim() || null };
            return i === 0 ? h("th", { ...props, scope: "row", role: "rowheader" }, cell) : h("td", { ...props, role: "cell" }, cell);
        })), row.note ? noteRow(row, columns) : null]))));
}

const MARKS = { good: "●", busy: "◐", bad: "▲", off: "○" };

/** A state in a word, with a shape beside the colour. */
export function state(kind, word) {
    return h("span", { class: `state ${kind}` }, h("span", { class: "mark", "aria-hidden": "true" }, MARKS[kind]), word);
}

export function facts(...pairs) {
    return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value, note]) => h("div", { key: name },
        h("dt", null, name), h("dd", null, value, note ? h("span", { class: "quiet" }, note) : null))));
}

export function panel(title, id, ...children) {
    return h("section", { class: "panel", "aria-labelledby": id, key: id }, h("h2", { id }, title), children);
}

/** A bar of a share, with its number in words beside it. */
export function meter(label, value, most, text, note) {
    const share = most > 0 ? Math.min(1, value / most) : 0;
    return h("div", { class: "meter", key: label },
        h("div", { class: "meter-words" }, h("span", null, label, note ? h("small", null, ` ${note}`) : null), h("span", null, text)),
        h("div", { class: `meter-bar ${share > 0.9 ? "high" : ""}`, "aria-hidden": "true" }, h("span", { style: { width: `${share * 100}%` } })));
}

/** Runs an action of a button: the button waits, and a problem shows in `box`. */
export async function act(button, box, action) {
    button.disabled = true;
    box.replaceChildren();
    try {
        return await action();
    } catch (problem) {
        if (problem.name !== "AbortError") box.replaceChildren(problemBox(problem));
        return undefined;
    } finally {
        button.disabled = false;
    }
}

/** Shows a dialog with this content; gives it. It removes itself when it closes. */
export function showDialog(title, content, options = {}) {
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: options.class }, h("h2", { id: "dialog-title" }, title), content);
    const before = document.activeElement;
    dialog.addEventListener("close", () => {
        dialog.remove();
        if (before?.isConnected) before.focus();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
}

/** Asks; gives true for yes. The safe answer has the focus. */
export function confirmed(title, text, yes) {
    return new Promise((resolve) => {
        let answer = false;
        const dialog = showDialog(title, [
            h("p", null, text),
            h("div", { class: "row end" },
                h("button", { type: "button", autofocus: true, on: { click: () => dialog.close() } }, "Cancel"),
                h("button", { type: "button", class: "danger", on: { click: () => { answer = true; dialog.close(); } } }, yes)),
        ]);
        dialog.addEventListener("close", () => resolve(answer));
    });
}
