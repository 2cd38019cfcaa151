// A dashboard as its JSON says, of Grafana's own parts (@grafana/ui): frames, lines, axes, units, legends and numbers are Grafana's,
// and what its server and its panel plugins do around them is imitated here.

import "@fontsource/inter/latin-400.css";
import "@fontsource/inter/latin-500.css";
import React from "react";
import { createRoot } from "react-dom/client";
import { createTheme, dateTime, FieldType, getDisplayProcessor, getMinMaxAndDelta, LoadingState, ThemeContext, toDataFrame } from "@grafana/data";
import { BigValue, GlobalStyles, PanelChrome, TimeSeries } from "@grafana/ui";

const theme = createTheme({ colors: { mode: "dark" } });
const GAP = 8, CELL = 30; // of Grafana's grid of 24 columns

function framesOf(panel, series) {
    return series.map(({ name, points }, seriesIndex) => {
        const frame = toDataFrame({
            name,
            fields: [
                { name: "Time", type: FieldType.time, values: points.map(([at]) => at * 1000), config: { interval: 1000 } },
                { name: "Value", type: FieldType.number, values: points.map(([, value]) => value), config: { ...panel.fieldConfig.defaults, displayNameFromDS: name } },
            ],
        });
        for (const field of frame.fields) {
            field.state = { seriesIndex, range: getMinMaxAndDelta(field) };
            field.display = getDisplayProcessor({ field, theme, timeZone: "utc" });
        }
        return frame;
    });
}

function Lines({ panel, frames, width, height, range }) {
    return <TimeSeries frames={frames} structureRev={1} width={width} height={height} timeRange={range} timeZone="utc" legend={panel.options.legend} options={panel.options} />;
}

function Stat({ panel, frames: [frame], width, height }) {
    const [x, y] = frame.fields;
    const value = y.display(y.values.filter((each) => each !== null).at(-1));
    const { colorMode, graphMode, justifyMode, textMode } = panel.options;
    return <BigValue {...{ theme, width, height, value, colorMode, graphMode, justifyMode, textMode }} sparkline={{ x, y }} />;
}

function Shown({ panel, series, range, column }) {
    const { x, y, w, h } = panel.gridPos;
    const place = { position: "absolute", left: GAP + x * (column + GAP), top: GAP + y * (CELL + GAP), width: w * (column + GAP) - GAP, height: h * (CELL + GAP) - GAP };
    if (panel.type === "row") return <div style={{ ...place, fontWeight: 500 }}>{panel.title}</div>;
    const frames = framesOf(panel, series ?? []);
    const Kind = { timeseries: Lines, stat: Stat }[panel.type];
    return <div style={place}>
        <PanelChrome title={panel.title} description={panel.description} width={place.width} height={place.height} loadingState={LoadingState.Done}>
            {(width, height) => frames.length ? <Kind {...{ panel, frames, width, height, range }} /> : <div style={{ textAlign: "center" }}>No data</div>}
        </PanelChrome>
    </div>;
}

window.drawBoard = async (board, answers, width) => {
    await Promise.all([400, 500].map((weight) => document.fonts.load(`${weight} 12px Inter`))); // by which axes are measured
    const [from, to] = [answers.start, answers.end].map((at) => dateTime(at * 1000));
    const range = { from, to, raw: { from, to } };
    const column = (width - GAP * 25) / 24;
    const told = Object.fromEntries(answers.panels.map(({ title, series }) => [title, series]));
    const root = document.getElementById("root");
    document.body.style.margin = 0;
    root.style.cssText = `position: relative; height: ${GAP + Math.max(...board.panels.map(({ gridPos: { y, h } }) => y + h)) * (CELL + GAP)}px`;
    createRoot(root).render(<ThemeContext.Provider value={theme}>
        <GlobalStyles />
        {board.panels.map((panel) => <Shown key={panel.id} {...{ panel, range, column }} series={told[panel.title]} />)}
    </ThemeContext.Provider>);
};

/** Titles of panels whose legend has more lines than it has room for. */
window.overflowing = () => [...document.querySelectorAll("section")].filter((panel) =>
    [...panel.querySelectorAll("*")].some((each) => each.scrollHeight > each.clientHeight + 2 && ["auto", "scroll"].includes(getComputedStyle(each).overflowY)))
    .map((panel) => panel.querySelector("h2")?.textContent ?? "?");
