// A whole dashboard: panels at their places of Grafana's grid, with titles, legends and numbers.

const CELL = 36; // px of a row of the grid
const GAP = 8;
const LINES = 2; // of a legend
const COLOURS = { green: "#2f9e44", yellow: "#d9a400", red: "#d6303a" };

function element(name, kind, text) {
    const made = document.createElement(name);
    made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
}

/** Names in their colours, those with something to show first. What has no room is counted, as Grafana would scroll. */
function legendOf(panel) {
    const legend = element("div", "legend");
    const entries = panel.series.map((series, at) => ({ name: series.name, at, flat: isFlat(series) }));
    entries.sort((a, b) => a.flat - b.flat || a.at - b.at);
    for (const { name, at, flat } of entries) {
        const entry = element("span", flat ? "entry flat" : "entry");
        const mark = element("i", "mark");
        mark.style.background = colourOf(panel, at);
        entry.append(mark, name);
        legend.append(entry);
    }
    legend.dataset.most = LINES * 17 + 8;
    return legend;
}

function fit(legend) {
    const most = Number(legend.dataset.most);
    const rest = element("span", "entry flat");
    let hidden = 0;
    while (legend.scrollHeight > most + 1 && legend.children.length > 1) {
        rest.remove();
        legend.lastChild.remove();
        hidden += 1;
        rest.textContent = `+ ${hidden} more`;
        legend.append(rest);
    }
}

function colourBy(steps, value) {
    return COLOURS[steps.filter((step) => step.value === null || value >= step.value).at(-1).color];
}

function stat(panel, board, width, height) {
    const values = panel.series[0].points.filter(([, value]) => value !== null);
    const last = values.at(-1)[1];
    const colour = colourBy(panel.steps, last);
    const box = element("div", "value");
    const number = element("div", "number", shown(panel.unit, last));
    number.style.color = colour;
    number.style.fontSize = `${height > 150 ? 72 : 34}px`;
    const low = Math.round(height * 0.4);
    const most = Math.max(...values.map(([, value]) => value)) || 1;
    const points = values.map(([at, value]) => [(at - board.start) / (board.end - board.start) * width, low - 2 - value / most * (low - 6)]);
    const svg = node("svg", { width, height: low });
    svg.append(node("path", { d: `${path(points)}L${points.at(-1)[0]} ${low}L${points[0][0]} ${low}Z`, fill: colour, "fill-opacity": 0.14 }));
    svg.append(node("path", { d: path(points), fill: "none", stroke: colour, "stroke-width": 1.2 }));
    box.append(number, svg);
    return box;
}

function drawPanel(panel, board, unit) {
    const { x, y, w, h } = panel.place;
    const box = element("section", panel.kind);
    Object.assign(box.style, { left: `${x * unit}px`, top: `${y * CELL}px`, width: `${w * unit - GAP}px`, height: `${h * CELL - GAP}px` });
    box.append(element("h2", "", panel.title));
    document.querySelector("main").append(box);
    if (panel.kind === "row") return;
    const room = { width: box.clientWidth, height: box.clientHeight - box.firstChild.offsetHeight };
    if (!panel.series.some((series) => numbers(series).length)) {
        box.append(element("p", "none", "no data"));
    } else if (panel.kind === "stat") {
        box.append(stat(panel, board, room.width, room.height));
    } else {
        const legend = legendOf(panel);
        box.append(legend);
        fit(legend);
        box.insertBefore(drawChart(panel, board, room.width, room.height - legend.offsetHeight), legend);
    }
}

function drawBoard(board) {
    const [area, name] = board.title.split(" / ");
    document.querySelector("h1").append(element("small", "", `${area} / `), name);
    document.querySelector("header p").textContent = board.description;
    document.querySelector("header time").textContent = `${clock(board.start, true)} to ${clock(board.end, true)} UTC`;
    const main = document.querySelector("main");
    const unit = (main.clientWidth + GAP) / 24;
    main.style.height = `${Math.max(...board.panels.map(({ place }) => place.y + place.h)) * CELL}px`;
    for (const panel of board.panels) drawPanel(panel, board, unit);
}
