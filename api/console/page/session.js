// The token of this tab. sessionStorage forgets it with the tab; nothing else keeps it.

const KEY = "hearth.token";
const listeners = new Set();

export function token() {
    return sessionStorage.getItem(KEY);
}

export function signIn(text) {
    sessionStorage.setItem(KEY, text.trim());
    listeners.forEach((each) => each("in"));
}

export function signOut() {
    sessionStorage.removeItem(KEY);
    listeners.forEach((each) => each("out"));
}

/** The server wants a token, or another one. */
export function refused() {
    listeners.forEach((each) => each("refused"));
}

/** Calls back with "in", "out" or "refused". */
export function onSession(listener) {
    listeners.add(listener);
}
