// Packets on their way, at one time: hosts, base station, and what is between them.

// The journeys of each side's packets, acknowledgements and notices, in the order of their start:
// `legs` are points of time and place, where 0 is the source and 1 the destination.
let journeys = [];
let moments = [];
let playing = null;

// What the trace calls the ends of journeys. An agent's own packets begin with the word `created`.
const KINDS = ["", "ack-", "notice-"].map((prefix) => ({
  sent: `${prefix}sent`,
  created: prefix ? `${prefix}created` : "copied",
  arrived: prefix ? `${prefix}received` : "delivered",
  lost: `${prefix}lost`,
  suppressed: `${prefix}suppressed`,
  forward: prefix === "",
  notice: prefix === "notice-",
}));

// The rates, in bytes a second, and the delays of the two links of a last hop; null for other networks, and for
// links whose rate varies or that have tables of their own.
function linkTimes() {
  const { topology, wired, radio, link } = base.tables;
  if (topology !== "last-hop" || !wired || !radio || Object.keys(link ?? {}).length) return null;
  const now = (key) => state.set.get(key) ?? at(base.tables, key);
  const rate = (key) => read("rate", now(key)) / 8;
  const delay = (key) => read("duration", now(key)) || 0;
  const expansion = Number(radio.expansion ?? 1);
  const wire = { rate: rate("wired.rate"), delay: delay("wired.delay") };
  const down = { rate: rate("radio.rate") / expansion, delay: delay("radio.delay") };
  const up = { rate: (read("rate", radio.uplink?.rate) / 8 || rate("radio.rate")) / expansion, delay: down.delay };
  return [wire, down, up].every((each) => Number.isFinite(each.rate)) ? { wire, down, up } : null;
}

function prepareDiagram() {
  const times = linkTimes();
  const all = new Set();
  journeys = result.reply.runs.map((run) => {
    const found = run.parts.flatMap((part, index) => {
      const place = (share) => (index + share) / run.parts.length;
      return travelled(part, run.parts.length === 1 ? times : null).map((each) => ({
        ...each,
        legs: each.legs.map(([time, share]) => [time, place(share)]),
      }));
    });
    found.sort((one, other) => one.legs[0][0] - other.legs[0][0]);
    for (const { legs } of found) legs.forEach(([time]) => all.add(time));
    const longest = found.reduce((most, { legs }) => Math.max(most, legs.at(-1)[0] - legs[0][0]), 0);
    return { found, longest, timers: run.parts.map(timeouts) };
  });
  moments = Float64Array.from(all).sort();
}

// When the timer of a part's sender expired.
function timeouts(part) {
  const word = part.words.indexOf("timeout");
  return [...numbers(part.events.time_s)].filter((_, index) => numbers(part.events.event)[index] === word);
}

// The journeys of one part. They begin and end when the trace says; what links do in between, such as their own
// retransmissions, is not traced. `times` are those of its links, or null.
function travelled(part, times) {
  const free = { wire: 0 };
  return matched(part).map(({ kind, start, ended, size, why, gone, held }) => {
    const { forward, notice } = kind;
    const legs = held
      ? [[start.began, 0], [ended, 0.5]]
      : times
        ? viaBase(forward, start, ended, size, times, why, free)
        : [[start.began, start.created ? 0.5 : 0], [ended, gone ? 0.75 : 1]];
    const again = forward && (start.created || start.copy > 1);
    return { legs: forward ? legs : legs.map(([at, share]) => [at, 1 - share]), forward, again, gone, held, notice };
  });
}

// The ends of a part's packets in the trace, each with its beginning.
function matched(part) {
  const [time, event, packet, copy, size, reason] = ["time_s", "event", "packet", "transmission", "size_bytes", "reason"].map((name) =>
    numbers(part.events[name]),
  );
  const kinds = part.words.map((word) => KINDS.find((kind) => Object.values(kind).includes(word)));
  const ways = new Map();
  const found = [];
  for (let index = 0; index < time.length; index++) {
    const [kind, word] = [kinds[event[index]], part.words[event[index]]];
    if (!kind) continue;
    const key = `${kind.sent} ${packet[index]}`;
    if (!ways.has(key)) ways.set(key, { open: [], over: [], latest: null });
    const way = ways.get(key);
    if (word === kind.sent || word === kind.created) {
      way.latest = { began: time[index], created: word === kind.created, copy: copy[index] };
      way.open.push(way.latest);
      continue;
    }
    const gone = word !== kind.arrived;
    const end = { kind, ended: time[index], size: size[index], gone, why: gone && part.words[reason[index]], held: word === kind.suppressed };
    end.start = beginningOf(end, way);
    if (!end.start) continue;
    way.over.push(end);
    found.push(end);
  }
  return found;
}

