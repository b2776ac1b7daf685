// Packets, losses and windows over time, with one cursor and one zoom. A split connection has a chart of packets
// and one of windows for each of its parts.

let charts = [];
let zoom = null;

// The most parts that any run has.
function partCount() {
  return Math.max(1, ...result.reply.runs.map((run) => run.parts.length));
}

// What a chart of the part shows of a run: of one with fewer parts its last one. Undefined without connections.
function partOf(run, part) {
  return run?.parts[Math.min(part, run.parts.length - 1)];
}

// A colour of the style sheet, as canvases understand it.
function colour(name) {
  const probe = $("charts");
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

// How large text is, beside that of a desk: canvases do not follow the style sheet.
function textScale() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

function numbers(place) {
  return column(result.columns, place);
}

function shadeFades(chart) {
  const { start_s, end_s } = result.reply.bad_periods;
  const [starts, ends] = [numbers(start_s), numbers(end_s)];
  const { left, top, width, height } = chart.bbox;
  // The share of each column of pixels that is bad, since there may be many fades in one.
  const bad = new Float32Array(Math.ceil(width) + 1);
  for (let index = 0; index < starts.length; index++) {
    const from = Math.max(chart.valToPos(starts[index], "x", true) - left, 0);
    const to = Math.min(chart.valToPos(ends[index], "x", true) - left, width);
    for (let x = Math.floor(from); x < to; x++) bad[x] += Math.min(to, x + 1) - Math.max(from, x);
  }
  chart.ctx.save();
  chart.ctx.fillStyle = colour("fade");
  for (let x = 0; x < bad.length; x++) {
    if (bad[x] === 0) continue;
    // A single short fade can still be seen.
    chart.ctx.globalAlpha = Math.min(1, Math.max(bad[x], 0.25));
    chart.ctx.fillRect(left + x, top, 1, height);
  }
  chart.ctx.restore();
}

// The points of those events of a part that `of` accepts, at most one for each pixel.
function points(chart, side, part, of) {
  const recording = partOf(result.reply.runs[side], part);
  if (!recording?.events.time_s) return [];
  const [time, event, packet, copy] = ["time_s", "event", "packet", "transmission"].map((name) => numbers(recording.events[name]));
  const wanted = of((name) => recording.words.indexOf(name));
  const found = new Map();
  const { left, width, top, height } = chart.bbox;
  for (let index = 0; index < time.length; index++) {
    if (!wanted(event[index], copy[index]) || packet[index] < 0) continue;
    const x = Math.round(chart.valToPos(time[index], "x", true));
    if (x < left || x > left + width) continue;
    const y = Math.round(chart.scales.y.min === null ? top : chart.valToPos(packet[index], "y", true));
    if (y >= top && y <= top + height) found.set(x * 65536 + y, [x, y]);
  }
  return [...found.values()];
}

const dot = (size) => (ctx, x, y) => ctx.fillRect(x - size / 2, y - size / 2, size, size);
const cross = (size) => (ctx, x, y) => {
  ctx.beginPath();
  ctx.moveTo(x - size, y - size);
  ctx.lineTo(x + size, y + size);
  ctx.moveTo(x - size, y + size);
  ctx.lineTo(x + size, y - size);
  ctx.stroke();
};

function drawPackets(chart, part) {
  const ratio = devicePixelRatio;
  const { ctx } = chart;
  const event = (name, copies) => (word) => {
    const wanted = word(name);
    return (found, copy) => found === wanted && copies(copy);
  };
  const kinds = [
    event("sent", (copy) => copy <= 1),
    event("sent", (copy) => copy > 1),
    event("lost", () => true),
  ];
  const shown = SIDES.map((_, side) => kinds.map((of) => points(chart, side, part, of)));
  // A few marks are larger than thousands.
  const count = shown.flat().reduce((sum, each) => sum + each.length, 0);
  const size = Math.max(1, Math.min(2.5, 40 / Math.sqrt(Math.max(count, 1)))) * ratio;
  ctx.save();
  shown.forEach(([first, again, lost], side) => {
    const draw = (all, mark) => all.forEach(([x, y]) => mark(ctx, x, y));
    ctx.fillStyle = colour(SIDES[side]);
    draw(first, dot(2.2 * size));
    ctx.globalAlpha = 0.9;
    draw(again, dot(5 * Math.min(size, 2 * ratio)));
    ctx.lineWidth = 1.3 * Math.min(size, 1.6 * ratio);
    ctx.strokeStyle = colour("lost");
    draw(lost, cross(3 * Math.min(size, 1.6 * ratio)));
  });
  ctx.restore();
}

// The channel of all, and the losses of each side, in any of its parts.
function drawStrip(chart) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.save();
  SIDES.forEach((name, side) => {
    ctx.fillStyle = colour(name);
    const middle = bbox.top + (bbox.height * (1 + 2 * side)) / 4;
    for (const recording of result.reply.runs[side]?.parts ?? []) {
      const [time, event] = ["time_s", "event"].map((each) => numbers(recording.events[each]));
      const lost = [recording.words.indexOf("lost"), recording.words.indexOf("ack-lost")];
      let last = -1;
      for (let index = 0; index < time.length; index++) {
        if (!lost.includes(event[index])) continue;
        const x = Math.round(chart.valToPos(time[index], "x", true));
        if (x === last || x < bbox.left || x > bbox.left + bbox.width) continue;
        last = x;
        ctx.fillRect(x, middle - 6 * ratio, Math.max(ratio, 1), 12 * ratio);
      }
    }
  });
  ctx.restore();
}

