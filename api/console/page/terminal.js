// A terminal in a workspace: a shell on a PTY, streamed as events; keys go back as bytes of standard input.

import { STREAM, post, remove, segment, send } from "./api.js";
import { announce, h } from "./dom.js";
import { followExecution } from "./executions.js";
import { problemBox } from "./parts.js";

const SHELL = ["/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l"];
const DAY_SECONDS = 86_400;
const READER_KEY = "hearth.terminalText";
const THEME = {
    background: "#12161a", foreground: "#d7dde2", cursor: "#ff8a4c", selection: "rgba(255, 138, 76, 0.35)",
    black: "#2a3138", red: "#ef7a72", green: "#7fc98f", yellow: "#e0b35c", blue: "#7fb2ea", magenta: "#c99be0", cyan: "#6cc5c9", white: "#d7dde2",
    brightBlack: "#7d8993", brightRed: "#ff9a92", brightGreen: "#9fe0ad", brightYellow: "#f4cf86", brightBlue: "#a5cbf5", brightMagenta: "#debcf0", brightCyan: "#93dfe2", brightWhite: "#ffffff",
};

let emulator = null;

/** xterm.js, a classic script that defines window.Terminal; loaded once, by the first terminal. */
function loadEmulator() {
    emulator ??= new Promise((resolve, reject) => {
        document.head.append(h("link", { rel: "stylesheet", href: "/console/xterm.css" }));
        const script = h("script", { src: "/console/xterm.js" });
        script.addEventListener("load", () => (window.Terminal ? resolve(window.Terminal) : reject(new Error("The terminal's file does not define a terminal."))));
        script.addEventListener("error", () => {
            emulator = null;
            script.remove();
            reject(new Error("The server does not serve the terminal's file. Is the package node-xterm installed there?"));
        });
        document.head.append(script);
    });
    return emulator;
}

/** Sends bytes in the order they were typed, one request at a time. */
class Keys {
    constructor(failed) {
        this.failed = failed;
        this.waiting = "";
        this.busy = false;
        this.id = "";
    }

    async send(text = "") {
        this.waiting += text;
        if (this.busy || !this.id || !this.waiting) return;
        this.busy = true;
        while (this.waiting && this.id) {
            const bytes = new TextEncoder().encode(this.waiting);
            this.waiting = "";
            try {
                await send("POST", `/v1/executions/${segment(this.id)}/stdin`, { body: bytes, headers: { "Content-Type": "application/octet-stream" } });
            } catch (problem) {
                this.failed(problem);
            }
        }
        this.busy = false;
    }
}

export function openTerminal({ root, signal, path }) {
    const box = h("div");
    const screen = h("div", { class: "terminal-room" });
    const status = h("span", { class: "quiet", role: "status" });
    const restart = h("button", { type: "button", hidden: true, on: { click: () => start() } }, "Start again");
    const reader = h("input", { type: "checkbox", checked: localStorage.getItem(READER_KEY) === "on", on: {
        change() {
            localStorage.setItem(READER_KEY, this.checked ? "on" : "off");
            term?.setOption("screenReaderMode", this.checked);
        },
    } });
    const leave = h("div", { class: "row" }, status, restart, h("label", { class: "check" }, reader, "Text for screen readers"), h("span", { class: "quiet" }, "Ctrl+F6 leaves the terminal"));
    root.append(box, screen, leave);
    let term = null;
    let id = "";
    let live = false;
    let size = "";
    let focused = false;
    const keys = new Keys((problem) => { if (live && problem.status !== 409) box.replaceChildren(problemBox(problem)); });

    // Version 3 has no public measure of a cell; its own add-on "fit" reads the same fields.
    function fitted() {
        const { actualCellWidth: width, actualCellHeight: height } = term._core.renderer.dimensions;
        if (!width || !height || !screen.clientWidth) return { cols: term.cols, rows: term.rows };
        return { cols: Math.max(20, Math.floor((screen.clientWidth - 16 - term._core.viewport.scrollBarWidth) / width)), rows: Math.max(8, Math.floor((screen.clientHeight - 12) / height)) };
    }

    let resizing = 0;
    function resize() {
        const { cols, rows } = fitted();
        if (`${cols} ${rows}` === size) return;
        size = `${cols} ${rows}`;
        term.resize(cols, rows);
        clearTimeout(resizing);
        if (live) resizing = setTimeout(() => post(`/v1/executions/${segment(id)}/resize`, { cols, rows }).catch(() => {}), 150);
    }

    function show(event) {
        if (event.event === "started") {
            id = event.data.id;
            live = true;
            keys.id = id;
            keys.send();
            status.textContent = "The shell runs. It ends when you leave this page.";
        } else if (event.event === "stdout" || event.event === "stderr") {
            if (event.data.droppedBytes) term.write(`\r\n[${event.data.droppedBytes} bytes were dropped]\r\n`);
            term.write(event.data.text ?? new TextDecoder().decode(Uint8Array.from(atob(event.data.base64), (c) => c.charCodeAt(0))));
        }
    }

    async function start() {
        restart.hidden = true;
        box.replaceChildren();
        status.textContent = "The shell starts.";
        keys.waiting = "";
        try {
            const Terminal = await loadEmulator();
            if (signal.aborted) return;
            if (!term) {
                // The DOM renderer inserts <style>, which the page's policy forbids; the canvas needs none.
                term = new Terminal({ rendererType: "canvas", theme: THEME, fontSize: 13, fontFamily: '"DejaVu Sans Mono", Menlo, Consolas, monospace', scrollback: 5000, cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches, screenReaderMode: reader.checked });
                term.open(screen);
                if (focused) term.focus();
                term.textarea.setAttribute("aria-label", "Terminal input");
                term.attachCustomKeyEventHandler((event) => {
                    if (event.key !== "F6" || !event.ctrlKey) return true;
                    if (event.type === "keydown") (restart.hidden ? reader : restart).focus();
                    return false;
                });
                term.on("data", (text) => { if (live || !id) keys.send(text); });
                const observer = new ResizeObserver(resize);
                observer.observe(screen);
                signal.addEventListener("abort", () => observer.disconnect());
            }
            id = keys.id = "";
            term.reset();
            resize();
            const { cols, rows } = term;
            await followExecution({
                signal, take: show, drained: () => drained(term),
                begin: () => send("POST", `${path}/executions`, { headers: STREAM, signal, json: { argv: SHELL, env: { TERM: "xterm-256color" }, pty: { cols, rows }, paced: true, timeoutSeconds: DAY_SECONDS } }),
            });
            status.textContent = "The shell has ended.";
            announce("The shell has ended");
        } catch (problem) {
            if (signal.aborted) return;
            status.textContent = "";
            box.replaceChildren(problemBox(problem));
        }
        live = false;
        keys.id = "";
        restart.hidden = false;
    }

    const end = () => {
        if (live) remove(`/v1/executions/${segment(id)}`, { keepalive: true }).catch(() => {});
        live = false;
    };
    signal.addEventListener("abort", () => {
        removeEventListener("pagehide", end);
        end();
        term?.destroy();
    });
    addEventListener("pagehide", end);
    start();
    return { focus() { focused = true; term?.focus(); } };
}

/** Waits while the screen is behind, so that a flood of output stays on the server, whose program then waits. */
async function drained(term) {
    while (term._core.writeBuffer?.length > 50) await new Promise((resolve) => { setTimeout(resolve, 16); });
}