// Packets end in the order in which they began, but an agent suppresses none that it created.
function beginningOf(end, way) {
  const place = way.open.findIndex((start) => !(end.held && start.created));
  if (place >= 0) return way.open.splice(place, 1)[0];
  const created = way.open[0];
  // The agent's copy overtook what it suppresses.
  const overtaking = created && way.over.findLast((each) => !each.held && !each.start.created && each.ended >= created.began);
  // The copies that a tunnel makes begin with their original.
  if (!overtaking) return way.latest;
  const { start } = overtaking;
  overtaking.start = way.open.shift();
  return start;
}

// The points of time and progress of a packet that waits at the base station, where an agent may have created it,
// until the last possible moment.
function viaBase(forward, { began, created }, ended, size, { wire, down, up }, why, free) {
  const legs = created ? [[began, 0.5]] : [[began, 0]];
  if (!created && forward) {
    const leaves = Math.max(began, free.wire);
    free.wire = leaves + size / wire.rate;
    const arrives = Math.min(free.wire + wire.delay, ended);
    legs.push([Math.min(leaves, arrives), 0], [arrives, 0.5]);
  } else if (!created) {
    // What is lost on its way to the source is lost on the radio.
    if (why) return [[began, 0], [ended, 0.25]];
    legs.push([Math.min(began + size / up.rate + up.delay, ended), 0.5]);
  }
  if (why === "queue-full" || why === "active-queue") return [...legs, [ended, 0.5]];
  const next = forward ? down : wire;
  const leaves = Math.max(legs.at(-1)[0], ended - size / next.rate - next.delay);
  return [...legs, [leaves, 0.5], [ended, why ? 0.75 : 1]];
}

// Where a journey is at a time, and whether it waits.
function placeAt(legs, time) {
  const next = legs.findIndex(([end]) => end > time);
  const [[from, one], [to, two]] = [legs[next - 1], legs[next]];
  return { share: one + ((two - one) * (time - from)) / (to - from || 1), waits: one === two };
}