function axis(label, more = {}) {
  const scale = textScale();
  const font = `${12 * scale}px system-ui, sans-serif`;
  return { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font, labelFont: font, label, labelSize: 18 * scale, size: 62 * scale, ...more };
}

function options(height, name, more) {
  const values = (_, splits) => splits.map((value) => value.toLocaleString("en", { maximumFractionDigits: 6 }));
  return {
    width: $("charts").clientWidth,
    height: height * textScale(),
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "time" }, drag: { x: true, y: false }, points: { show: false }, y: false },
    select: { show: true },
    scales: { x: { time: false }, y: { range: more.range ?? ((_, low, high) => [0, high > 0 ? high * 1.04 : 1]) } },
    axes: [axis(more.times ? "Time (s)" : null, { values: more.times ? values : () => [], size: (more.times ? 28 : 8) * textScale() }), axis(name, { values, ...more.y })],
    hooks: {
      drawClear: [shadeFades],
      draw: more.draw ? [more.draw] : [],
      setCursor: [showCursor],
      setScale: [keepZoom],
    },
    series: [{}, ...more.series],
  };
}

// The packets from the first to the last that any side sends or loses in the time that is shown.
function shownPackets(chart, part) {
  const { min, max } = chart.scales.x;
  let [low, high] = [Infinity, -Infinity];
  for (const run of result.reply.runs) {
    const events = partOf(run, part)?.events;
    if (!events?.time_s) continue;
    const [time, packet] = [numbers(events.time_s), numbers(events.packet)];
    for (let index = 0; index < time.length; index++) {
      if (time[index] < min || time[index] > max || packet[index] < 0) continue;
      low = Math.min(low, packet[index]);
      high = Math.max(high, packet[index]);
    }
  }
  if (low > high) return [0, 1];
  if (!zoom) return [0, Math.max(high, 1) * 1.04];
  const margin = Math.max(1, (high - low) * 0.04);
  return [Math.max(0, low - margin), high + margin];
}

function keepZoom(chart, scale) {
  if (scale !== "x" || keepZoom.busy) return;
  const { min, max } = chart.scales.x;
  keepZoom.busy = true;
  zoom = min <= 0 && max >= end() ? null : { min, max };
  charts.filter((other) => other !== chart).forEach((other) => other.setScale("x", { min, max }));
  keepZoom.busy = false;
}

function end() {
  const parts = result.reply.runs.flatMap((run) => run.parts);
  return Math.max(...parts.map(lastOf), 1e-3);
}

// When the last thing happened in a part of a connection.
function lastOf(part) {
  const last = (place) => numbers(place).at(-1) ?? 0;
  return Math.max(last(part.series.time_s), last(part.events.time_s));
}

// A place for a chart. If there are several parts, the names of what it shows of each run are above it.
function placeOf(id, part) {
  const place = $(id).appendChild(document.createElement("div"));
  if (partCount() === 1) return place;
  const caption = place.appendChild(Object.assign(document.createElement("p"), { className: "part" }));
  result.reply.runs.forEach((run, side) => {
    const { from, to } = partOf(run, part);
    const text = `${run.scheme}: ${from} to ${to}`;
    caption.append(Object.assign(document.createElement("span"), { textContent: text, className: SIDES[side] }));
  });
  return place;
}

