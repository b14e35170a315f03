// The reader's page: one sample at a time, one key each. The server holds all state; a reload shows the same.

import { blocks, element } from "./nodes.js";

const main = document.getElementById("main");
const keys = document.getElementById("keys");
const notice = document.getElementById("notice");

/** What is on screen: mode is "read", "reveal", "summary" or "gone"; `next` waits behind a reveal. */
const view = { mode: "read", state: null, shown: null, form: null, busy: false, raw: false, unfolded: false };

const SAY = { pass: "pass", fail: "fail", unsure: "unsure" };

// Talking to the server

async function get(path) {
  return answer(await fetch(path, { headers: { "x-rlvr": "1" } }));
}

async function post(action, values) {
  const headers = { "content-type": "application/json", "x-rlvr": "1" };
  return answer(await fetch(`/api/${action}`, { method: "POST", headers, body: JSON.stringify(values) }));
}

async function answer(response) {
  const found = await response.json();
  if (response.ok) return found;
  const error = new Error(found.error ? found.error.found : "the server refused");
  error.fix = found.error ? found.error.fix : "";
  error.state = found.state || null;
  throw error;
}

/** Run one action at a time; what goes wrong is said, never lost in silence. */
async function act(work) {
  if (view.busy) return;
  view.busy = true;
  try {
    await work();
  } catch (error) {
    if (error.state) takeState(error.state);
    if (error instanceof TypeError) gone();
    else say([error.message, error.fix].filter(Boolean).join(". "), "warn");
  } finally {
    view.busy = false;
  }
}

function say(text, kind = "info") {
  notice.className = kind;
  notice.textContent = text;
  notice.hidden = !text;
}

function gone() {
  view.mode = "gone";
  main.replaceChildren(
    element("section", { class: "panel centre" },
      element("h1", {}, "The server has stopped"),
      element("p", {}, "Every judgement so far is on disk. Run ", element("code", {}, "rlvr inspect"),
        " again and open its new link: you go on where you were.")),
  );
  keys.replaceChildren();
}

// Where the reader is

function takeState(state) {
  view.state = state;
  view.raw = view.unfolded = false;
  view.form = null;
  header(state);
  if (state.current) showBlind(state.current, state.last, state.progress);
  else showSummary(state.summary);
}

function header({ progress: { done, goal, median_seconds: median, reader, source } }) {
  document.getElementById("who").textContent = reader + (source === "probe" ? "" : ` · run ${source}`);
  document.getElementById("count").textContent = `${done} of ${goal}`;
  document.getElementById("pace").textContent = median === null ? "" : `${median.toFixed(1)} s a sample`;
  const bar = document.getElementById("progress");
  bar.setAttribute("aria-valuenow", done);
  bar.setAttribute("aria-valuemax", goal);
  document.getElementById("progress-fill").style.width = `${(100 * done) / Math.max(goal, 1)}%`;
}

