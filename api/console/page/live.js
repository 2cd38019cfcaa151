// Follows the server's events: keeps what views show fresh, and tells the shell whether the server answers.

import { STREAM, eventsOf, pause, send } from "./api.js";

const DEBOUNCE_MS = 250;
const LEAST_BETWEEN_MS = 1000;
const KEPT = 500;
const SILENCE_MS = 60_000;
const HIDDEN_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

const eventListeners = new Set();
const stateListeners = new Set();
/** The latest events, oldest first. */
export const recent = [];
let state = "connecting";
let lastId = "";
let running = null;
let early = null;  // ends the pause before the next attempt

/** "connecting", "live", "lost" or "off" (the token may not follow events). */
export function liveState() { return state; }

/** Calls back with each new event; gives a function that ends this. */
export function onEvent(listener) {
    eventListeners.add(listener);
    return () => eventListeners.delete(listener);
}

export function onLive(listener) {
    stateListeners.add(listener);
    return () => stateListeners.delete(listener);
}

function become(next) {
    if (next === state) return;
    const before = state;
    state = next;
    stateListeners.forEach((each) => each(next, before));
}

function take(event) {
    lastId = event.id;
    recent.push(event.data);
    if (recent.length > KEPT) recent.splice(0, recent.length - KEPT);
    eventListeners.forEach((each) => each(event.data));
}

async function followOnce(signal) {
    const silence = new AbortController();
    let timer = 0;
    const heard = () => {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    heard();
    try {
        const headers = lastId ? { ...STREAM, "Last-Event-ID": lastId } : STREAM;
        const response = await send("GET", "/v1/events", { headers, signal: AbortSignal.any([signal, silence.signal]) });
        become("live");
        for await (const event of eventsOf(response, heard)) take(event);
    } finally {
        clearTimeout(timer);
    }
}

async function follow(signal) {
    let wait = FIRST_WAIT_MS;
    while (!signal.aborted) {
        const begun = Date.now();
        try {
            await followOnce(signal);
        } catch (problem) {
            if (signal.aborted || problem.status === 401) return;
            if (problem.hidden) {
                become("off");
                return;
            }
            if (problem.status === 0 || problem.status >= 500) become("lost");
        }
        if (signal.aborted) return;
        // A stream that lasted was well: the next attempt begins at once.
        if (Date.now() - begun > LONGEST_WAIT_MS) wait = FIRST_WAIT_MS;
        early = new AbortController();
        await pause(wait * (0.75 + Math.random() / 2), signal, early.signal);
        wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
}

/** Begins to follow; with `anew` as somebody else, who may not see the events of before. */
export function startLive(anew) {
    stopLive();
    if (anew) {
        recent.length = 0;
        lastId = "";
    }
    become("connecting");
    running = new AbortController();
    follow(running.signal);
}

export function stopLive() {
    running?.abort();
    running = null;
}

/** Tries again now. */
export function retryLive() { early?.abort(); }

// A browser gives one server six connections; a hidden page frees its own.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) {
        hiding = setTimeout(() => { if (running) { stopLive(); hiding = -1; } }, HIDDEN_MS);
    } else if (hiding === -1) {
        startLive(false);
    } else {
        retryLive();
    }
});

/**
 * Calls `load` and then `show(answer)`, or `fail(problem)`. `wants(event)` says which events make it load again.
 * `every` is the interval in ms without such events; only a visible page loads. Ends with `signal`.
 */
export function watch({ load, show, fail, wants = () => false, every = 5000, signal }) {
    let timer = 0;
    let busy = false;
    let again = false;
    let last = 0;

    async function now() {
        clearTimeout(timer);
        if (signal.aborted) return;
        if (busy) {
            again = true;
            return;
        }
        busy = true;
        again = false;
        last = Date.now();
        let ended = false;
        try {
            const answer = await load(signal);
            if (!signal.aborted) show(answer);
        } catch (problem) {
            if (!signal.aborted) {
                if (problem.status === undefined) console.error(problem);
                // A lost server has its banner; what was shown stays.
                if (!problem.lost) ended = fail(problem) === "stop";
            }
        }
        busy = false;
        if (!signal.aborted && !ended) later(again ? DEBOUNCE_MS : every);
    }

    function later(ms) {
        clearTimeout(timer);
        timer = setTimeout(() => {
            if (document.hidden || liveState() === "lost") later(every);
            else now();
        }, ms);
    }

    const offEvent = onEvent((event) => {
        if (!wants(event)) return;
        if (busy) again = true;
        else later(Math.max(DEBOUNCE_MS, LEAST_BETWEEN_MS - (Date.now() - last)));
    });
    const offLive = onLive((state, before) => { if (state === "live" && before === "lost") now(); });
    const seen = () => { if (!document.hidden) now(); };
    document.addEventListener("visibilitychange", seen);
    signal.addEventListener("abort", () => {
        clearTimeout(timer);
        offEvent();
        offLive();
        document.removeEventListener("visibilitychange", seen);
    });
    now();
    return now;
}
