// Builds and updates DOM nodes. Text is only ever set as text, so a tenant's output cannot become markup.

// Characters that would reorder or hide the text around them.
const TRICKS = /[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Text in which nothing hides: names and output are a tenant's. */
export function visible(text) {
    return text.replace(TRICKS, (c) => (c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd"));
}

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "readOnly"]);

function dispatch(event) {
    this.handlers?.[event.type]?.call(this, event);
}

/** Handlers hang on the node, so that `patch` can replace them without removing listeners. */
function listen(node, handlers) {
    node.handlers = handlers;
    node.listening ??= new Set();
    for (const type of Object.keys(handlers)) {
        if (node.listening.has(type)) continue;
        node.listening.add(type);
        node.addEventListener(type, dispatch);
    }
}

function build(node, props, children) {
    for (const [name, value] of Object.entries(props ?? {})) {
        if (value === null || value === undefined) continue;
        if (name === "on") listen(node, value);
        else if (name === "key") node.key = value;
        else if (name === "style") Object.entries(value).forEach(([each, text]) => node.style.setProperty(each, text));
        else if (PROPERTIES.has(name)) (node.given ??= {})[name] = node[name] = value;
        else if (value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...nodes(children).map(standIn));
    // A select knows its value only after its options are there.
    if (node.given?.value !== undefined) node.value = node.given.value;
    return node;
}

function nodes(children) {
    return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false)
        .map((each) => (each instanceof Node ? each : document.createTextNode(visible(String(each)))));
}

/** Taking a kept node out of the page would lose its focus and scroll; a comment holds its place until `patch`. */
function standIn(node) {
    if (!node.kept || !node.isConnected) return node;
    const comment = document.createComment("");
    comment.standsFor = node;
    return comment;
}

/** Puts kept nodes into a subtree that is new in the page. */
function settle(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_COMMENT);
    const found = [];
    while (walker.nextNode()) if (walker.currentNode.standsFor) found.push(walker.currentNode);
    found.forEach((comment) => comment.replaceWith(comment.standsFor));
}

/** An HTML element. Props: attributes, `on` (handlers), `style` (object), `key` (identity in lists). */
export function h(tag, props, ...children) {
    return build(document.createElement(tag), props, children);
}

/** An SVG element. */
export function svg(tag, props, ...children) {
    return build(document.createElementNS(SVG, tag), props, children);
}

/** Marks a node as one that keeps its own content: `patch` moves it and never changes it. */
export function keep(node) {
    node.kept = true;
    return node;
}

function alike(old, next) {
    return old.nodeType === next.nodeType && old.nodeName === next.nodeName && old.key === next.key && !old.kept && !next.kept;
}

function copyAttributes(old, next) {
    for (const { name } of [...old.attributes]) {
        // The user opens and closes <details>; the page does not.
        if (name !== "style" && name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
        if (name !== "style" && name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.style.cssText !== next.style.cssText) old.style.cssText = next.style.cssText;
}

function morph(old, next) {
    if (old.nodeType === Node.TEXT_NODE) {
        if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
        return;
    }
    copyAttributes(old, next);
    if (next.handlers) listen(old, next.handlers);
    else delete old.handlers;
    patch(old, [...next.childNodes]);
    for (const [name, value] of Object.entries(next.given ?? {})) {
        if (old[name] !== value && !(name === "value" && document.activeElement === old)) old[name] = value;
    }
}

/** Makes the children of `parent` these, and keeps focus, scroll and selection of what stays. */
export function patch(parent, ...children) {
    const keyed = new Map();
    for (const child of parent.childNodes) if (child.key !== undefined) keyed.set(child.key, child);
    let at = parent.firstChild;
    for (const given of nodes(children)) {
        const next = given.standsFor ?? given;
        if (next === at) {
            at = at.nextSibling;
            continue;
        }
        const old = next.key !== undefined ? keyed.get(next.key) : at;
        if (next.parentNode !== parent && old && alike(old, next)) {
            if (old === at) at = at.nextSibling;
            else parent.insertBefore(old, at);
            morph(old, next);
        } else {
            parent.insertBefore(next, at);
            if (!next.kept) settle(next);
        }
    }
    while (at) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
    }
}

let announced = 0;

/** Says something to users of screen readers, politely. */
export function announce(text) {
    const region = document.getElementById("announcements");
    announced += 1;
    const mine = announced;
    region.textContent = text;
    setTimeout(() => { if (mine === announced) region.textContent = ""; }, 8000);
}
