// The walk through a study: what the server says comes next is shown, and nothing goes on before it is stored there.
"use strict";
const $ = (id) => document.getElementById(id);
const pictures = new Pictures($("panels"), $("view"), $("window"), $("preset"));
const cross = new Crosshair(pictures, (text) => { $("place").textContent = text; });
const room = {me: null, item: null, form: null, marks: [], marking: false, key: "", focus: 0, since: 0, paused: false, saving: false, ahead: new Map(), pictures, cross};
window.room = room; // for tests and for nobody else: it holds what the page shows

// --- talking to the server -------------------------------------------------------------------------
async function ask(path, body) {
  const options = body === undefined ? {} : {method: "POST", headers: {"Content-Type": "application/json", "X-CSRF-Token": room.me?.csrf ?? ""}, body: JSON.stringify(body)};
  const answer = await fetch(path, options);
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401) { location.replace("/enter"); throw new Error("signed out"); }
  if (!answer.ok) throw Object.assign(new Error(said.detail || `the server answered ${answer.status}`), {status: answer.status});
  return said;
}
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// --- where the reader is ---------------------------------------------------------------------------
async function begin() {
  room.me = await ask("/api/me");
  $("study").textContent = room.me.study;
  if (room.me.agreement) return agreement();
  if (!room.me.display) return display();
  const block = room.me.blocks.find((one) => one.state !== "closed");
  if (!block) return finished();
  if (block.state === "training failed") return failed(block);
  if (block.state === "done") return closing(block);
  if (block.answered === 0 && !room.begun) return introduction(block);
  return show(block.id, block.next);
}
function sheet(title, ...parts) {
  $("room").hidden = true; $("sheet").hidden = false;
  const heading = document.createElement("h1"); heading.textContent = title; heading.tabIndex = -1;
  $("sheet").replaceChildren(heading, ...parts);
  room.item = null; stopClock(); heading.focus(); turned();
}
function paragraph(text) { const p = document.createElement("p"); p.textContent = text; return p; }
function button(label, act, main = true) {
  const one = document.createElement("button"); one.type = "button"; one.textContent = label; one.className = main ? "main" : "";
  one.addEventListener("click", async () => { one.disabled = true; try { await act(); } catch (error) { say(error.message); } finally { one.disabled = false; } });
  return one;
}
function row(...parts) { const div = document.createElement("div"); div.className = "row"; div.append(...parts); return div; }
function agreement() {
  const input = document.createElement("input"), label = document.createElement("label");
  label.textContent = "Your full name"; label.htmlFor = input.id = "name"; input.autocomplete = "name"; input.maxLength = 200;
  const confirm = async () => { await ask("/api/agreement", {name: input.value}); await begin(); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") confirm().catch((error) => say(error.message)); });
  sheet("Before you see any picture", paragraph(room.me.agreement), paragraph("Your name stays with the study's owner and stands in no result."), label, input, row(button("I confirm", confirm)));
  input.focus();
}
function display() {
  const patch = (outer, inner) => {
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    canvas.width = canvas.height = 150; canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", `A square of grey ${inner} on ${outer}`);
    context.fillStyle = `rgb(${outer},${outer},${outer})`; context.fillRect(0, 0, 150, 150);
    context.fillStyle = `rgb(${inner},${inner},${inner})`; context.fillRect(45, 45, 60, 60);
    return canvas;
  };
  const patterns = document.createElement("div"); patterns.className = "patterns"; patterns.append(patch(0, 13), patch(255, 242));
  const told = (seen) => async () => { await ask("/api/display", {dark: seen, light: seen, width: screen.width, height: screen.height, ratio: devicePixelRatio || 1}); await begin(); };
  sheet("Your display", paragraph("In each of these squares lies a smaller one: 5 % grey on black, and 95 % grey on white. A display for reading shows both; if you miss one, turn the brightness up or dim the room."),
    patterns, paragraph("Press Y or N, or a button."), row(button("I see both (Y)", told(true)), button("I do not (N)", told(false), false)));
  room.sheetKey = (key) => { if (key === "y" || key === "n") told(key === "y")().catch((error) => say(error.message)); };
}
function introduction(block) {
  const go = async () => { room.begun = true; await show(block.id, block.next); };
  const parts = [paragraph(QUESTIONS[block.task].about || block.title)];
  if (block.training) parts.push(paragraph(`It begins with ${block.training} training cases that tell you the right answer${block.pass_mark ? `; ${Math.round(100 * block.pass_mark)} % of them must be right before you go on` : ""}.`));
  parts.push(paragraph(`${block.items - block.training} cases follow. Every answer is stored at once; you may stop at any time and come back by your link. Press ? for keys.`), row(button("Begin (Enter)", go)));
  sheet(block.title, ...parts);
  room.sheetKey = (key) => { if (key === "enter") go().catch((error) => say(error.message)); };
}
function failed(block) {
  const again = async () => { await ask(`/api/train-again/${block.id}`, {}); room.ahead.clear(); await begin(); };
  sheet("Once more", paragraph(`${Math.round(100 * block.training_share)} % of the training cases were right; ${Math.round(100 * block.pass_mark)} % are needed.`), row(button("Read the training again (Enter)", again)));
  room.sheetKey = (key) => { if (key === "enter") again().catch((error) => say(error.message)); };
}
function closing(block) {
  const close = async () => { await ask(`/api/close/${block.id}`, {}); room.begun = false; room.ahead.clear(); await begin(); };
  const parts = [paragraph(`You have answered all ${block.items} cases of “${block.title}”.`)];
  const buttons = [button("Close this part (Enter)", close)];
  if (room.me.blocks.length) { parts.push(paragraph(room.me.changes ? "You may look back and change answers until you close it." : "You may look back; answers of this study stay as they were given.")); buttons.push(button("Look back", () => show(block.id, block.items - 1), false)); }
  sheet("All answered", ...parts, row(...buttons));
  room.sheetKey = (key) => { if (key === "enter") close().catch((error) => say(error.message)); };
}
function finished() {
  sheet("Thank you", paragraph("You have read the whole study. You can close this window."));
  room.sheetKey = null;
}

// --- one case --------------------------------------------------------------------------------------
function fetchCase(block, position) {
  const name = `${block}/${position}`;
  if (!room.ahead.has(name)) {
    const promise = ask(`/api/case/${name}`);
    promise.catch(() => room.ahead.delete(name));
    room.ahead.set(name, promise);
  }
  return room.ahead.get(name);
}
function picturesOf(item) {
  const list = item.original ? [{label: "Original", url: item.original, slot: -1}] : [];
  const one = item.slots.length === 1;
  item.slots.forEach((url, i) => list.push({label: one ? (item.original ? "Edited" : "Picture") : PLACES[i], url, slot: i}));
  return list;
}
async function show(block, position, past = false) {
  const item = await fetchCase(block, position);
  if (!past) history.pushState({block, position}, ""); // the browser's own Back goes from case to case
  room.waiting = null; // a feedback that was left by Back is no longer waited for
  room.ahead.delete(`${block}/${position}`); // asked for again if the reader comes back: the answer may be another
  cross.hide();
  pictures.overlay = paintMarks; pictures.onpoint = null;
  await pictures.show(picturesOf(item), item);
  $("sheet").hidden = true; $("room").hidden = false; room.sheetKey = null;
  Object.assign(room, {item, marks: structuredClone(item.answer?.marks ?? []), marking: false, key: newKey(), focus: 0});
  const standing = room.me.blocks.find((one) => one.id === block);
  $("where").textContent = item.training ? `${item.title} · training` : item.title;
  $("progress").max = item.items; $("progress").value = position; $("count").textContent = `${position + 1} / ${item.items}`;
  $("title").textContent = item.title;
  $("notice").hidden = !item.notice; $("notice").textContent = item.notice;
  $("about").textContent = [item.direction && item.finding ? `${words(item.direction)}: ${item.finding}` : "", QUESTIONS[item.task].about].filter(Boolean).join(". ");
  $("instruction").textContent = item.instruction;
  $("question").replaceChildren();
  room.form = QUESTIONS[item.task].build($("question"), item, item.answer?.cannot ? null : item.answer, room);
  $("comment").value = item.answer?.comment ?? "";
  $("wrong").textContent = ""; $("feedback").hidden = true; $("save").disabled = false;
  $("depth").textContent = item.wide ? `The original has all grey levels of its file (${item.wide.unit}); edits have 8 bits.` : "The pictures have 8 bits: window and level are viewing aids.";
  $("back").disabled = position === 0;
  if (item.answer?.cannot) say(`You said that this cannot be judged: ${item.answer.cannot}`);
  paintMarkList(); pressed();
  $("side").scrollTop = 0;
  startClock();
  document.body.dataset.case = `${block}/${position}`; turned();
  // the next case, and its pictures, while this one is read
  if (standing && position + 1 < (item.training ? standing.training : item.items)) fetchCase(block, position + 1).then((next) => { picturesOf(next).forEach((one) => pictures.load(one.url).catch(() => {})); if (next.wide) pictures.load(next.wide.url, WIDE).catch(() => {}); }).catch(() => {});
}
async function save(value) {
  if (room.saving || !room.item) return;
  cross.lift();
  const item = room.item;
  if (item.answer && !item.training && !item.changes) { say("Answers of this study stay as they were given."); return onward(item); }
  if (!value) {
    try { value = room.form.read(); } catch (error) { $("wrong").textContent = error.message; turned(); return; }
  }
  if (room.marks.length) value.marks = room.marks;
  if ($("comment").value) value.comment = $("comment").value;
  room.saving = true; $("save").disabled = true; $("wrong").textContent = "";
  const body = {item: item.item, key: room.key, value, focus_ms: Math.round(spent())};
  try {
    const told = await untilSaved(body);
    say(`Saved · ${told.saved}`);
    if (told.feedback) return feedback(told.feedback, item);
    await onward(item);
  } catch (error) { $("wrong").textContent = error.message; $("save").disabled = false; } finally { room.saving = false; }
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
function feedback(told, item) {
  const box = $("feedback");
  box.hidden = false; box.className = "feedback " + (told.right ? "good" : "bad");
  box.replaceChildren(paragraph(told.right ? "Right." : `Not right. The answer is: ${told.truth}.`), row(button("Go on (Enter)", () => onward(item))));
  room.waiting = () => { room.waiting = null; return onward(item); };
  turned();
}
async function onward(item) {
  room.waiting = null;
  room.me = await ask("/api/me");
  const block = room.me.blocks.find((one) => one.id === item.block);
  if (block.state === "training failed") return failed(block);
  const next = item.position + 1;
  if (next < item.items && item.answer && next <= block.next) return show(item.block, next);
  if (block.state === "done") return closing(block);
  return show(item.block, block.next);
}
async function back() { if (room.item && room.item.position > 0 && !room.saving) await show(room.item.block, room.item.position - 1); }
function cannot() {
  if (!room.item) return;
  const input = document.createElement("input"); input.id = "why"; input.maxLength = 2000; input.value = room.item.answer?.cannot ?? "";
  const label = document.createElement("label"); label.textContent = "Why can this not be judged?"; label.htmlFor = "why";
  const done = () => { if (!input.value.trim()) { input.focus(); return; } $("dialog").close(); save({cannot: input.value.trim()}); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); done(); } });
  open("I cannot judge this", label, input, row(button("Save and go on", done), button("Cancel", () => $("dialog").close(), false)));
  input.focus();
}
function open(title, ...parts) { const heading = document.createElement("h1"); heading.textContent = title; $("dialog").replaceChildren(heading, ...parts); $("dialog").showModal(); }
// Counts what was shown, so that whoever watches the page (a test, a screen reader's script) knows when there is something new.
function turned() { document.body.dataset.turn = String(Number(document.body.dataset.turn ?? 0) + 1); }
function say(text) { $("saved").textContent = text; }

