// The form of Grafana's units on an axis: one step for the whole axis, so that all its labels have the same form.

const SCALES = {
    s: [["s", 1], ["ms", 1e-3], ["µs", 1e-6]],
    bytes: [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]],
    Bps: [["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3], ["B/s", 1]],
    percentunit: [["%", 0.01]],
    ops: [["K ops/s", 1e3], ["ops/s", 1]],
    reqps: [["K req/s", 1e3], ["req/s", 1]],
    short: [["Bil", 1e9], ["Mil", 1e6], ["K", 1e3], ["", 1]],
};

function scaleOf(unit, most) {
    const scales = SCALES[unit];
    if (!scales) throw new Error(`the unit ${unit} has no scale`);
    return most > 0 ? scales.find(([, size]) => most >= size) ?? scales.at(-1) : unit === "s" ? scales[0] : scales.at(-1);
}

function worded(value, [name, size], decimals) {
    return `${(value / size).toFixed(decimals)}${name === "%" || !name ? name : ` ${name}`}`;
}

/** Round steps from 0 to at least `most`: their values and labels. Bytes are in powers of two. */
function ticksOf(unit, most, count = 4, whole = false) {
    const scale = scaleOf(unit, most);
    if (most === 0) return [0, 1].map((value) => ({ value: value * scale[1], label: worded(value, [scale[0], 1], 0) }));
    const wanted = most / scale[1] / count;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const binary = unit === "bytes" && wanted >= 10;
    let step = binary ? 2 ** Math.ceil(Math.log2(wanted)) : power * [1, 2, 2.5, 5, 10].find((each) => power * each >= wanted * 0.999);
    if (whole && scale[1] === 1) step = Math.max(1, Math.ceil(step));
    let decimals = 0;
    while (decimals < 4 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals += 1;
    const ticks = [];
    for (let i = 0; i === 0 || (i - 1) * step * scale[1] < most * 0.9999; i += 1) ticks.push({ value: i * step * scale[1], label: worded(i * step, [scale[0], 1], decimals) });
    return ticks.length > 1 ? ticks : [...ticks, { value: step * scale[1], label: worded(step, [scale[0], 1], decimals) }];
}

/** A number of a stat panel: three digits that count. */
function shown(unit, value) {
    const scale = scaleOf(unit, Math.abs(value));
    const scaled = Math.abs(value / scale[1]);
    const whole = Number.isInteger(scaled) || scaled >= 100;
    return worded(value, scale, whole ? 0 : scaled >= 10 ? 1 : 2);
}
