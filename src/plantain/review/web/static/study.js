// Reading a study: the server decides which case comes next, and an answer is stored before the next case appears.
"use strict";
const images = new Images($("panels"), $("view"), $("window"), $("preset"));
const reader = {me: null, item: null, form: null, key: "", focus: 0, since: 0, paused: false, saving: false, ahead: new Map(), images};
window.reader = reader; // for tests

// --- requests --------------------------------------------------------------------------------------
async function ask(path, body) {
  const options = body === undefined ? {} : {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)};
  const answer = await fetch(path, options);
  const reply = await answer.json().catch(() => ({}));
  if (answer.status === 401) { location.replace("/enter"); throw new Error("signed out"); }
  if (!answer.ok) throw Object.assign(new Error(reply.detail || `the server answered ${answer.status}`), {status: answer.status});
  return reply;
}
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const attempt = (act) => Promise.resolve(act()).catch((error) => say(error.message));

// --- sheets between cases --------------------------------------------------------------------------
async function begin() {
  reader.me = await ask("/api/me");
  $("study").textContent = reader.me.study;
  if (reader.me.agreement) return agreement();
  const block = reader.me.blocks.find((one) => one.state !== "closed");
  if (!block) return sheet("Thank you", null, paragraph("You have read the whole study. You can close this window."));
  if (block.state === "done") return closing(block);
  if (block.answered === 0 && !reader.started) return introduction(block);
  return show(block.id, block.next);
}
function sheet(title, enter, ...parts) { // enter: the action of the Enter key
  $("room").hidden = true; $("sheet").hidden = false;
  const heading = document.createElement("h1"); heading.textContent = title; heading.tabIndex = -1;
  $("sheet").replaceChildren(heading, ...parts);
  Object.assign(reader, {item: null, enter}); stopClock(); heading.focus(); turned();
}
function paragraph(text) { const p = document.createElement("p"); p.textContent = text; return p; }
function button(label, act, main = true) {
  const one = document.createElement("button"); one.type = "button"; one.textContent = label; one.className = main ? "main" : "";
  one.addEventListener("click", async () => { one.disabled = true; await attempt(act); one.disabled = false; });
  return one;
}
function folded(text) { // the first clause; the others on demand
  const [first, rest] = text.split(/(?<=[.:;])\s+(.*)/s), box = document.createElement("details"), summary = document.createElement("summary");
  if (!rest) return [text];
  summary.textContent = first; box.className = "folded"; box.append(summary, rest);
  return [box];
}
function row(...parts) { const div = document.createElement("div"); div.className = "row"; div.append(...parts); return div; }
function agreement() {
  const input = document.createElement("input"), label = document.createElement("label");
  label.textContent = "Your full name"; label.htmlFor = input.id = "name"; input.autocomplete = "name"; input.maxLength = 200;
  const confirm = async () => { await ask("/api/agreement", {name: input.value}); await begin(); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") attempt(confirm); });
  sheet("Before you see any image", null, paragraph(reader.me.agreement), paragraph("Your name stays with the study's owner and appears in no result."), label, input, row(button("I confirm", confirm)));
  input.focus();
}
function introduction(block) {
  const go = async () => { reader.started = true; await show(block.id, block.next); };
  sheet(block.title, go, paragraph(QUESTIONS[block.task].about || block.title),
    paragraph(`${block.items} cases. Every answer is stored at once; you may stop at any time and return by your link. Press ? for keys.`), row(button("Start (Enter)", go)));
}
function closing(block) {
  const close = async () => { await ask(`/api/close/${block.id}`, {}); reader.started = false; reader.ahead.clear(); await begin(); };
  sheet("All answered", close, paragraph(`You have answered all ${block.items} cases of “${block.title}”.`), paragraph("You may look back and change answers until you close it."),
    row(button("Close this part (Enter)", close), button("Look back", () => show(block.id, block.items - 1), false)));
}

// --- one case --------------------------------------------------------------------------------------
function fetchCase(block, position) {
  const name = `${block}/${position}`;
  if (!reader.ahead.has(name)) {
    const promise = ask(`/api/case/${name}`);
    promise.catch(() => reader.ahead.delete(name));
    reader.ahead.set(name, promise);
  }
  return reader.ahead.get(name);
}
function imagesOf(item) {
  const list = item.original ? [{label: "Original", url: item.original, slot: -1}] : [], one = item.slots.length === 1;
  if (item.truth) list.push({label: "After the real procedure", url: item.truth, slot: -3});
  item.slots.forEach((url, i) => list.push({label: one ? (item.original ? "Edited" : "Image") : PLACES[i], url, slot: i}));
  return list;
}
async function show(block, position, past = false) {
  const item = await fetchCase(block, position);
  if (!past) history.pushState({block, position}, ""); // the browser's own Back goes from case to case
  reader.ahead.delete(`${block}/${position}`); // requested again on return: the answer may be another
  images.overlay = null; images.onpoint = null;
  await images.show(imagesOf(item), item);
  $("sheet").hidden = true; $("room").hidden = false;
  Object.assign(reader, {item, key: newKey(), focus: 0, enter: null});
  const now = reader.me.blocks.find((one) => one.id === block);
  const parts = reader.me.blocks.length;
  $("where").textContent = parts > 1 ? `Part ${reader.me.blocks.indexOf(now) + 1} of ${parts}` : item.title;
  $("progress").max = item.items; $("progress").value = now.answered; $("count").textContent = `${position + 1} of ${item.items}`;
  $("title").textContent = item.title;
  $("about").textContent = [item.direction && item.finding ? `${words(item.direction)}: ${item.finding}` : "", QUESTIONS[item.task].about].filter(Boolean).join(". ");
  $("instruction").replaceChildren(...folded(item.instruction));
  const [[digits, what]] = QUESTIONS[item.task].keys;
  $("keyline").textContent = `${item.task === "accept" ? `1 to ${Math.min(9, item.criteria.length)}` : digits} ${what.split(";")[0]} · Enter saves · ? all keys`;
  $("own").replaceChildren(...QUESTIONS[item.task].keys.map(([key, what]) => paragraph(`${key}: ${what}`)));
  $("question").replaceChildren();
  reader.form = QUESTIONS[item.task].build($("question"), item, item.answer?.cannot ? null : item.answer, reader);
  $("comment").value = item.answer?.comment ?? "";
  $("wrong").textContent = ""; $("save").disabled = false;
  $("back").disabled = position === 0;
  if (item.answer?.cannot) say(`You could not judge this: ${item.answer.cannot}`);
  images.pressed();
  $("side").scrollTop = 0;
  startClock();
  document.body.dataset.case = `${block}/${position}`; turned();
  // Load the next case and its images while this one is read.
  if (now && position + 1 < item.items) fetchCase(block, position + 1).then((next) => imagesOf(next).forEach((one) => images.load(one.url).catch(() => {}))).catch(() => {});
}
async function save(value) {
  if (reader.saving || !reader.item) return;
  const item = reader.item;
  if (!value) {
    try { value = reader.form.read(); } catch (error) { $("wrong").textContent = error.message; turned(); return; }
  }
  if ($("comment").value) value.comment = $("comment").value;
  reader.saving = true; $("save").disabled = true; $("wrong").textContent = "";
  const body = {item: item.item, key: reader.key, value, focus_ms: Math.round(spent())};
  try {
    const stored = await untilSaved(body);
    say(`Saved · ${stored.saved}`);
    await onward(item);
  } catch (error) { $("wrong").textContent = error.message; $("save").disabled = false; } finally { reader.saving = false; }
}
async function untilSaved(body) { // the same key each time: stored once, however often it is sent
  for (let pause = 300; ; pause = Math.min(5000, pause * 2)) {
    try { return await ask("/api/answer", body); } catch (error) {
      if (error.status) throw error;
      say("Not saved yet: no connection. Trying again…");
      await wait(pause);
    }
  }
}
async function onward(item) {
  reader.me = await ask("/api/me");
  const block = reader.me.blocks.find((one) => one.id === item.block);
  const next = item.position + 1;
  if (next < item.items && item.answer && next <= block.next) return show(item.block, next);
  if (block.state === "done") return closing(block);
  return show(item.block, block.next);
}
async function back() { if (reader.item && reader.item.position > 0 && !reader.saving) await show(reader.item.block, reader.item.position - 1); }
function cannot() {
  if (!reader.item) return;
  const input = document.createElement("input"); input.id = "why"; input.maxLength = 2000; input.value = reader.item.answer?.cannot ?? "";
  const label = document.createElement("label"); label.textContent = "Why can this not be judged?"; label.htmlFor = "why";
  const done = () => { if (!input.value.trim()) { input.focus(); return; } $("ask").close(); save({cannot: input.value.trim()}); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); done(); } });
  open("I cannot judge this", label, input, row(button("Save and continue", done), button("Cancel", () => $("ask").close(), false)));
  input.focus();
}
function open(title, ...parts) { const heading = document.createElement("h1"); heading.textContent = title; $("ask").replaceChildren(heading, ...parts); $("ask").showModal(); }
// Counts the items shown, so that tests and assistive scripts notice new content.
function turned() { document.body.dataset.turn = String(Number(document.body.dataset.turn ?? 0) + 1); }