// --- time on the case: only while the reader looks at it --------------------------------------------
function startClock() { room.since = document.hasFocus() && !document.hidden && !room.paused ? performance.now() : 0; }
function stopClock() { if (room.since) { room.focus += performance.now() - room.since; room.since = 0; } }
function spent() { return room.focus + (room.since ? performance.now() - room.since : 0); }
window.addEventListener("blur", stopClock);
window.addEventListener("focus", () => { stopClock(); if (room.item) startClock(); });
document.addEventListener("visibilitychange", () => { stopClock(); if (room.item && !document.hidden) startClock(); });
function pause() {
  room.paused = true; stopClock();
  open("Paused", paragraph("Everything so far is stored. The clock stands still."), row(button("Go on", () => $("dialog").close())));
}
$("dialog").addEventListener("close", () => { if (room.paused) { room.paused = false; if (room.item) startClock(); } });

// --- marks: where something is wrong -----------------------------------------------------------------
function mark() {
  if (!room.item) return;
  if (room.item.task === "choose-roi") { // drawing is always on: only the crosshair comes and goes
    if (cross.on || !room.item.own_region) cross.hide(); else cross.show([-1], () => room.form.region.tool !== "polygon");
    return;
  }
  if (!room.item.slots.length) return;
  cross.hide();
  room.marking = !room.marking;
  let start = null;
  const clamp = (v, most) => Math.min(most, Math.max(0, v));
  pictures.onpoint = !room.marking ? null : (slot, x, y, kind) => {
    if (slot < 0) return false;
    const [w, h] = room.item.size; x = clamp(x, w); y = clamp(y, h);
    if (kind === "down") { start = [x, y]; return true; }
    if (kind === "up" && start) {
      const box = {x: Math.min(x, start[0]), y: Math.min(y, start[1]), w: Math.abs(x - start[0]), h: Math.abs(y - start[1])};
      if (box.w < 3 && box.h < 3) Object.assign(box, {x: start[0], y: start[1], w: 0, h: 0});
      room.marks.push({...box, code: room.item.codes[0] ?? "other", slot}); start = null;
      paintMarkList(); pictures.draw(); tellMark();
    }
    return kind !== "hover";
  };
  if (room.marking) cross.show(room.item.slots.map((_, slot) => slot), () => true);
  pressed();
}
function tellMark() { const n = room.marks.length, one = room.marks[n - 1]; say(one ? `Mark ${n}: ${one.w || one.h ? "box" : "point"}, ${words(one.code)}` : "No mark"); }
function nextCode() { // of the newest mark
  const one = room.marks.at(-1), codes = [...room.item.codes, "other"];
  if (one) { one.code = codes[(codes.indexOf(one.code) + 1) % codes.length]; paintMarkList(); tellMark(); }
}
function dropMark() { if (room.marks.pop()) { paintMarkList(); pictures.draw(); tellMark(); } }
function paintMarks(context, panel, scale) {
  if (!room.item) return;
  context.lineWidth = 2 / scale; context.strokeStyle = context.fillStyle = "#ffb042"; context.font = `${14 / scale}px sans-serif`;
  room.marks.forEach((one, i) => {
    if (one.slot !== panel.slot) return;
    context.beginPath();
    if (one.w || one.h) context.rect(one.x, one.y, one.w, one.h); else context.arc(one.x, one.y, 6 / scale, 0, 7);
    context.stroke(); context.fillText(String(i + 1), one.x + one.w + 4 / scale, one.y - 4 / scale);
  });
}
function paintMarkList() {
  const box = $("marks");
  box.replaceChildren();
  if (!room.marks.length) return;
  const list = document.createElement("ol");
  room.marks.forEach((one, i) => {
    const line = document.createElement("li"), select = document.createElement("select"), drop = document.createElement("button");
    select.setAttribute("aria-label", `What is wrong at mark ${i + 1}`);
    for (const code of [...room.item.codes, "other"]) select.append(new Option(words(code), code, false, code === one.code));
    select.addEventListener("change", () => { one.code = select.value; });
    Object.assign(drop, {type: "button", textContent: "×"}); drop.setAttribute("aria-label", `Take mark ${i + 1} away`);
    drop.addEventListener("click", () => { room.marks.splice(i, 1); paintMarkList(); pictures.draw(); });
    line.append(select, " ", drop); list.append(line);
  });
  box.append(list);
}