function drawCharts() {
  for (const chart of charts) chart.destroy();
  charts = [];
  const until = end();
  const ends = [0, until];
  const silent = { paths: () => null, points: { show: false } };
  const tall = Math.max(260, Math.min(420, innerHeight * 0.42));
  const count = partCount();
  for (const id of ["packets", "strip", "window"]) $(id).replaceChildren();
  const strip = options(58, "Losses", { series: [silent], draw: drawStrip, y: { values: () => [], grid: { show: false } } });
  const [above, below] = [[], []];
  for (let part = 0; part < count; part++) {
    const shown = result.reply.runs.map((run) => partOf(run, part)).filter(Boolean);
    const highest = Math.max(1, ...shown.map((each) => numbers(each.events.packet).reduce((most, each) => Math.max(most, each), 0)));
    const windows = shown.map((each) => [numbers(each.series.time_s), numbers(each.series.cwnd_bytes).map((bytes) => bytes / 1000)]);
    // A value holds until the next row; the last one, until the run's last packet.
    const joined = windows.length ? uPlot.join(windows.map(([x, y], side) => [[...x, lastOf(shown[side])], [...y, y.at(-1)]])) : [ends];
    const lines = shown.map((_, side) => ({
      label: SIDES[side],
      stroke: colour(SIDES[side]),
      width: 1.6,
      spanGaps: true,
      paths: uPlot.paths.stepped({ align: 1 }),
      points: { show: false },
    }));
    const packets = options(count > 1 ? Math.max(200, tall * 0.6) : tall, "Packet", {
      series: [silent],
      draw: (chart) => drawPackets(chart, part),
      range: (chart) => shownPackets(chart, part),
    });
    const cwnd = options(count > 1 ? 150 : 190, "Window (KB)", { series: lines, times: part === count - 1 });
    above.push([packets, [ends, [0, highest]], placeOf("packets", part)]);
    below.push([cwnd, joined, placeOf("window", part)]);
  }
  const all = [...above, [strip, [ends, [0, 1]], $("strip")], ...below];
  keepZoom.busy = true;
  charts = all.map(([settings, data, place]) => new uPlot(settings, data, place));
  const shown = zoom && zoom.min < until ? zoom : { min: 0, max: until };
  charts.forEach((chart) => chart.setScale("x", shown));
  keepZoom.busy = false;
}

// The last value of a series at a time.
function held(times, values, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low ? values[low - 1] : NaN;
}

function showCursor(chart) {
  if (!result || chart.cursor.left < 0 || chart.cursor.left === null) return;
  const time = chart.posToVal(chart.cursor.left, "x");
  $("time").value = time;
  tell(time);
}

// Says what the state is at a time, and shows the packets.
function tell(time) {
  drawDiagram(time);
  const said = result.reply.runs.flatMap((run, side) =>
    run.parts.map((part) => {
      const value = (name, kind) => inUnits(kind, held(numbers(part.series.time_s), numbers(part.series[name]), time));
      const who = run.parts.length > 1 ? `${run.scheme}, ${part.from} to ${part.to}` : run.scheme;
      const holds = part.series.held_bytes ? `, ${part.from} holds ${value("held_bytes", "size")}` : "";
      const state = `window ${value("cwnd_bytes", "size")}, in flight ${value("flight_bytes", "size")}, timer ${value("rto_s", "duration")}`;
      return { text: `${who}: ${state}${holds}`, side };
    }),
  );
  const { start_s, end_s } = result.reply.bad_periods;
  const [starts, ends] = [numbers(start_s), numbers(end_s)];
  const fades = starts.some((start, index) => start <= time && time < ends[index]);
  const channel = starts.length ? `, the link ${fades ? "fades" : "is good"}` : "";
  $("at").replaceChildren(
    Object.assign(document.createElement("span"), { textContent: `at ${time.toFixed(time < 10 ? 3 : 1)} s${channel}` }),
    ...said.map(({ text, side }) => Object.assign(document.createElement("span"), { textContent: text, className: SIDES[side] })),
  );
}

function moveCursor(time) {
  for (const chart of charts) {
    const left = chart.valToPos(time, "x");
    chart.setCursor({ left, top: chart.height / 3 }, false);
  }
  $("time").value = time;
  tell(time);
}

function resized() {
  for (const chart of charts) chart.setSize({ width: $("charts").clientWidth, height: chart.height });
  if (!result) return;
  drawDiagram(Number($("time").value));
  drawSample();
}

function draw() {
  if (!result) return;
  drawNumbers();
  drawCharts();
  const time = $("time");
  Object.assign(time, { min: 0, max: end(), step: "any" });
  prepareDiagram();
  tell(Math.min(Number(time.value), end()));
  drawSample();
}