function drawDiagram(time) {
  const canvas = $("diagram");
  const scale = textScale();
  const ratio = devicePixelRatio * scale;
  const lane = 104;
  const width = canvas.clientWidth / scale;
  const height = lane * journeys.length;
  canvas.style.height = `${height * scale}px`;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "center";
  const [ink, muted, line, lost, fade] = ["ink", "muted", "line", "lost", "fade"].map(colour);
  const { start_s, end_s } = result.reply.bad_periods;
  const ends = numbers(end_s);
  const bad = numbers(start_s).some((start, index) => start <= time && time < ends[index]);
  const margin = Math.min(70, width / 8);
  const x = (share) => margin + share * (width - 2 * margin);
  journeys.forEach(({ found, longest, timers }, side) => {
    const run = result.reply.runs[side];
    const nodes = nodesOf(run);
    const middle = side * lane + 50;
    const own = colour(SIDES[side]);
    if (bad) {
      ctx.fillStyle = fade;
      ctx.fillRect(x(nodes.at(-2)[0]), middle - 34, x(1) - x(nodes.at(-2)[0]), 68);
    }
    ctx.strokeStyle = line;
    ctx.lineWidth = 2;
    for (let index = 1; index < nodes.length; index++) {
      const [from, to] = [nodes[index - 1][0], nodes[index][0]];
      ctx.setLineDash(index === nodes.length - 1 ? [4, 5] : []);
      ctx.beginPath();
      ctx.moveTo(x(from), middle);
      ctx.lineTo(x(to), middle);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    const waiting = new Map();
    for (const each of underWay(found, longest, time)) {
      const { share, waits } = placeAt(each.legs, time);
      let [px, py] = [x(share), middle + (each.forward ? -14 : 14)];
      if (waits) {
        const key = `${share} ${each.forward}`;
        const before = waiting.get(key) ?? 0;
        waiting.set(key, before + 1);
        if (before >= 36) continue;
        px += ((before % 9) - 4) * 9;
        py += (each.forward ? -1 : 1) * (6 + 9 * Math.floor(before / 9));
      }
      ctx.fillStyle = each.notice ? lost : own;
      if (each.held && time > each.legs.at(-1)[0] - (each.legs.at(-1)[0] - each.legs.at(-2)[0]) * 0.3) {
        ctx.strokeStyle = own;
        ctx.lineWidth = 1.5;
        ctx.beginPath();
        ctx.arc(px, py, 5, 0, 7);
        ctx.stroke();
      } else if (each.gone && time > each.legs.at(-1)[0] - (each.legs.at(-1)[0] - each.legs.at(-2)[0]) * 0.3) {
        ctx.strokeStyle = lost;
        cross(4)(ctx, px, py);
      } else if (each.notice) {
        ctx.beginPath();
        ctx.arc(px, py + 8, 4, 0, 7);
        ctx.fill();
      } else if (each.forward) {
        ctx.fillRect(px - 4, py - 4, 8, 8);
        if (each.again) {
          ctx.strokeStyle = ink;
          ctx.lineWidth = 1.5;
          ctx.strokeRect(px - 4, py - 4, 8, 8);
        }
      } else {
        ctx.globalAlpha = 0.75;
        ctx.fillRect(px - 4, py - 1.5, 8, 3);
        ctx.globalAlpha = 1;
      }
    }
    for (const [share, name] of nodes) {
      ctx.fillStyle = colour("card");
      ctx.strokeStyle = muted;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.arc(x(share), middle, 7, 0, 7);
      ctx.fill();
      ctx.stroke();
      ctx.fillStyle = muted;
      ctx.fillText(name, x(share), middle + 46);
    }
    ctx.fillStyle = own;
    ctx.textAlign = "left";
    ctx.fillText(run.scheme, 4, side * lane + 14);
    ctx.textAlign = "center";
    ctx.fillStyle = lost;
    timers.forEach((times, part) => {
      const rang = times.some((each) => each <= time && time < each + end() / 60);
      if (rang) ctx.fillText("timeout", x(part / timers.length), middle - 22);
    });
  });
}

function nodesOf(run) {
  if (!run.parts.length) return [[0, ""], [1, ""]];
  const ends = [run.parts[0].from, ...run.parts.map((part) => part.to)];
  if (run.parts.length === 1 && linkTimes()) return [[0, ends[0]], [0.5, "base station"], [1, ends[1]]];
  return ends.map((name, index) => [index / (ends.length - 1), name]);
}

// The journeys that have begun and not ended.
function underWay(found, longest, time) {
  let [low, high] = [0, found.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (found[middle].legs[0][0] <= time) low = middle + 1;
    else high = middle;
  }
  const all = [];
  for (let index = low - 1; index >= 0 && found[index].legs[0][0] >= time - longest; index--) {
    if (found[index].legs.at(-1)[0] > time) all.push(found[index]);
  }
  return all.reverse();
}

// -- Play, pause and step ----------------------------------------------------------------------------

function play() {
  if (playing !== null) return pause();
  if (Number($("time").value) >= end() * 0.999) moveCursor(0);
  let before = performance.now();
  const frame = (now) => {
    const time = Number($("time").value) + ((now - before) / 1000) * Number($("speed").value);
    before = now;
    if (!result || time >= end()) return pause();
    moveCursor(time);
    playing = requestAnimationFrame(frame);
  };
  playing = requestAnimationFrame(frame);
  $("play").textContent = "Pause";
}

function pause() {
  cancelAnimationFrame(playing);
  playing = null;
  $("play").textContent = "Play";
}

// Goes to the next moment at which something begins, arrives or is lost, or to the one before.
function step(direction) {
  pause();
  const time = Number($("time").value);
  const later = moments.findIndex((each) => each > time + 1e-9);
  const next = direction > 0 ? moments[later] : moments.findLast((each) => each < time - 1e-9);
  if (next !== undefined) moveCursor(next);
}

function listenToDiagram() {
  $("play").onclick = play;
  $("step").onclick = () => step(1);
  $("back").onclick = () => step(-1);
  addEventListener("keydown", (pressed) => {
    if (pressed.target.closest("input, select, button, textarea") || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
    const action = { " ": play, ".": () => step(1), ",": () => step(-1) }[pressed.key];
    if (!action) return;
    pressed.preventDefault();
    action();
  });
}

// The speed at which the whole run takes about half a minute.
function suitSpeed() {
  const wanted = Math.log10(end() / 30);
  const speeds = [...$("speed").options].map((each) => Number(each.value));
  $("speed").value = speeds.reduce((best, each) => (Math.abs(Math.log10(each) - wanted) < Math.abs(Math.log10(best) - wanted) ? each : best));
}
