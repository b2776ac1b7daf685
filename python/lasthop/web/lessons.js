// Guided lessons: each step describes what the page shows, and says what to look at.

const LESSONS = JSON.parse($("lessons").textContent);
const ORIGINAL = GIVEN;

// The lesson and the step that are shown, if any; and what the next drawing shows of them.
let lesson = null;
let lessonStep = 0;
let wantedView = null;

function stepOf(found, number) {
  return found.steps[Math.min(Math.max(number, 1), found.steps.length) - 1];
}

// The lesson and the step of an address.
function lessonIn(fields) {
  const found = LESSONS.lessons.find((each) => each.id === fields.get("lesson")) ?? null;
  const number = Number(fields.get("step") ?? 1);
  return { found, number: Number.isInteger(number) && found ? Math.min(Math.max(number, 1), found.steps.length) : 1 };
}

// Makes the scenario of a step, or the page's own, the one that is run.
async function openScenario(found, number) {
  lesson = found;
  lessonStep = number;
  const overrides = found ? [...(found.overrides ?? []), ...(stepOf(found, number).overrides ?? [])] : [];
  GIVEN = found ? { toml: LESSONS.scenarios[found.scenario], name: found.scenario, overrides } : ORIGINAL;
  const { document: checked } = await views.ask({ do: "check", scenario: GIVEN });
  Object.assign(base, { tables: checked.tables, schemes: checked.schemes, sender: checked.sender });
  const channel = at(base.tables, "radio.channel") ?? "perfect";
  const model = typeof channel === "string" ? channel : Object.keys(channel)[0];
  base.model = model in CHANNELS ? model : AS_GIVEN;
  $("title").textContent = checked.title || GIVEN.name;
  document.title = `${found ? found.title : checked.title || GIVEN.name} · Lasthop`;
  fillControls();
  showLesson();
}

// What the step sets, in the form of an address.
function fieldsOf(found, number) {
  const wanted = stepOf(found, number);
  const fields = new URLSearchParams({ a: wanted.a, b: wanted.b, ...wanted.set });
  for (const key of ["sender", "channel", "seed", "run"]) if (wanted[key]) fields.set(key, wanted[key]);
  return fields;
}

// Shows a step as it is meant to be seen.
async function showStep(found, number) {
  await openScenario(found, number);
  fromFields(found ? fieldsOf(found, number) : new URLSearchParams());
  const wanted = found ? stepOf(found, number) : {};
  wantedView = { zoom: wanted.zoom ?? null, time: wanted.time ?? null };
  if (found) $("metric").value = wanted.metric ?? METRICS[0][0];
  showControls();
  await changed();
}

function showLesson() {
  $("lesson").value = lesson ? lesson.id : "";
  $("lesson-card").hidden = !lesson;
  for (const pointed of document.querySelectorAll(".pointed")) pointed.classList.remove("pointed");
  if (!lesson) return;
  const { text, look, point } = stepOf(lesson, lessonStep);
  $("lesson-title").textContent = lesson.title;
  $("lesson-source").textContent = lesson.source;
  $("lesson-step").textContent = `Step ${lessonStep} of ${lesson.steps.length}`;
  $("lesson-text").textContent = text;
  $("lesson-look").textContent = look;
  $("lesson-back").disabled = lessonStep === 1;
  $("lesson-next").textContent = lessonStep === lesson.steps.length ? "Done" : "Next";
  document.getElementById(point)?.classList.add("pointed");
}

// Applied when the run of a step is drawn.
function zoomOfStep() {
  if (!wantedView) return;
  zoom = wantedView.zoom ? { min: wantedView.zoom[0], max: wantedView.zoom[1] } : null;
}

function cursorOfStep() {
  if (!wantedView) return;
  const { time } = wantedView;
  wantedView = null;
  suitSpeed();
  // The charts take their scales when this task ends.
  if (time !== null) queueMicrotask(() => moveCursor(time));
}

function listenToLessons() {
  const none = option("", "no lesson");
  $("lesson").replaceChildren(none, ...LESSONS.lessons.map((each) => option(each.id, each.title, each.source)));
  const go = (found, number) => showStep(found, number).catch(failed);
  $("lesson").onchange = () => go(LESSONS.lessons.find((each) => each.id === $("lesson").value) ?? null, 1);
  $("lesson-back").onclick = () => {
    // A disabled button would lose the focus.
    if (lessonStep === 2) $("lesson-next").focus();
    go(lesson, lessonStep - 1);
  };
  $("lesson-next").onclick = () => {
    if (lessonStep < lesson.steps.length) return go(lesson, lessonStep + 1);
    $("lesson").focus();
    return go(null, 1);
  };
  $("lesson-leave").onclick = () => {
    $("lesson").focus();
    go(null, 1);
  };
}