// --- tools and keys ---------------------------------------------------------------------------------
const DO = {
  fit: () => pictures.fit(), one: () => pictures.one(), in: () => pictures.zoomBy(STEP_ZOOM), out: () => pictures.zoomBy(1 / STEP_ZOOM),
  flicker: () => pictures.setFlicker(!pictures.flicker), difference: () => pictures.toggleDifference(), magnifier: () => pictures.toggleMagnifier(),
  mark, reset: () => pictures.reset(), full: () => document.fullscreenElement ? document.exitFullscreen() : $("stage").requestFullscreen?.(),
};
function pressed() {
  const on = {flicker: pictures.flicker, difference: pictures.difference, magnifier: pictures.magnifier, mark: room.marking};
  for (const [name, state] of Object.entries(on)) document.querySelector(`[data-do="${name}"]`).setAttribute("aria-pressed", String(state));
}
document.querySelectorAll("[data-do]").forEach((one) => one.addEventListener("click", () => { DO[one.dataset.do](); pressed(); }));
function theme() {
  const light = document.documentElement.dataset.theme !== "light";
  document.documentElement.dataset.theme = light ? "light" : "dark";
  $("theme").textContent = light ? "Dark" : "Light";
}
const KEYS = [["Enter", "save and go on"], ["Backspace", "previous case"], ["C", "I cannot judge this"], ["F (hold)", "flicker: the original in every place"], ["D", "difference"],
  ["+ − / wheel", "closer, farther"], ["arrows / drag", "move"], ["Alt or right drag, [ ] and , .", "level and window"], ["V", "next window preset"], ["O", "1:1 pixels"], ["Shift F", "the whole picture"],
  ["R", "reset the view"], ["M", "magnifier"], ["K", "mark what is wrong: click for a point, drag for a box; with keys by the crosshair"],
  ["with the crosshair: arrows", "move it, with Shift farther; Tab: to another picture"], ["Space", "begin; again: end (a point where it stayed, else a box)"], ["W / Delete", "newest mark: next reason / take it away"], ["Esc or K", "put the crosshair away"], ["Z", "full screen"], ["L", "light or dark"], ["P", "pause"]];
