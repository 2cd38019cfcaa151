// One panel of series over time, as SVG: axes, lines or stacked areas, exemplars.

const PALETTE = ["#5aa64b", "#e0a81c", "#3fb3cc", "#e8743b", "#d6403a", "#2a78c2", "#b04aa8", "#6f5fb0", "#3f7d33", "#a8850a", "#2b7f94", "#a8491a", "#d06a9c", "#174f86", "#7d2a77", "#4a3f85"];
// Grafana's names of colours, as far as the dashboards name some.
const NAMED = { green: PALETTE[0], yellow: PALETTE[1], orange: PALETTE[3], red: PALETTE[4], blue: PALETTE[5], purple: PALETTE[6] };
const colourOf = (panel, at) => NAMED[panel.colours[panel.series[at].name]] ?? PALETTE[at % PALETTE.length];
const EXEMPLAR = "#4b5a70";
const MARGIN = { top: 10, right: 14, bottom: 22 };

function node(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
}

function widthOf(text) {
    widthOf.pen ??= document.createElement("canvas").getContext("2d");
    widthOf.pen.font = "11px 'Liberation Sans', sans-serif";
    return widthOf.pen.measureText(text).width;
}

const numbers = (series) => series.points.map(([, value]) => value).filter((value) => value !== null);
const isFlat = (series) => !numbers(series).some((value) => value > 0);

/** Each series' lower and upper edge at each time; those of stacked ones lie upon those before. */
function edges(panel) {
    const height = new Map();
    return panel.series.map((series) => series.points.map(([at, value]) => {
        const low = panel.stacked ? height.get(at) ?? 0 : 0;
        if (panel.stacked && value !== null) height.set(at, low + value);
        return { at, low, high: value === null ? null : low + value };
    }));
}

/** Stretches without a gap: where a number is missing, or no answer came for longer than two seconds. */
function stretches(points) {
    const found = [];
    let last = null;
    for (const point of points) {
        if (point.high !== null) {
            if (last === null || point.at - last > 2) found.push([]);
            found.at(-1).push(point);
            last = point.at;
        } else {
            last = null;
        }
    }
    return found;
}

const path = (points) => points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

function clock(at, seconds) {
    return new Date(at * 1000).toISOString().slice(11, seconds ? 19 : 16);
}

function timeTicks(board, width) {
    const step = [10, 15, 30, 60, 120].find((each) => (board.end - board.start) / each * 74 < width) ?? 240;
    const ticks = [];
    for (let at = Math.ceil(board.start / step) * step; at <= board.end; at += step) ticks.push({ at, label: clock(at, true) });
    return ticks;
}

/** The top of the axis: the most of the lines. Exemplars may raise it, but not so far that lines lie flat. */
function topOf(panel, layers) {
    const highs = layers.flat().map((point) => point.high ?? 0);
    const line = Math.max(0, ...highs);
    const points = panel.exemplars.map(([, value]) => value).filter((value) => value <= 1.6 * line);
    return Math.max(line, ...points);
}

/** A layer of a stack has an edge where it is, and one step beside. */
function edged(point, at, points) {
    const thick = [points[at - 1], point, points[at + 1]].some((each) => each && each.high > each.low);
    return thick ? point : { ...point, high: null };
}

function drawLines(svg, panel, layers, x, y) {
    // Lines that stay at zero lie below; in a stack they would only hide the edge of another.
    const order = layers.map((_, at) => at).sort((a, b) => isFlat(panel.series[b]) - isFlat(panel.series[a]) || a - b);
    for (const at of order) {
        for (const stretch of panel.stacked ? stretches(layers[at]) : []) {
            const upper = stretch.map((point) => [x(point.at), y(point.high)]);
            const lower = stretch.map((point) => [x(point.at), y(point.low)]).reverse();
            svg.append(node("path", { d: `${path([...upper, ...lower])}Z`, fill: colourOf(panel, at), "fill-opacity": 0.28 }));
        }
        for (const stretch of stretches(panel.stacked ? layers[at].map(edged) : layers[at])) {
            const upper = stretch.map((point) => [x(point.at), y(point.high)]);
            const single = upper.length === 1;
            svg.append(single ? node("circle", { cx: upper[0][0], cy: upper[0][1], r: 1.6, fill: colourOf(panel, at) })
                : node("path", { d: path(upper), fill: "none", stroke: colourOf(panel, at), "stroke-width": 1.5, "stroke-linejoin": "round" }));
        }
    }
}

function drawChart(panel, board, width, height) {
    const svg = node("svg", { width, height });
    const layers = edges(panel);
    const whole = panel.unit === "short" && layers.flat().every((point) => point.high === null || Number.isInteger(point.high));
    const ticks = panel.most === null ? ticksOf(panel.unit, topOf(panel, layers), height < 150 ? 3 : 4, whole) : ticksOf(panel.unit, panel.most, 4, whole);
    const top = ticks.at(-1).value;
    const left = Math.ceil(Math.max(...ticks.map((tick) => widthOf(tick.label)))) + 16;
    const right = width - MARGIN.right;
    const bottom = height - MARGIN.bottom;
    const x = (at) => left + (at - board.start) / (board.end - board.start) * (right - left);
    const y = (value) => bottom - value / top * (bottom - MARGIN.top);
    for (const tick of ticks) {
        const at = Math.round(y(tick.value)) + 0.5;
        svg.append(node("line", { x1: left, x2: right, y1: at, y2: at, class: tick.value ? "grid" : "axis" }));
        svg.append(node("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, tick.label));
    }
    for (const { at, label } of timeTicks(board, right - left)) {
        const place = Math.round(x(at)) + 0.5;
        const half = widthOf(label) / 2;
        svg.append(node("line", { x1: place, x2: place, y1: MARGIN.top, y2: bottom, class: "grid" }));
        if (place - half >= left - 8 && place + half <= width) svg.append(node("text", { x: place, y: height - 5, "text-anchor": "middle" }, label));
    }
    drawLines(svg, panel, layers, x, y);
    if (board.mark) {
        const place = Math.round(x(board.mark.at)) + 0.5;
        svg.append(node("line", { x1: place, x2: place, y1: MARGIN.top, y2: bottom, class: "mark-line" }));
        svg.append(node("text", { x: place - 5, y: MARGIN.top + 10, "text-anchor": "end", class: "mark-text" }, board.mark.label));
    }
    for (const [at, value] of panel.exemplars) {
        if (value > top || at < board.start || at > board.end) continue;
        svg.append(node("path", { d: `M${x(at)} ${y(value) - 3.2}l3.2 3.2l-3.2 3.2l-3.2 -3.2Z`, fill: EXEMPLAR, "fill-opacity": 0.55, stroke: "#fff", "stroke-width": 0.6 }));
    }
    return svg;
}
