// Requests to the server this page came from: JSON, problems (RFC 9457) and event streams.

import { refused, token } from "./session.js";

/** An error in the server's words. Status 0: the server did not answer. */
export class Problem extends Error {
    constructor(status, document) {
        super(document.message ?? document.detail ?? document.title ?? `The server answered ${status}.`);
        this.status = status;
        this.errorCode = document.errorCode ?? "";
        this.hint = document.hint ?? "";
        this.requestId = document.requestId ?? "";
        this.reason = document.reason ?? "";
        this.endedAt = document.endedAt ?? "";
        this.errors = document.errors ?? [];
        this.retryAfterSeconds = document.retryAfterSeconds ?? null;
    }

    get lost() { return this.status === 0; }
    /** The server has no such thing, or does not show it to this token. */
    get hidden() { return [403, 404, 405, 501].includes(this.status); }
}

async function problemOf(response) {
    let document = {};
    try {
        document = await response.json();
    } catch {
        // A proxy between may answer with a page of its own.
    }
    return new Problem(response.status, document);
}

/** The answer as it is, or a Problem. `json` and `body` exclude each other. */
export async function send(method, path, { json, body, headers, signal, keepalive } = {}) {
    const given = new Headers(headers);
    const sent = token();
    if (sent) given.set("Authorization", `Bearer ${sent}`);
    if (json !== undefined) given.set("Content-Type", "application/json");
    let response;
    try {
        response = await fetch(path, {
            method, headers: given, signal, keepalive, cache: "no-store", credentials: "omit", redirect: "error",
            body: json === undefined ? body : JSON.stringify(json),
        });
    } catch (error) {
        if (signal?.aborted) throw error;
        throw new Problem(0, { message: "The server does not answer.", hint: "The page tries again by itself." });
    }
    if (response.ok) return response;
    const problem = await problemOf(response);
    // An answer to an older token says nothing about the present one.
    if (response.status === 401 && sent === token()) refused();
    throw problem;
}

export async function get(path, options) {
    return (await send("GET", path, options)).json();
}

export async function post(path, json, options) {
    const response = await send("POST", path, { json, ...options });
    return response.status === 204 ? null : response.json();
}

export async function remove(path, options) {
    await send("DELETE", path, options);
}

export function segment(text) {
    return encodeURIComponent(text);
}

/** The path of a file in a URL: its slashes stay. */
export function filePath(path) {
    return path.split("/").map(encodeURIComponent).join("/");
}

function eventOf(block) {
    const event = { id: "", event: "message", data: "" };
    let lines = 0;
    for (const line of block.split("\n")) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue;
        const name = line.slice(0, colon);
        const value = line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        if (name === "data") event.data += (lines++ ? "\n" : "") + value;
        else if (name in event) event[name] = value;
    }
    return lines ? event : null;
}

/** The events of a stream as they come: { id, event, data }, with data parsed. `heard` runs at every sign of life. */
export async function* eventsOf(response, heard = () => {}) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            heard();
            const seen = Math.max(0, rest.length - 1);
            rest += value;
            let begin = 0;
            for (let end = rest.indexOf("\n\n", seen); end >= 0; end = rest.indexOf("\n\n", begin)) {
                const event = eventOf(rest.slice(begin, end));
                begin = end + 2;
                if (event) yield { ...event, data: JSON.parse(event.data) };
            }
            rest = rest.slice(begin);
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

/** Resolves after so many milliseconds, or as soon as one of the signals is aborted. */
export function pause(ms, ...signals) {
    return new Promise((resolve) => {
        const end = () => {
            clearTimeout(timer);
            signals.forEach((each) => each.removeEventListener("abort", end));
            resolve();
        };
        const timer = setTimeout(end, signals.some((each) => each.aborted) ? 0 : ms);
        signals.forEach((each) => each.addEventListener("abort", end));
    });
}

export const STREAM = { Accept: "text/event-stream" };