function help() {
  const list = (pairs) => { const dl = document.createElement("dl"); for (const [key, what] of pairs) { const dt = document.createElement("dt"), dd = document.createElement("dd"), kbd = document.createElement("kbd"); kbd.textContent = key; dt.append(kbd); dd.textContent = what; dl.append(dt, dd); } return dl; };
  const own = room.item ? [list(QUESTIONS[room.item.task].keys)] : [];
  open("Keys", ...own, list(KEYS), row(button("Close (Esc)", () => $("dialog").close())));
}
const ROOM_KEYS = {
  f: () => pictures.setFlicker(true), d: DO.difference, m: DO.magnifier, k: mark, o: DO.one, r: DO.reset, z: DO.full, l: theme, p: pause, c: cannot, w: nextCode, delete: dropMark, v: () => pictures.usePreset(pictures.preset.selectedIndex + 1),
  "+": DO.in, "=": DO.in, "-": DO.out, "?": help, backspace: back, "[": () => pictures.windowBy(0, -8), "]": () => pictures.windowBy(0, 8), ",": () => pictures.windowBy(-12, 0), ".": () => pictures.windowBy(12, 0),
  arrowleft: () => pictures.pan(40, 0), arrowright: () => pictures.pan(-40, 0), arrowup: () => pictures.pan(0, 40), arrowdown: () => pictures.pan(0, -40),
};
document.addEventListener("keydown", (event) => {
  if ($("dialog").open) return;
  const key = event.key.toLowerCase(), typing = event.target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])");
  if (typing && !(key === "enter" && event.ctrlKey)) return;
  if (!$("sheet").hidden) {
    if (event.target.matches("button") && key === "enter") return;
    if (key === "l") theme(); else if (key === "?") help(); else room.sheetKey?.(key);
    return;
  }
  if (!room.item || event.metaKey || (event.ctrlKey && !"zy".includes(key) && key !== "enter")) return;
  if (room.waiting) { if (key === "enter") { event.preventDefault(); room.waiting().catch((error) => say(error.message)); } return; }
  if (cross.key(key, event)) { event.preventDefault(); return; }
  if (cross.on && key === "escape") { mark(); return; }
  if (room.form.key(key, event)) { event.preventDefault(); return; }
  if (key === "enter") { if (event.target.matches("button:not(#save)")) return; event.preventDefault(); save(); return; }
  if (event.target.matches("input[type=radio]") && key.startsWith("arrow")) return; // the browser's own way through a group
  if (key === "f" && event.shiftKey) { event.preventDefault(); pictures.fit(); return; }
  const act = event.ctrlKey ? null : ROOM_KEYS[key];
  if (act && !(event.repeat && key === "f")) { event.preventDefault(); Promise.resolve(act()).catch((error) => say(error.message)); pressed(); }
});
document.addEventListener("keyup", (event) => { if (event.key.toLowerCase() === "f" && pictures.flicker) { pictures.setFlicker(false); pressed(); } });
$("form").addEventListener("submit", (event) => { event.preventDefault(); save(); });
for (const [id, act] of Object.entries({back, cannot, pause, theme, help})) $(id).addEventListener("click", () => Promise.resolve(act()).catch((error) => say(error.message)));
window.addEventListener("popstate", ({state}) => {
  const open = room.me?.blocks.some((one) => one.id === state?.block && one.state !== "closed" && one.state !== "waiting");
  if (open && !room.saving) show(state.block, state.position, true).catch((error) => say(error.message));
});
{
  const context = $("greys").getContext("2d");
  for (let i = 0; i < 16; i++) { context.fillStyle = `rgb(${17 * i},${17 * i},${17 * i})`; context.fillRect(17 * i, 0, 17, 14); }
}
begin().catch((error) => { if (error.message !== "signed out") sheet("The room cannot be opened", paragraph(error.message), row(button("Try again", begin))); });
