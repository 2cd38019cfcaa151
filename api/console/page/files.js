// The files of a workspace: a folder at a time, text and pictures to look at, downloads, uploads, removal.

import { filePath, get, post, remove, segment, send } from "./api.js";
import { announce, h, keep, patch } from "./dom.js";
import { age, bytes } from "./format.js";
import { act, confirmed, empty, problemBox, table } from "./parts.js";

const PAGE = 200;
const PREVIEW = 256 * 1024;
const PICTURE_MOST = 8 * 1024 * 1024;
const PICTURES = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };
const KINDS = { directory: "folder", symlink: "link", other: "special file" };

function nameOf(path) { return path.slice(path.lastIndexOf("/") + 1); }

function textOf(buffer) {
    try {
        // The end of a part of a file may be half a character: `stream` leaves it out.
        const text = new TextDecoder("utf-8", { fatal: true }).decode(buffer, { stream: true });
        return text.includes("\0") ? null : text;
    } catch {
        return null;
    }
}

export function openFiles({ root, signal, path }) {
    let folder = ".";
    let items = [];
    let cursor = null;
    const box = h("div");
    const list = h("div", { class: "stack" });
    const preview = keep(h("div", { class: "preview" }));
    let url = "";

    async function load(to = folder, next = "") {
        try {
            const page = await get(`${path}/files?path=${segment(to)}&limit=${PAGE}${next && `&cursor=${segment(next)}`}`, { signal });
            if (to !== folder) preview.replaceChildren();
            folder = to;
            items = next ? [...items, ...page.items] : page.items;
            cursor = page.nextCursor;
            box.replaceChildren();
            draw();
        } catch (problem) {
            if (!signal.aborted) box.replaceChildren(problemBox(problem));
        }
    }

    async function look(entry) {
        URL.revokeObjectURL(url);
        const type = PICTURES[entry.path.split(".").at(-1).toLowerCase()];
        const isPicture = type && entry.size <= PICTURE_MOST;
        try {
            const headers = isPicture || entry.size === 0 ? {} : { Range: `bytes=0-${PREVIEW - 1}` };
            const response = await send("GET", `${path}/files/${filePath(entry.path)}`, { headers, signal });
            const buffer = await response.arrayBuffer();
            let content;
            if (isPicture) {
                url = URL.createObjectURL(new Blob([buffer], { type }));
                content = h("img", { src: url, alt: `Picture ${nameOf(entry.path)}` });
            } else {
                const text = textOf(buffer);
                content = text === null ? empty("This file is not text.", "Download it to look at it.")
                    : [h("pre", { tabindex: "0" }, text), entry.size > PREVIEW ? h("p", { class: "quiet" }, `The first ${bytes(PREVIEW)} of ${bytes(entry.size)}. Download the file for the rest.`) : null];
            }
            const title = h("h3", { tabindex: "-1" }, entry.path);
            preview.replaceChildren(...[title, content].flat().filter(Boolean));
            title.focus();
        } catch (problem) {
            if (!signal.aborted) preview.replaceChildren(problemBox(problem));
        }
    }

    /** A signed link streams to the disk; the page never holds the file. */
    async function download(entry) {
        const link = await post(`${path}/links`, { path: entry.path, expiresInSeconds: 60 }, { signal });
        h("a", { href: new URL(link.url).pathname, download: nameOf(entry.path) }).click();
    }

    async function upload(files) {
        for (const file of files) {
            const to = folder === "." ? file.name : `${folder}/${file.name}`;
            if (items.some((each) => each.path === to) && !await confirmed("Replace the file?", `${to} is there already.`, "Replace")) continue;
            await send("PUT", `${path}/files/${filePath(to)}`, { body: file, headers: { "Content-Type": "application/octet-stream" }, signal });
            announce(`${file.name} is uploaded`);
        }
        await load();
    }

    async function take(entry) {
        const isFolder = entry.type === "directory";
        if (!await confirmed("Delete it?", isFolder ? `${entry.path} and all that is in it will be removed.` : `${entry.path} will be removed.`, "Delete")) return;
        await remove(`${path}/files/${filePath(entry.path)}${isFolder ? "?recursive=true" : ""}`, { signal });
        announce(`${entry.path} is deleted`);
        await load();
    }

    function way() {
        const parts = folder === "." ? [] : folder.split("/");
        return h("nav", { class: "crumbs", "aria-label": "Folder" },
            h("button", { type: "button", class: "link", "aria-current": parts.length ? null : "page", on: { click: () => load(".") } }, "workspace"),
            parts.map((part, i) => [" / ", h("button", { type: "button", class: "link", "aria-current": i === parts.length - 1 ? "page" : null, on: { click: () => load(parts.slice(0, i + 1).join("/")) } }, part)]));
    }

    function row(entry) {
        const name = nameOf(entry.path);
        const isFolder = entry.type === "directory";
        return {
            key: entry.path,
            cells: [
                entry.type === "other" ? name : h("button", { type: "button", class: "link", on: { click: () => (isFolder ? load(entry.path) : look(entry)) } }, isFolder ? `${name}/` : name),
                entry.target ? `${KINDS.symlink} → ${entry.target}` : KINDS[entry.type] ?? "file", isFolder ? "–" : bytes(entry.size), entry.mode, [age(entry.modifiedAt), " ago"],
                h("span", { class: "row tight" },
                    entry.type === "file" ? h("button", { type: "button", "aria-label": `Download ${name}`, on: { click() { act(this, box, () => download(entry)); } } }, "Download") : null,
                    h("button", { type: "button", "aria-label": `Delete ${name}`, on: { click() { act(this, box, () => take(entry)); } } }, "Delete")),
            ],
        };
    }

    const input = h("input", { type: "file", multiple: true, id: "upload", class: "unseen", tabindex: "-1", "aria-label": "Files to upload", on: { change() { act(button, box, () => upload([...this.files])).then(() => { this.value = ""; }); } } });
    const button = h("button", { type: "button", on: { click: () => input.click() } }, "Upload");

    function draw() {
        patch(list, h("div", { class: "head" }, way(), h("div", { class: "row" }, keep(input), keep(button), h("button", { type: "button", on: { click: () => load() } }, "Reload"))),
            items.length ? table(`Files in ${folder}`, [{ title: "Name" }, { title: "Kind" }, { title: "Size", number: true }, { title: "Mode" }, { title: "Changed", number: true }, { title: "Actions", number: true }], items.map(row))
                : empty("This folder is empty.", "Upload a file, or drop one here."),
            cursor ? h("p", { key: "more" }, h("button", { type: "button", on: { click: () => load(folder, cursor) } }, "More")) : null);
    }

    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
        event.preventDefault();
        if (event.dataTransfer.files.length) act(button, box, () => upload([...event.dataTransfer.files]));
    });
    signal.addEventListener("abort", () => URL.revokeObjectURL(url));
    root.append(box, list, preview);
    load();
}