// --- time on the case: only while the page has the focus -------------------------------------------
function startClock() { reader.since = document.hasFocus() && !document.hidden && !reader.paused ? performance.now() : 0; }
function stopClock() { if (reader.since) { reader.focus += performance.now() - reader.since; reader.since = 0; } }
function spent() { return reader.focus + (reader.since ? performance.now() - reader.since : 0); }
window.addEventListener("blur", stopClock);
window.addEventListener("focus", () => { stopClock(); if (reader.item) startClock(); });
document.addEventListener("visibilitychange", () => { stopClock(); if (reader.item && !document.hidden) startClock(); });
function pause() {
  reader.paused = true; stopClock();
  open("Paused", paragraph("Everything so far is stored. The clock is stopped."), row(button("Continue", () => $("ask").close())));
}
$("ask").addEventListener("close", () => { if (reader.paused) { reader.paused = false; if (reader.item) startClock(); } });

// --- keys --------------------------------------------------------------------------------------------
document.addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase(), typed = event.target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])");
  if (document.querySelector("dialog[open]") || event.metaKey || (typed && !(key === "enter" && event.ctrlKey))) return;
  if (!$("sheet").hidden) { if (key === "enter" && reader.enter && !event.target.matches("button")) attempt(reader.enter); return; }
  if (!reader.item || (event.ctrlKey && !["z", "y", "enter"].includes(key))) return;
  if (reader.form.key(key, event)) { event.preventDefault(); return; }
  if (key === "enter") { if (event.target.matches("button:not(#save)")) return; event.preventDefault(); save(); return; }
  if (event.target.matches("input[type=radio]") && key.startsWith("arrow")) return; // the browser's own keys in a group
  if (event.ctrlKey) return;
  const act = {backspace: back, c: cannot, p: pause}[key];
  if (act) attempt(act);
  if (act || images.key(event)) event.preventDefault();
});
$("form").addEventListener("submit", (event) => { event.preventDefault(); save(); });
for (const [id, act] of Object.entries({back, cannot, pause})) $(id).addEventListener("click", () => attempt(act));
window.addEventListener("popstate", ({state}) => {
  const reachable = reader.me?.blocks.some((one) => one.id === state?.block && one.state !== "closed" && one.state !== "waiting");
  if (reachable && !reader.saving) attempt(() => show(state.block, state.position, true));
});
begin().catch((error) => { if (error.message !== "signed out") sheet("The study cannot be opened", begin, paragraph(error.message), row(button("Try again", begin))); });
