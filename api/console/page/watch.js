// Keeps what a view shows fresh: loads it now, after events that concern it, and slowly while nobody tells.

import { liveState, onEvent, onLive } from "./live.js";

const DEBOUNCE_MS = 250;
const LEAST_BETWEEN_MS = 1000;

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
