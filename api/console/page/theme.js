// Light, dark, or as the system has it. Only the choice is kept.

import { announce } from "./dom.js";

const KEY = "hearth.theme";
const CHOICES = ["system", "light", "dark"];

function choice() {
    const kept = localStorage.getItem(KEY);
    return CHOICES.includes(kept) ? kept : "system";
}

function apply() {
    const now = choice();
    if (now === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    const button = document.getElementById("theme");
    button.textContent = { system: "Auto", light: "Light", dark: "Dark" }[now];
    button.setAttribute("aria-label", `Theme: ${button.textContent}. Change`);
}

/** A colour of the style sheet, for what draws itself. */
export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function nextTheme() {
    localStorage.setItem(KEY, CHOICES[(CHOICES.indexOf(choice()) + 1) % CHOICES.length]);
    apply();
    announce(`Theme: ${choice()}`);
}

export function startTheme() {
    document.getElementById("theme").addEventListener("click", nextTheme);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
    apply();
}
