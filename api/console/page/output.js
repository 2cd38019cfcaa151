// Shows what a program printed and drew. All of it is a tenant's: escape sequences and markup become text, or nothing.

import { h, visible } from "./dom.js";

const SHOWN = 200_000;
const PIECE = 16_384;
const SAVED = 8_000_000;
const FLUSH_MS = 40;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const ESCAPE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[PX^_][^\u001b]*\u001b\\|[ -/]*[0-OQ-WYZ\\`-~])/y;
const LONGEST_ESCAPE = 4096;

/** Reads text with escape sequences: calls `emit(text, classes)`; colours of the foreground stay, all else is dropped. */
function ansiReader(emit) {
    let style = { colour: "", bold: false };
    let rest = "";

    function select(parameters) {
        const codes = parameters === "" ? [0] : parameters.split(/[;:]/).map(Number);
        for (let i = 0; i < codes.length; i += 1) {
            const code = codes[i];
            if (code === 0) style = { colour: "", bold: false };
            else if (code === 1) style.bold = true;
            else if (code === 22) style.bold = false;
            else if (code >= 30 && code <= 37) style.colour = `ansi-${code - 30}`;
            else if (code >= 90 && code <= 97) style.colour = `ansi-${code - 90}`;
            else if (code === 39) style.colour = "";
            else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : 4;
        }
    }

    return (chunk) => {
        const text = rest + chunk;
        rest = "";
        let at = 0;
        while (at < text.length) {
            const escape = text.indexOf("\u001b", at);
            const end = escape < 0 ? text.length : escape;
            if (end > at) emit(visible(text.slice(at, end)), [style.colour, style.bold ? "bold" : ""].filter(Boolean).join(" "));
            if (escape < 0) return;
            ESCAPE.lastIndex = escape;
            const found = ESCAPE.exec(text);
            if (found) {
                if (found[0].startsWith("\u001b[") && found[0].endsWith("m")) select(found[0].slice(2, -1));
                at = escape + found[0].length;
            } else if (text.length - escape < LONGEST_ESCAPE) {
                rest = text.slice(escape);  // the sequence goes on in the next chunk
                return;
            } else {
                at = escape + 1;
            }
        }
    };
}

/** A picture from a `mime` bundle, or null. SVG is only ever an image: as one it runs no script and loads nothing. */
function picture(mime) {
    const type = PICTURES.find((each) => typeof mime[each] === "string" && /^[A-Za-z0-9+/=\s]+$/.test(mime[each]));
    const alt = typeof mime["text/plain"] === "string" ? `Picture: ${mime["text/plain"].slice(0, 200)}` : "Picture made by the program";
    if (type) return h("img", { src: `data:${type};base64,${mime[type].replace(/\s/g, "")}`, alt });
    if (typeof mime["image/svg+xml"] === "string") return h("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(mime["image/svg+xml"])}`, alt });
    return null;
}

function asText(mime) {
    const json = Object.keys(mime).find((each) => each === "application/json" || each.endsWith("+json") && each !== "application/vnd.jupyter.widget-view+json");
    if (typeof mime["text/plain"] === "string") return mime["text/plain"];
    if (json) return typeof mime[json] === "string" ? mime[json] : JSON.stringify(mime[json], null, 2);
    const any = Object.keys(mime).find((each) => typeof mime[each] === "string");
    return any ? mime[any] : "";
}

/** Output that grows: `write`, `result`, `error`; `node` shows it. */
export class Output {
    constructor(label = "Output") {
        this.node = h("div", { class: "output", role: "log", "aria-label": label, "aria-live": "off", tabindex: "0" });
        this.note = h("p", { class: "quiet", hidden: true });
        this.body = h("div");
        this.node.append(this.note, this.body);
        this.clear();
    }

    clear() {
        this.body.replaceChildren();
        this.note.hidden = true;
        this.queue = [];
        this.saved = [];
        this.savedLength = 0;
        this.shown = 0;
        this.hiddenLength = 0;
        this.pre = null;
        this.line = [];
        this.overwrite = false;
        this.readers = new Map();
    }

