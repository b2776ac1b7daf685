// Quantities, as scenario files write them and as people read them.

const UNITS = {
  rate: [["Gbps", 1e9], ["Mbps", 1e6], ["kbps", 1e3], ["bps", 1]],
  duration: [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]],
  size: [["MB", 1e6], ["KB", 1e3], ["B", 1]],
  margin: [["dB", 1]],
  share: [["", 1]],
  number: [["", 1]],
};
const READ = {
  rate: { bps: 1, kbps: 1e3, Mbps: 1e6, Gbps: 1e9 },
  duration: { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 },
  margin: { dB: 1 },
  size: { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
};

// Whether a quantity is written without a unit.
function bare(kind) {
  return kind === "share" || kind === "number";
}

// The number of a quantity in the canonical form, or NaN if it is a word such as "unlimited".
function read(kind, text) {
  if (typeof text === "number") return text;
  const found = /^([\d.e+-]+)\s*([A-Za-zµ]*)$/.exec(String(text ?? ""));
  const size = bare(kind) ? 1 : READ[kind][found?.[2]];
  return found && size ? Number(found[1]) * size : NaN;
}

// The unit in which nought is written.
function zeroUnit(kind) {
  return UNITS[kind].at(kind === "duration" ? 0 : -1)[0];
}

// A quantity of three significant digits, as one would write it.
function write(kind, value) {
  if (bare(kind)) return Number(value.toPrecision(3)).toString();
  const units = UNITS[kind];
  if (value === 0) return `0 ${zeroUnit(kind)}`;
  const [name, size] = units.find(([, size]) => value >= size * 0.9995) ?? units[units.length - 1];
  const digits = Number((value / size).toPrecision(3));
  return `${kind === "size" && size === 1 ? Math.round(digits) : digits} ${name}`;
}

// A number as people read it, with a unit that fits its size.
function inUnits(kind, value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const sign = value < 0 ? "−" : "";
  const size = Math.abs(value);
  if (kind === "count") return sign + size.toLocaleString("en", { maximumFractionDigits: 1 });
  if (value === 0) return kind === "percent" ? "0 %" : `0 ${zeroUnit(kind)}`;
  if (kind === "percent") return `${sign}${(100 * size).toFixed(1)} %`;
  const units = UNITS[kind];
  const [name, unit] = units.find(([, each]) => size >= each) ?? units.at(-1);
  const number = size / unit;
  if (name === "B") return `${sign}${number.toFixed(0)} B`;
  return `${sign}${number >= 100 ? number.toFixed(0) : number.toPrecision(3)} ${name}`;
}