function show(...children) {
  main.replaceChildren(...children.filter(Boolean));
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function showBlind(item, last, progress = {}) {
  view.mode = "read";
  view.shown = item;
  const remark = progress.done === 0 || (progress.second && progress.done === progress.asked);
  show(remark ? welcome(progress) : last ? strip(last) : null, sample(item));
  const second = item.reading > 1 ? "Second reading. " : "";
  footer(`${second}Is this completion right?`, [
    ["P", "Pass", "pass", () => judge("pass")],
    ["F", "Fail", "fail", () => judge("fail")],
    ["U", "Unsure", "", () => judge("unsure")],
    ["N", item.note ? "Edit note" : "Note", "quiet", () => askNote(item)],
    ["B", "Back", "quiet", () => back(null)],
  ]);
}

function welcome({ second, asked, done }) {
  if (done) {
    return element("p", { class: "strip plain" }, `${done} samples are enough for a second reader. Go on as you like, or stop: `,
      element("kbd", {}, "S"));
  }
  return element("p", { class: "strip plain" }, second
    ? `You are the second reader. What needs you comes first; ${asked} samples are enough. `
    : "Judge each completion yourself; the reward's verdict is shown after yours. ",
    "Every key is kept at once, so stop and go on whenever you like.");
}

function strip(last) {
  const agrees = last.agrees ? "agreed" : last.agrees === null ? "the reward did not judge it" : "differs";
  return element("p", { class: `strip ${last.agrees === false ? "bad" : "good"}` },
    element("b", {}, `${last.agrees ? "✓" : "≠"} Last one: `),
    `you said ${last.verdict}, the reward ${paid(last)} — ${agrees}`,
    last.extracted ? [". It read ", element("code", {}, shorten(last.extracted, 60))] : null);
}

function paid(found) {
  const total = found.total === null ? "" : ` ${number(found.total)}`;
  return found.accepted ? `paid it as right${found.total === 1 ? "" : ` (${total.trim()})`}` : `found it ${found.outcome}`;
}

function sample(item) {
  return element("div", { class: "sample" },
    element("section", { class: "asked" },
      item.prompt.map((message) => element("div", { class: "message" },
        element("h2", {}, message.role === "user" ? "Prompt" : message.role), blocks(message.blocks))),
      item.reference.length
        ? element("div", { class: "reference" }, element("h2", {}, "Reference"),
            item.reference.map((one) => element("div", { class: "column" },
              item.reference.length > 1 || one.name !== "answer" ? element("h3", {}, one.name) : null,
              blocks(one.blocks))))
        : null,
      item.note ? element("div", { class: "message" }, element("h2", {}, "Your note"), element("p", {}, item.note)) : null),
    element("section", { class: "given" },
      element("div", { class: "given-head" },
        element("h2", {}, "Completion", " ", element("span", { class: "facts" }, facts(item))),
        element("span", { class: "row" },
          item.completion.hidden
            ? element("button", { type: "button", class: "quiet small", on: { click: toEnd } },
                "To its end ", element("kbd", {}, "End"))
            : null,
          element("button", { type: "button", class: "quiet small", on: { click: toggleRaw } },
            "As plain text ", element("kbd", {}, "V")))),
      element("div", { id: "completion", class: "text" }, completion(item))));
}

function facts(item) {
  const found = [`${item.characters.toLocaleString("en")} characters`];
  if (item.tokens >= 0) found.push(`${item.tokens.toLocaleString("en")} tokens`);
  if (item.step >= 0) found.push(`step ${item.step}`);
  if (item.truncated) found.push("cut off by the length limit");
  return found.join(" · ");
}

function completion(item) {
  const { head, middle, tail, hidden } = item.completion;
  if (item.characters === 0) return element("p", { class: "empty" }, "(empty: the model wrote nothing)");
  const fold = hidden && !middle.length
    ? element("button", { type: "button", class: "fold", on: { click: unfold } },
        `${hidden.toLocaleString("en")} characters folded — show them `, element("kbd", {}, "E"))
    : null;
  return [blocks(head), fold, element("div", { class: "middle" }, blocks(middle)), blocks(tail)];
}

/** Show the whole completion, or its bare text. */
function unfold() {
  view.unfolded = true;
  redraw();
}

function toEnd() {
  window.scrollTo(0, document.body.scrollHeight);
}

/** Switch between formulas and highlighted code, and the characters as the model wrote them. */
function toggleRaw() {
  view.raw = !view.raw;
  redraw();
}

function redraw() {
  const item = view.shown;
  if (!item) return;
  act(async () => {
    const text = await get(`/api/text/${encodeURIComponent(item.id)}?raw=${view.raw ? 1 : 0}`);
    const place = document.getElementById("completion");
    if (!place) return;
    const folded = view.unfolded ? text : { ...text, middle: [] };
    place.classList.toggle("raw", view.raw);
    place.replaceChildren(...[completion({ ...item, completion: folded })].flat(Infinity).filter(Boolean));
  });
}

// Keys while reading

function judge(verdict) {
  const item = view.shown;
  act(async () => {
    const found = await post("judge", { id: item.id, verdict, revision: item.revision });
    say("");
    if (found.reveal) {
      header(found);
      showReveal(found.reveal);
    } else takeState(found.state);
  });
}

function back(identifier) {
  act(async () => {
    const found = await get(`/api/back${identifier ? `?from=${encodeURIComponent(identifier)}` : ""}`);
    if (found.reveal) showReveal(found.reveal);
    else if (found.blind) showBlind(found.blind, null);
    else say("This is the first one you read.");
  });
}

function open(identifier) {
  act(async () => {
    const found = await get(`/api/sample/${encodeURIComponent(identifier)}`);
    if (found.reveal) showReveal(found.reveal);
    else showBlind(found.blind, null);
  });
}

function goOn() {
  act(async () => {
    say("");
    takeState(await get("/api/state"));
  });
}

// After the verdict

function showReveal(item) {
  view.mode = "reveal";
  view.shown = item;
  view.raw = view.unfolded = false;
  view.form = null;
  const kind = item.agrees === false ? "bad" : item.agrees ? "good" : "plain";
  const title = item.agrees === false ? "You and the reward differ"
    : item.agrees ? "You and the reward agree" : "The reward did not judge this one";
  show(element("section", { class: `reveal ${kind}` },
    element("h1", {}, title), sides(item), item.agrees === false ? whatNow(item) : null), sample(item));
  const other = item.verdict === "pass" ? "fail" : "pass";
  footer("", [
    ["Enter", "Go on", "main", goOn],
    ["C", `Change to ${other}`, "quiet", () => askChange(item, other)],
    ["N", item.note ? "Edit note" : "Note", "quiet", () => askNote(item)],
    ["B", "Back", "quiet", () => back(item.id)],
  ]);
}

function sides(item) {
  return element("div", { class: "sides" },
    element("div", { class: "side" },
      element("h2", {}, "You"),
      element("p", { class: `verdict ${item.verdict}` }, SAY[item.verdict]),
      item.own_note ? element("p", {}, item.own_note) : null,
      (item.reasons || []).map((reason) => element("p", { class: "muted" }, `changed: ${reason}`))),
    element("div", { class: "side" },
      element("h2", {}, "The reward"),
      element("p", { class: `verdict ${item.accepted ? "pass" : "fail"}` }, item.outcome,
        item.total === null ? null : element("span", { class: "score" }, ` score ${number(item.total)}`)),
      element("p", {}, "It read ", item.extracted === null
        ? element("em", {}, "no answer") : element("code", {}, shorten(item.extracted, 400))),
      item.why ? element("p", {}, item.why) : null,
      item.components && item.components.length > 1
        ? element("p", { class: "muted" }, item.components
            .map((one) => `${one.name} ${one.score === null ? "not judged" : number(one.score)}`).join(" · "))
        : null));
}

function whatNow(item) {
  const place = item.mend_at.length ? item.mend_at.join(", ") : "the reward";
  return element("p", { class: "muted" }, "Kept for the end. If the reward is wrong, mend ",
    element("code", {}, place), " once you have seen them all; if you misread, change your judgement.");
}

// Forms: a note, a reason

function form(label, value, hint, submit) {
  const input = element("textarea", { id: "entry", rows: "2", maxlength: "4000", "aria-label": label });
  input.value = value;
  const send = () => submit(input.value);
  const made = element("form", { class: "entry", on: { submit: (event) => { event.preventDefault(); send(); } } },
    element("label", { for: "entry" }, label), input,
    element("div", { class: "row" },
      element("button", { type: "submit", class: "main" }, "Save ", element("kbd", {}, "Enter")),
      element("button", { type: "button", class: "quiet", on: { click: closeForm } }, "Leave ", element("kbd", {}, "Esc")),
      element("span", { class: "muted" }, hint)));
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") closeForm();
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    }
  });
  closeForm();
  view.form = made;
  keys.prepend(made);
  input.focus();
}

