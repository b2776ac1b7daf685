// Many runs: their mean with its interval, and the difference of the schemes in pairs.

const RUNS = 100;
const RUNS_AT_ONCE = 10;
const METRICS = [
  ["throughput_bps", "Throughput", "rate"],
  ["goodput", "Goodput", "percent"],
  ["completion_time_s", "Completion", "duration"],
  ["timeouts", "Timeouts", "count"],
  ["retransmitted_bytes", "Retransmitted", "size"],
  ["lost_on_air", "Lost on the air", "count"],
];

let sampled = null;

async function sample() {
  const metric = $("metric").value;
  sampled = { metric, values: chosen().map(() => []) };
  samples.stop();
  const mine = sampled;
  try {
    for (let first = 0; first < RUNS; first += RUNS_AT_ONCE) {
      const ask = { do: "sample", scenario: scenario(), seed: Number(state.seed), first, runs: RUNS_AT_ONCE, metric };
      const { document: reply, columns } = await samples.ask(ask);
      if (mine !== sampled) return;
      reply.values.forEach((place, index) => mine.values[index].push(...column(columns, place)));
      drawSample();
    }
  } catch (error) {
    if (!(error instanceof Superseded)) $("sample-text").textContent = error.message;
  }
}

// Mean and half the 95 % interval, by Student's t with the degrees of freedom of the sample.
function interval(values) {
  const there = values.filter((value) => !Number.isNaN(value));
  const n = there.length;
  if (there.every((value) => value === there[0])) return { n, mean: there[0], half: 0 };
  const mean = there.reduce((sum, value) => sum + value, 0) / n;
  const variance = there.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  return { n, mean, half: quantile(n - 1) * Math.sqrt(variance / n) };
}

// The 97.5 % quantile of Student's distribution, by the expansion of Cornish and Fisher.
function quantile(freedom) {
  const z = 1.959963984540054;
  const terms = [(z ** 3 + z) / 4, (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96, (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384];
  return terms.reduce((sum, term, index) => sum + term / freedom ** (index + 1), z);
}

function drawSample() {
  if (!sampled || !sampled.values.length || !sampled.values[0].length) return;
  const kind = METRICS.find(([name]) => name === sampled.metric)?.[2] ?? "count";
  const { values } = sampled;
  const names = chosen();
  const said = values.map((each, side) => {
    const { n, mean, half } = interval(each);
    return n > 1 ? `${names[side]}: ${inUnits(kind, mean)} ± ${inUnits(kind, half)}` : `${names[side]}: –`;
  });
  if (values.length === 2) {
    const { n, mean, half } = interval(values[1].map((value, index) => value - values[0][index]));
    if (n > 1) {
      const verdict = half === 0 && mean === 0 ? "the same in every run" : Math.abs(mean) > half ? "significant" : "not significant";
      said.push(`difference: ${inUnits(kind, mean)} ± ${inUnits(kind, half)} (${verdict})`);
    }
  }
  $("sample-text").replaceChildren(...said.map((text, side) => Object.assign(document.createElement("span"), { textContent: text, className: SIDES[side] ?? "" })));
  $("sample-count").textContent = `${values[0].length} of ${RUNS} runs`;
  const canvas = $("sample");
  const scale = textScale();
  const ratio = devicePixelRatio * scale;
  const [width, height] = [canvas.clientWidth / scale, canvas.clientHeight / scale];
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  const all = values.flat().filter((value) => !Number.isNaN(value));
  if (!all.length) return;
  const low = Math.min(0, ...all);
  const high = Math.max(...all) || 1;
  const x = (value) => 10 + ((width - 20) * (value - low)) / (high - low || 1);
  const row = (height - 18) / values.length;
  values.forEach((each, side) => {
    ctx.fillStyle = ctx.strokeStyle = colour(SIDES[side]);
    ctx.globalAlpha = 0.45;
    each.forEach((value, index) => {
      if (Number.isNaN(value)) return;
      // Spread by the run's number, so that a run stays where it is.
      const y = side * row + 6 + ((index * 0.618034) % 1) * (row - 12);
      ctx.beginPath();
      ctx.arc(x(value), y, 2.6, 0, 7);
      ctx.fill();
    });
    const { n, mean, half } = interval(each);
    ctx.globalAlpha = 1;
    ctx.lineWidth = 2;
    if (n > 1) {
      ctx.fillRect(x(mean) - 1, side * row + 2, 2, row - 4);
      ctx.strokeRect(x(mean - half), side * row + row / 2 - 4, Math.max(x(mean + half) - x(mean - half), 1), 8);
    }
  });
  ctx.fillStyle = colour("muted");
  ctx.font = "12px system-ui, sans-serif";
  ctx.fillText(inUnits(kind, low), 4, height - 4);
  ctx.textAlign = "right";
  ctx.fillText(inUnits(kind, high), width - 4, height - 4);
}