    write(channel, text) {
        if (this.savedLength < SAVED) {
            this.saved.push(text);
            this.savedLength += text.length;
        }
        this.queue.push([channel, text]);
        this.timer ??= setTimeout(() => this.flush(), FLUSH_MS);
    }

    /** Shows an event of a stream. */
    take({ event, data }) {
        if (event === "stdout" || event === "stderr") {
            if (data.droppedBytes) this.mark(`${data.droppedBytes} bytes were not kept by the server.`);
            this.write(event, data.text ?? new TextDecoder().decode(Uint8Array.from(atob(data.base64), (c) => c.charCodeAt(0))));
        } else if (event === "result") this.result(data.mime);
        else if (event === "error") this.error(data);
    }

    flush() {
        clearTimeout(this.timer);
        this.timer = undefined;
        const follows = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 40;
        for (const [channel, text] of this.queue) {
            // Only the end of a flood is drawn; the rest would be removed at once.
            const from = Math.max(0, text.length - SHOWN);
            this.hiddenLength += from;
            if (!this.readers.has(channel)) this.readers.set(channel, ansiReader((piece, style) => this.print(piece, `${channel} ${style}`)));
            this.readers.get(channel)(text.slice(from));
        }
        this.queue = [];
        this.trim();
        if (follows) this.node.scrollTop = this.node.scrollHeight;
    }

    print(text, style) {
        if (!this.pre) {
            this.pre = h("pre");
            this.body.append(this.pre);
            this.line = [];
        }
        for (const part of text.replaceAll("\r\n", "\n").split(/(\r)/)) {
            if (part === "\r") this.overwrite = true;
            else if (part) this.put(part, style);
        }
    }

    put(text, style) {
        if (this.overwrite && text[0] !== "\n") {
            this.line.forEach((each) => { this.shown -= each.textContent.length; each.remove(); });
            this.line = [];
        }
        this.overwrite = false;
        const newline = text.lastIndexOf("\n");
        if (newline >= 0) {
            this.span(text.slice(0, newline + 1), style);
            this.line = [];
        }
        this.span(text.slice(newline + 1), style);
    }

    span(text, style) {
        for (let at = 0; at < text.length; at += PIECE) {
            const piece = text.slice(at, at + PIECE);
            const node = h("span", { class: style.trim() }, piece);
            this.pre.append(node);
            this.line.push(node);
            this.shown += piece.length;
        }
    }

    trim() {
        while (this.shown > SHOWN && this.body.firstChild) {
            const block = this.body.firstChild;
            const first = block.nodeName === "PRE" ? block.firstChild : null;
            if (!first) {
                block.remove();
                continue;
            }
            this.shown -= first.textContent.length;
            this.hiddenLength += first.textContent.length;
            first.remove();
        }
        if (this.hiddenLength === 0) return;
        this.note.hidden = false;
        this.note.replaceChildren(`${this.hiddenLength.toLocaleString("en")} characters above are not shown. `, h("button", { type: "button", on: { click: () => this.save() } }, "Save the output"));
    }

    save() {
        saveBlob(new Blob(this.saved, { type: "text/plain" }), "output.txt");
    }

    block(node) {
        this.flush();
        this.pre = null;
        this.body.append(node);
        this.node.scrollTop = this.node.scrollHeight;
    }

    mark(text) { this.block(h("p", { class: "quiet" }, text)); }

    result(mime) {
        const image = picture(mime);
        if (image) this.block(h("figure", null, image));
        else this.block(h("pre", { class: "value" }, visible(asText(mime)).slice(0, SHOWN)));
    }

    error({ name, message, traceback }) {
        this.flush();
        this.pre = null;
        this.readers.delete("traceback");
        this.write("traceback", traceback || `${name}: ${message}`);
        this.flush();
    }

    /** Shows an Execution that was read whole. Its output comes before its results. */
    whole(execution) {
        this.clear();
        if (execution.stdout) this.write("stdout", execution.stdout);
        if (execution.stderr) this.write("stderr", execution.stderr);
        execution.results.forEach((each) => this.result(each.mime));
        if (execution.error) this.error(execution.error);
        this.flush();
    }
}

/** Saves to the user's disk. */
export function saveBlob(blob, name) {
    const url = URL.createObjectURL(blob);
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