function closeForm() {
  if (view.form) view.form.remove();
  view.form = null;
  main.focus({ preventScroll: true });
}

function askNote(item) {
  form("Note on this sample", item.note, "kept with your judgement; Shift+Enter for a new line", (text) => act(async () => {
    const found = await post("note", { id: item.id, text });
    item.revision = found.revision;
    item.note = item.own_note = text.trim();
    closeForm();
    if (view.mode === "reveal") showReveal(item);
    else showBlind(item, null);
    say(text.trim() ? "Note kept." : "Note removed.");
  }));
}

function askChange(item, verdict) {
  form(`Change your judgement to ${verdict}: what had you missed?`, "",
    "goes on record; more than two changes need a second reader", (reason) => act(async () => {
      const found = await post("change", { id: item.id, verdict, reason, revision: item.revision });
      showReveal(found.reveal);
      say("Changed, with your reason on record.");
    }));
}

// The summary

function toSummary() {
  act(async () => showSummary(await get("/api/summary")));
}

function showSummary(found) {
  view.mode = "summary";
  view.shown = null;
  view.form = null;
  const open = found.disagreements.length;
  const title = found.passed ? "Passed: you and the reward agree"
    : open ? `${open} open disagreement${open > 1 ? "s" : ""}`
      : found.left ? `No open disagreement, ${found.left} to read` : "Not passed yet";
  show(element("section", { class: "summary" },
    element("h1", { class: found.passed ? "passed" : open || !found.left ? "open" : "" }, title),
    found.passed ? element("p", {}, found.source === "probe"
      ? ["The gate is open. The next step is ", element("code", {}, "rlvr plan"), "."]
      : ["The run's own completions are read. See ", element("code", {}, `rlvr report ${found.source}`), "."]) : element("ul", { class: "why" }, found.refusals.filter((one) => !/^\d+ open dis/.test(one)).map((one) => element("li", {}, one))),
    found.exhausted ? element("p", { class: "warn-text" }, "The pool has no unread samples left: sample more with ",
      element("code", {}, "rlvr probe"), ".") : null,
    open ? element("p", {}, "For each: mend ", element("code", {}, found.mend_at.join(", ") || "the reward"),
      ", save it, and rescore here; or open it and change your own judgement, with a reason.") : null,
    element("div", { class: "cards" }, found.disagreements.map((one) => card(one))),
    found.undecided.length ? element("h2", {}, "Unsure, waiting for a decision") : null,
    element("div", { class: "cards" }, found.undecided.map((one) => card(one))),
    figures(found)));
  header(found);
  const choices = [];
  if (found.left) {
    choices.push(["Enter", `Read on (${found.left} left)`, open && !found.passed ? "quiet" : "main", goOn]);
    choices.push(["Q", "Stop here", "quiet", finish]);
  }
  if (!found.left) choices.push(["Enter", found.passed ? "Finish" : "Stop here", found.passed ? "main" : "quiet", finish]);
  if (found.can_rescore) choices.push(["R", "Rescore", open ? "main" : "quiet", rescore]);
  choices.push(["B", "Back", "quiet", () => back(null)]);
  footer("", choices);
}

