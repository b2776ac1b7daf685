// What can be changed and what has been: the controls, the address, and the command that says the same.

let GIVEN = JSON.parse(document.getElementById("given").textContent);
const SIDES = ["a", "b"];
// More digits would be rounded in JavaScript.
const WHOLE = /^\d{1,15}$/;
const $ = (id) => document.getElementById(id);

const SLIDERS = [
  { key: "radio.rate", label: "Rate of the last hop", kind: "rate", low: 1e3, high: 1e9 },
  { key: "wired.rate", label: "Rate of the wired link", kind: "rate", low: 1e3, high: 1e10 },
  { key: "wired.delay", label: "Delay of the wired link", kind: "duration", low: 1e-4, high: 2, zero: true },
  { key: "tcp.window", label: "Receiver's window", kind: "size", low: 1e3, high: 1e8 },
  { key: "transfer.size", label: "Size of the transfer", kind: "size", low: 1e3, high: 1e8 },
];
const good = { name: "good", label: "Good for", kind: "duration", low: 1e-2, high: 1e3, first: 10 };
const bad = { name: "bad", label: "Fades for", kind: "duration", low: 1e-3, high: 1e2, first: 2 };
const CHANNELS = {
  perfect: { label: "no losses", parameters: [] },
  "frame-loss": {
    label: "frames lost at random",
    parameters: [{ name: "loss", label: "Frames lost", kind: "share", low: 1e-4, high: 0.5, first: 0.01 }],
  },
  iid: {
    label: "bits wrong at random",
    parameters: [{ name: "ber", label: "Bits wrong", kind: "share", low: 1e-8, high: 1e-3, first: 1e-5 }],
  },
  "fixed-periods": { label: "regular fades", parameters: [good, bad] },
  "two-state": { label: "random fades", parameters: [good, bad] },
  "rayleigh-gilbert": {
    label: "Rayleigh fading",
    parameters: [
      { name: "fading_margin", label: "Fading margin", kind: "margin", low: 1, high: 40, first: 10 },
      { name: "doppler", label: "Doppler", kind: "number", low: 1e-3, high: 1, first: 0.1 },
      { name: "step", label: "Step of the fading", kind: "duration", low: 1e-4, high: 1, first: 0.01 },
    ],
  },
  "nguyen-noble": {
    label: "bursts of wrong bytes",
    parameters: [
      { name: "error_rate", label: "Bytes wrong in a burst", kind: "share", low: 1e-4, high: 0.5, first: 0.005 },
      { name: "leave_error", label: "Bursts that end in each step", kind: "share", low: 0.01, high: 1, first: 0.2 },
      { name: "leave_error_free", label: "Pauses that end in each step", kind: "share", low: 0.01, high: 1, first: 0.7 },
    ],
  },
};
const AS_GIVEN = "given";

// What the scenario says before anything is changed; filled at the start.
const base = { tables: null, schemes: [], model: AS_GIVEN, about: null };

function at(tables, key) {
  return key.split(".").reduce((table, name) => table?.[name], tables);
}

// What the user has chosen. `set` has only what differs from the scenario.
const state = { a: "", b: "", sender: "", model: AS_GIVEN, set: new Map(), seed: "1", run: "0" };

function modelKey(parameter) {
  return `radio.channel.${state.model}.${parameter.name}`;
}

function parameterValue(parameter) {
  const key = modelKey(parameter);
  return state.set.get(key) ?? (state.model === base.model ? at(base.tables, key) : null) ?? write(parameter.kind, parameter.first);
}

// The changes as options of the command line: --set.
function changes() {
  const all = [];
  if (state.model !== base.model) {
    const parameters = CHANNELS[state.model].parameters.map((each) => `${each.name}=${quoted(each, parameterValue(each))}`);
    all.push(parameters.length ? `radio.channel={${state.model}={${parameters.join(",")}}}` : `radio.channel=${state.model}`);
  }
  for (const [key, value] of state.set) {
    if (!key.startsWith("radio.channel.") || state.model === base.model) all.push(`${key}=${value}`);
  }
  return all;
}

