// The page: it runs what the controls describe, and shows what the runs gave.

let views, samples;
let result = null;

// A run that takes longer is given up for the next one.
const PATIENCE_MS = 300;

let due = false;
let running = false;
let began = 0;

// Runs again after a change: at once, or when the run under way is done or given up.
async function changed() {
  due = true;
  const fragment = toFragment();
  if (location.hash.slice(1) !== fragment) history.replaceState(null, "", fragment ? `#${fragment}` : "#");
  $("command").textContent = command();
  if (running) {
    if (performance.now() - began > PATIENCE_MS) views.stop();
    return;
  }
  running = true;
  while (due) {
    due = false;
    await run();
  }
  running = false;
  sample();
  tellFrame().catch(failed);
}

async function run() {
  began = performance.now();
  samples.stop();
  const busy = setTimeout(() => document.body.classList.add("busy"), 200);
  try {
    const ask = { do: "run", scenario: scenario(), seed: Number(state.seed), run: Number(state.run) };
    const { document: reply, columns } = await views.ask(ask);
    const first = result === null;
    result = { reply, columns, report: JSON.parse(reply.report) };
    if (first) suitSpeed();
    $("error").hidden = true;
    zoomOfStep();
    draw();
    cursorOfStep();
  } catch (error) {
    if (error instanceof Superseded) return;
    failed(error);
  } finally {
    clearTimeout(busy);
    document.body.classList.remove("busy");
    document.body.dataset.milliseconds = (performance.now() - began).toFixed(1);
  }
}

function drawNumbers() {
  const found = result.report.results;
  const head = ["", ...found.map((each) => each.scheme)].map((text, index) => {
    const cell = document.createElement("th");
    cell.textContent = text;
    if (index) cell.className = SIDES[index - 1];
    cell.scope = "col";
    return cell;
  });
  $("numbers-head").replaceChildren(...head);
  const rows = METRICS.map(([name, label, kind]) => {
    const row = document.createElement("tr");
    row.insertAdjacentHTML("beforeend", `<th scope="row"></th>`);
    row.lastChild.textContent = label;
    for (const { metrics } of found) {
      const cell = row.insertCell();
      cell.textContent = inUnits(kind, metrics[name]);
      cell.title = metrics[name] === null ? "none" : `${metrics[name]} (${name})`;
      cell.dataset.metric = name;
    }
    return row;
  });
  $("numbers-body").replaceChildren(...rows);
  const unlimited = (state.set.get("transfer.size") ?? at(base.tables, "transfer.size")) === "unlimited";
  const late = unlimited ? [] : found.filter((each) => each.ended !== "finished").map((each) => each.scheme);
  $("unfinished").textContent = late.length ? `Not finished at the time limit: ${late.join(", ")}.` : "";
}

// Shows what an address says.
async function fromFragment(text = location.hash.slice(1)) {
  const fields = new URLSearchParams(text);
  const { found, number } = lessonIn(fields);
  await openScenario(found, number);
  // An address of a lesson alone is that of its step as it is meant.
  const alone = found && [...fields.keys()].every((key) => key === "lesson" || key === "step");
  const wanted = found ? stepOf(found, number) : {};
  fromFields(alone ? fieldsOf(found, number) : fields);
  if (found) wantedView = { zoom: wanted.zoom ?? null, time: wanted.time ?? null };
  if (found) $("metric").value = wanted.metric ?? METRICS[0][0];
  showControls();
}

function failed(error) {
  $("error").hidden = false;
  $("error").textContent = error.text ?? error.message;
}

async function begin() {
  Thread.source = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
  const bytes = await unpacked();
  views = new Thread(bytes);
  samples = new Thread(bytes);
  base.about = (await views.ask({ do: "about" })).document;
  $("version").textContent = base.about.version;
  $("metric").replaceChildren(...METRICS.map(([name, label]) => option(name, label)));
  listenToLessons();
  await fromFragment();
  listen();
  listenToDiagram();
  listenToFrame();
  await changed();
  document.body.dataset.ready = "yes";
}

begin().catch((error) => {
  failed(error);
  document.body.dataset.ready = "failed";
});
