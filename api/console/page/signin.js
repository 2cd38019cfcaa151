// The form for a token. The token goes to this tab's sessionStorage and into the Authorization header, nowhere else.

import { h } from "./dom.js";
import { signIn } from "./session.js";

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