function quoted(parameter, value) {
  return bare(parameter.kind) ? value : JSON.stringify(value);
}

function chosen() {
  return SIDES.map((side) => state[side]).filter(Boolean);
}

function scenario() {
  const schemes = [`schemes=${JSON.stringify(chosen())}`];
  const sender = state.sender ? [`sender=${JSON.stringify(state.sender)}`] : [];
  return { toml: GIVEN.toml, name: GIVEN.name, overrides: [...GIVEN.overrides, ...changes(), ...schemes, ...sender] };
}

// The scheme that the first one is compared with at the start: the last of the scenario.
function other() {
  return base.schemes.length > 1 ? base.schemes.at(-1) : "";
}

function toFragment() {
  const fields = new URLSearchParams();
  if (lesson) {
    fields.set("lesson", lesson.id);
    fields.set("step", lessonStep);
  }
  if (state.a !== base.schemes[0]) fields.set("a", state.a);
  if (state.b !== other()) fields.set("b", state.b);
  if (state.sender) fields.set("sender", state.sender);
  if (state.model !== base.model) fields.set("channel", state.model);
  if (state.seed !== "1") fields.set("seed", state.seed);
  if (state.run !== "0") fields.set("run", state.run);
  for (const [key, value] of state.set) fields.set(key, value);
  return fields.toString();
}

function fromFields(fields) {
  const known = (name) => [...base.about.schemes.map((each) => each.name), ...base.schemes].includes(name);
  state.a = known(fields.get("a")) ? fields.get("a") : base.schemes[0];
  const b = fields.has("b") ? fields.get("b") : other();
  state.b = (known(b) || b === "") && b !== state.a ? b : "";
  const sender = fields.get("sender");
  // The scenario's own is the first of the list, without a name.
  state.sender = sender !== base.sender && senders().includes(sender) ? sender : "";
  state.model = fields.get("channel") in CHANNELS && at(base.tables, "radio") ? fields.get("channel") : base.model;
  state.seed = WHOLE.test(fields.get("seed")) ? fields.get("seed") : "1";
  state.run = WHOLE.test(fields.get("run")) ? fields.get("run") : "0";
  const keys = [...SLIDERS.map((each) => each.key), ...(CHANNELS[state.model]?.parameters ?? []).map(modelKey)];
  state.set = new Map([...fields].filter(([key]) => keys.includes(key)));
}

function senders() {
  return [...Object.keys(base.tables.senders ?? {}), ...base.about.profiles];
}

function option(value, label, hint = "") {
  const made = new Option(label, value);
  made.title = hint;
  return made;
}

function fillControls() {
  for (const side of SIDES) {
    const known = base.about.schemes.map((each) => option(each.name, each.name, each.summary));
    const own = base.schemes.filter((name) => !base.about.schemes.some((each) => each.name === name));
    $(side).replaceChildren(...own.map((name) => option(name, name)), ...known);
    if (side === "b") $(side).append(option("", "no other"));
  }
  const given = base.sender ?? "the scenario's [tcp]";
  $("sender").replaceChildren(option("", given), ...senders().filter((name) => name !== base.sender).map((name) => option(name, name)));
  const models = Object.entries(CHANNELS).map(([name, { label }]) => option(name, label));
  $("channel").replaceChildren(...(base.model === AS_GIVEN ? [option(AS_GIVEN, "the scenario's")] : []), ...models);
  $("channel-field").hidden = !at(base.tables, "radio");
}

function showControls() {
  for (const side of SIDES) $(side).value = state[side];
  $("sender").value = state.sender;
  $("channel").value = state.model;
  $("seed").value = state.seed;
  $("run").value = state.run;
  const links = SLIDERS.filter(({ key, kind }) => Number.isFinite(read(kind, at(base.tables, key))));
  const losses = (CHANNELS[state.model]?.parameters ?? []).map((each) => ({ ...each, key: modelKey(each) }));
  $("links").replaceChildren(...links.map((each) => slider(each, state.set.get(each.key) ?? at(base.tables, each.key))));
  $("losses").replaceChildren(...losses.map((each) => slider(each, String(parameterValue(each)))));
}

