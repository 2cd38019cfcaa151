// The token of this tab, and the form that asks for one. sessionStorage forgets it with the tab; nothing else keeps it.

import { h } from "./dom.js";

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

export function signInForm(why) {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-note" });
    return h("form", {
        class: "sign-in", on: {
            submit(event) {
                event.preventDefault();
                if (field.value.trim()) signIn(field.value);
            },
        },
    },
    h("h1", null, "Sign in"),
    why ? h("p", { role: "status" }, why) : null,
    h("label", { for: "token" }, "Token"), field,
    h("p", { class: "quiet", id: "token-note" }, "This tab keeps the token until you close it or sign out. An admin makes tokens with ", h("code", null, "hearth token create"), "."),
    h("button", { type: "submit", class: "primary" }, "Sign in"));
}