function card(one) {
  return element("article", { class: "card" },
    element("button", { type: "button", class: "card-head", on: { click: () => open(one.id) } },
      element("span", { class: "card-prompt" }, one.prompt), element("span", { class: "quiet-link" }, "open")),
    one.reference ? element("p", { class: "muted" }, one.reference) : null,
    element("pre", { class: "ending", dir: "auto" }, one.ending),
    one.outcome ? sides(one)
      : one.by ? element("p", {}, `${one.by} said ${one.verdict}; the reward says otherwise.`) : null);
}

function figures(found) {
  if (!found.read) return element("p", { class: "muted" }, "Nothing was read yet.");
  const rows = [
    ["Read", `${found.read} of at least ${found.needed}`],
    ["Agreement", `${percent(found.agreement)} (95% interval ${percent(found.agreement_low)} to ${percent(found.agreement_high)})`],
    ["Cohen's kappa", found.kappa === null ? found.kappa_note : found.kappa.toFixed(2)],
    ["Disagreement", `at most ${percent(found.disagreement_upper)} at 95%, of samples drawn like these`],
    ["Paid but wrong", side(found.false_positives, "paid")],
    ["Right but not paid", side(found.false_negatives, "unpaid")],
  ];
  if (found.fresh) rows.push(["Fresh since the mend", `${found.fresh.read} of ${found.fresh.needed}` +
    (found.fresh.upper === null ? "" : `, ${found.fresh.errors} differ (at most ${percent(found.fresh.upper)})`)]);
  if (found.reversals) rows.push(["Changed judgements", `${found.reversals}`]);
  if (found.inter_reader) rows.push(["Two readers", `${found.inter_reader.readers.join(" and ")}: ` +
    `${found.inter_reader.agreed} of ${found.inter_reader.both_read} alike` +
    (found.inter_reader.kappa === null ? "" : `, kappa ${found.inter_reader.kappa.toFixed(2)}`)]);
  rows.push(["Pace", `${found.pace.median_seconds.toFixed(1)} s a sample`]);
  return element("div", { class: "figures" },
    element("dl", {}, rows.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    table(found.table));
}

function side(found, name) {
  if (!found.judged) return `not judged: ${found.read} ${name} samples read, 15 are needed (${found.exist} exist)`;
  return `${found.errors} of ${found.read} (at most ${percent(found.upper)} at 95%)`;
}

function table(counts) {
  const cell = (value, good) => element("td", { class: value ? (good ? "good" : "bad") : "nought" }, `${value}`);
  return element("table", { class: "confusion" },
    element("caption", {}, "You against the reward"),
    element("thead", {}, element("tr", {}, element("td", {}), element("th", { scope: "col" }, "paid"),
      element("th", { scope: "col" }, "not paid"))),
    element("tbody", {},
      element("tr", {}, element("th", { scope: "row" }, "you pass"), cell(counts.pass_right, true), cell(counts.pass_unpaid, false)),
      element("tr", {}, element("th", { scope: "row" }, "you fail"), cell(counts.fail_right, false), cell(counts.fail_unpaid, true))));
}

function rescore() {
  say("Scoring every kept completion again …");
  act(async () => {
    const { rescored, summary } = await post("rescore", {});
    takeState(await get("/api/state"));
    showSummary(summary);
    const fresh = rescored.fresh_needed ? ` ${rescored.fresh_needed} fresh samples to read.` : "";
    if (rescored.same_reward) say("The reward is as it was: nothing changed. Mend its file, save, and rescore again.", "warn");
    else say(`${rescored.changed} scores changed, ${rescored.closed} disagreements closed.${fresh}`);
  });
}

function finish() {
  act(async () => {
    const found = await post("finish", {});
    view.mode = "gone";
    say("");
    show(element("section", { class: "panel centre" },
      element("h1", { class: found.passed ? "passed" : "open" }, found.passed ? "The gate is open" : "The gate stays shut"),
      element("p", {}, found.why),
      element("p", { class: "muted" }, "You can close this page. The terminal shows what comes next.")));
    keys.replaceChildren();
  });
}

// Footer and keyboard

let bindings = {};

function footer(question, choices) {
  bindings = {};
  for (const [key, , , work] of choices) bindings[key.toLowerCase()] = work;
  keys.replaceChildren(
    element("div", { class: "row" },
      question ? element("span", { class: "question" }, question) : null,
      choices.map(([key, name, kind, work]) =>
        element("button", { type: "button", class: kind, on: { click: () => work() } }, `${name} `, element("kbd", {}, key)))));
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || view.form || view.busy || view.mode === "gone") return;
  const key = event.key === " " ? "enter" : event.key.toLowerCase();
  const onButton = document.activeElement instanceof HTMLButtonElement;
  if (key === "enter" && onButton) return; // the focused button takes it
  if (key === " " && view.mode === "read") return; // space scrolls
  const work = bindings[key] || common[key];
  if (!work || (key === "enter" && view.mode === "read")) return;
  event.preventDefault();
  work();
});

const common = {
  s: () => (view.mode === "summary" ? null : toSummary()),
  e: () => { if (view.shown) unfold(); },
  v: () => { if (view.shown) toggleRaw(); },
};

document.getElementById("to-summary").addEventListener("click", () => (view.mode === "summary" ? goOn() : toSummary()));

const number = (value) => (Number.isInteger(value) ? `${value}` : value.toFixed(3).replace(/0+$/, ""));
const percent = (value) => (value === null ? "—" : `${(100 * value).toFixed(1)}%`);
const shorten = (text, longest) => (text.length > longest ? `${text.slice(0, longest)} …` : text);

goOn();