const STEPS = 300;

// A slider of a quantity on a logarithmic scale; with `zero`, its lowest position is nought.
function slider({ key, label, kind, low, high, zero }, text) {
  // No label element, since it would belong to the output.
  const field = document.createElement("div");
  field.className = "slider";
  const value = Math.max(read(kind, text), 0);
  const position = value <= low ? (zero && value === 0 ? -1 : 0) : (STEPS * Math.log(value / low)) / Math.log(high / low);
  const shown = (text) => {
    const number = read(kind, text);
    if (kind === "number") return text;
    if (kind === "share") return `${Number((100 * number).toPrecision(3))} %`;
    if (read(kind, write(kind, number)) === number) return write(kind, number);
    const binary = kind === "size" && [["MiB", 1024 ** 2], ["KiB", 1024]].find(([, size]) => number % size === 0);
    return binary ? `${number / binary[1]} ${binary[0]}` : text;
  };
  field.innerHTML = `<span></span><output></output><input type="range">`;
  const [name, output, input] = field.children;
  name.textContent = label;
  Object.assign(input, { ariaLabel: label, min: zero ? -1 : 0, max: STEPS, step: 1, value: Math.round(position) });
  input.dataset.key = key;
  const tell = (text) => {
    output.textContent = shown(text);
    input.setAttribute("aria-valuetext", shown(text));
  };
  tell(text);
  input.oninput = () => {
    const step = Number(input.value);
    const text = write(kind, step < 0 ? 0 : low * (high / low) ** (step / STEPS));
    tell(text);
    state.set.set(key, text);
    changed();
  };
  return field;
}

function listen() {
  for (const side of SIDES) {
    $(side).onchange = () => {
      const other = side === "a" ? "b" : "a";
      // Each scheme runs once.
      if ($(side).value === state[other]) state[other] = state[side];
      state[side] = $(side).value;
      showControls();
      changed();
    };
  }
  $("sender").onchange = () => {
    state.sender = $("sender").value;
    changed();
  };
  $("channel").onchange = () => {
    for (const key of [...state.set.keys()]) if (key.startsWith("radio.channel.")) state.set.delete(key);
    state.model = $("channel").value;
    showControls();
    changed();
  };
  for (const name of ["seed", "run"]) {
    $(name).oninput = () => {
      if (!WHOLE.test($(name).value)) return;
      state[name] = $(name).value;
      changed();
    };
  }
  $("next-run").onclick = () => {
    state.run = String(BigInt(state.run) + 1n);
    $("run").value = state.run;
    changed();
  };
  $("reset").onclick = () => {
    showStep(lesson, lessonStep).catch(failed);
  };
  $("time").oninput = () => moveCursor(Number($("time").value));
  $("metric").onchange = () => sample();
  $("copy-toml").onclick = async () => copied("copy-toml", await canonical());
  $("copy-command").onclick = () => copied("copy-command", command());
  $("theme").onclick = () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === toFragment()) return;
    fromFragment().then(changed, failed);
  });
  new ResizeObserver(resized).observe($("charts"));
}

async function canonical() {
  const { document } = await views.ask({ do: "check", scenario: scenario() });
  return document.toml;
}

function command() {
  const shell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  const words = ["lasthop", "run", GIVEN.name, ...chosen().flatMap((name) => ["--scheme", name])];
  if (state.sender) words.push("--sender", state.sender);
  for (const change of [...GIVEN.overrides, ...changes()]) words.push("--set", change);
  if (state.seed !== "1") words.push("--seed", state.seed);
  if (state.run !== "0") words.push("--run", state.run);
  return words.map(shell).join(" ");
}

async function copied(id, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page that was opened as a file may not be allowed to.
    const area = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const button = $(id);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1200);
}
