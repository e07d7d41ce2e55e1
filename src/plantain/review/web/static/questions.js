// One form for each kind of question: radio buttons, keys, and the answer that is stored.
"use strict";
const PLACES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

function words(name) { const text = name.replaceAll("_", " "); return text[0].toUpperCase() + text.slice(1); }

function group(legend, note, name, options, chosen) { // options: [[value, label, key]]
  const set = document.createElement("fieldset"), title = document.createElement("legend"), row = document.createElement("div");
  title.textContent = legend; set.append(title);
  const inline = options.length < 4, p = document.createElement("p"); p.textContent = note;
  set.append(...(note && !inline ? [p] : []), row, ...(note && inline ? [p] : [])); set.classList.toggle("inline", inline);
  row.className = "choices"; row.setAttribute("role", "radiogroup"); row.setAttribute("aria-label", legend);
  for (const [value, label, key] of options) {
    const one = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, {type: "radio", name, value: String(value)});
    input.checked = chosen !== undefined && chosen !== null && String(chosen) === String(value);
    one.append(input);
    if (key !== undefined && key !== "") { const kbd = document.createElement("kbd"); kbd.textContent = key; one.append(kbd); }
    one.append(label); row.append(one);
  }
  set.dataset.name = name;
  return set;
}
function checks(legend, name, values, chosen) {
  const set = document.createElement("fieldset"), title = document.createElement("legend"), row = document.createElement("div");
  title.textContent = legend; set.append(title); row.className = "choices";
  for (const value of values) {
    const one = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, {type: "checkbox", name, value}); input.checked = chosen.includes(value);
    one.append(input, words(value)); row.append(one);
  }
  set.append(row); set.dataset.name = name;
  return set;
}
function chosen(box, name) { return box.querySelector(`input[name="${CSS.escape(name)}"]:checked`)?.value; }
function choose(box, name, value) {
  const input = [...box.querySelectorAll(`input[name="${CSS.escape(name)}"]`)].find((one) => one.value === String(value));
  if (!input) return false;
  input.checked = true; input.dispatchEvent(new Event("change", {bubbles: true}));
  return true;
}
function stepper(box, names) { // the group that a digit answers: the first without an answer, else the last touched
  let now = 0;
  const paint = () => names.forEach((name, i) => [...box.querySelectorAll("fieldset")].find((set) => set.dataset.name === name)?.classList.toggle("now", i === now && names.length > 1));
  paint();
  return {get name() { return names[now]; }, next() { const open = names.findIndex((name) => chosen(box, name) === undefined); now = open >= 0 ? open : Math.min(now + 1, names.length - 1); paint(); },
    move(by) { now = (now + by + names.length) % names.length; paint(); }, to(i) { now = i; paint(); }};
}
const digit = (key) => /^[0-9]$/.test(key) ? Number(key) : null;

const QUESTIONS = {
  accept: {
    about: "Compare the edited image with the original. Answer every criterion.",
    keys: [["1 to 9", "yes, again no"], ["Y / N", "yes or no to the marked criterion, and on"], ["A / X", "yes, or no, to everything"]],
    build(box, item, old) {
      item.criteria.forEach(([name, question], i) => box.append(group(words(name), question, "c:" + name, [[true, "Yes", ""], [false, "No", ""]], old?.criteria?.[name])));
      item.criteria.forEach((one, i) => { const legend = box.querySelectorAll("legend")[i], kbd = document.createElement("kbd"); kbd.textContent = i + 1; legend.prepend(kbd, " "); });
      if (item.codes.length) {
        const why = document.createElement("details"), title = document.createElement("summary"), reasons = checks("", "codes", item.codes, old?.codes ?? []);
        title.textContent = "Reasons (optional)"; why.className = "folded"; reasons.setAttribute("aria-label", "Reasons"); why.append(title, reasons); box.append(why);
        const opened = () => { if (box.querySelector("input[value=false]:checked, input[name=codes]:checked")) why.open = true; };
        box.addEventListener("change", opened); opened();
      }
      const names = item.criteria.map(([name]) => "c:" + name), step = stepper(box, names);
      return {
        key(key) {
          const n = digit(key);
          if (n && n <= names.length) { choose(box, names[n - 1], chosen(box, names[n - 1]) === "true" ? "false" : "true"); step.next(); return true; }
          if (key === "y" || key === "n") { choose(box, step.name, key === "y"); step.next(); return true; }
          if (key === "a" || key === "x") { names.forEach((name) => choose(box, name, key === "a")); step.next(); return true; }
          return false;
        },
        read() {
          const criteria = {};
          for (const [name] of item.criteria) { const value = chosen(box, "c:" + name); if (value === undefined) throw new Error(`Please answer “${words(name)}”.`); criteria[name] = value === "true"; }
          return {criteria, codes: [...box.querySelectorAll('input[name="codes"]:checked')].map((one) => one.value)};
        },
      };
    },
  },
  rate: {
    about: "Compare the edited image with the original and rate it; more is better.",
    keys: [["0 to 9, T", "rate; T is ten"], ["↑ ↓", "another criterion (Shift)"]],
    build(box, item, old) {
      const [least, most] = item.scale, steps = Array.from({length: most - least + 1}, (_, i) => least + i);
      for (const [name, question] of item.criteria) box.append(group(words(name), question, "s:" + name, steps.map((one) => [one, one, ""]), old?.scores?.[name]));
      const names = item.criteria.map(([name]) => "s:" + name), step = stepper(box, names);
      return {
        key(key, event) {
          const n = key === "t" ? 10 : digit(key);
          if (n !== null && n >= least && n <= most) { choose(box, step.name, n); step.next(); return true; }
          if (event.shiftKey && (key === "arrowup" || key === "arrowdown")) { step.move(key === "arrowup" ? -1 : 1); return true; }
          return false;
        },
        read() {
          const scores = {};
          for (const [name] of item.criteria) { const value = chosen(box, "s:" + name); if (value === undefined) throw new Error(`Please rate “${words(name)}”.`); scores[name] = Number(value); }
          return {scores};
        },
      };
    },
  },
  pair: simple("Which image follows the instruction better and leaves the rest unchanged?", "Better", "better", () => [["left", "A, left", "1"], ["tie", "Tie", "2"], ["right", "B, right", "3"]]),
  "real-or-edited": simple("", "Is this image real, or was it edited?", "real", () => [["true", "Real", "1"], ["false", "Edited", "2"]], (value) => value === "true"),
  "describe-ok": {
    about: "Does the description say what changed between the two images?",
    keys: [["1 / 2", "yes / no"]],
    build(box, item, old) {
      const quote = document.createElement("blockquote"); quote.textContent = item.description; box.append(quote);
      box.append(group("Is the description right?", "", "right", [["true", "Yes", "1"], ["false", "No", "2"]], old?.right));
      const label = document.createElement("label"), area = document.createElement("textarea");
      label.textContent = "Correction: wrong or missing details (optional)"; label.className = "small"; area.rows = 2; area.maxLength = 2000; area.value = old?.correction ?? ""; label.append(area); box.append(label);
      return {
        key(key) { return (key === "1" || key === "2") && choose(box, "right", key === "1"); },
        read() { const value = chosen(box, "right"); if (value === undefined) throw new Error("Please answer yes or no."); return {right: value === "true", correction: area.value}; },
      };
    },
  },
  rank: {
    about: "Rank the images: 1 is best; equal ones share a rank.",
    keys: [["1 to 9, 0", "rank; 0 is ten; with Shift: 11 to 20"], ["Shift ↑ ↓", "another image"]],
    build(box, item, old) {
      const [[, question]] = item.criteria, k = item.slots.length, ranks = Array.from({length: k}, (_, i) => i + 1), note = document.createElement("p");
      note.textContent = question; note.id = "criterion"; box.append(note);
      item.slots.forEach((_, i) => box.append(group(`Image ${PLACES[i]}`, "", "r:" + i, ranks.map((one) => [one, one, ""]), old?.ranks?.[i])));
      const names = item.slots.map((_, i) => "r:" + i), step = stepper(box, names);
      return {
        key(key, event) {
          const typed = digit(event.code.replace("Digit", "")), n = typed === null ? null : (typed || 10) + (event.shiftKey ? 10 : 0);
          if (n && n <= k) { choose(box, step.name, n); step.next(); return true; }
          if (event.shiftKey && (key === "arrowup" || key === "arrowdown")) { step.move(key === "arrowup" ? -1 : 1); return true; }
          return false;
        },
        read() { return {ranks: names.map((name, i) => { const value = chosen(box, name); if (value === undefined) throw new Error(`Please rank image ${PLACES[i]}.`); return Number(value); })}; },
      };
    },
  },
  "choose-roi": {
    about: "Mark the region that the edit should change.",
    keys: [["1 to 9", "start from a proposal"], ["G / H / E / B", "polygon, brush, eraser, box"], ["< >", "smaller or larger brush"], ["Enter", "close an open polygon"], ["Ctrl Z / Ctrl Y", "undo, redo"]],
    build(box, item, old, reader) {
      let coming = null; // the proposal that is being loaded
      const region = new Region(item.size, () => { // the chosen proposal follows undo and redo
        for (const one of box.querySelectorAll("input[name=proposal]")) one.checked = one.value === String(coming ?? region.proposal);
        reader.images.draw();
      });
      const tools = document.createElement("fieldset"), row = document.createElement("div"), title = document.createElement("legend");
      title.textContent = "Draw"; row.className = "row"; tools.append(title, row);
      const names = {polygon: ["Polygon", "G"], brush: ["Brush", "H"], eraser: ["Eraser", "E"], box: ["Box", "B"]};
      const button = (label, hint, act) => { const one = document.createElement("button"); Object.assign(one, {type: "button", textContent: label, title: hint}); one.addEventListener("click", act); row.append(one); return one; };
      const buttons = Object.entries(names).map(([tool, [label, key]]) => { const one = button(label, `${label} (${key})`, () => use(tool)); one.dataset.tool = tool; return one; });
      const use = (tool) => { region.tool = tool; region.points = []; buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.tool === tool))); reader.images.draw(); };
      button("Undo", "Undo (Ctrl Z)", () => region.undo()); button("Redo", "Redo (Ctrl Y)", () => region.redo()); button("Clear", "Clear", () => region.clear());
      box.append(tools); use("polygon");
      const propose = async (n) => {
        coming = n;
        try {
          const mask = Region.maskOf(await reader.images.load(item.proposals[n]));
          if (coming === n) region.start(mask, n);
        } finally { if (coming === n) { coming = null; region.changed(); } }
      };
      if (item.proposals.length) {
        const set = group("Start from a proposal", "", "proposal", item.proposals.map((_, i) => [i, String(i + 1), ""]), old?.proposal);
        set.addEventListener("change", () => propose(Number(chosen(box, "proposal")))); box.append(set);
      }
      const restore = async () => {
        if (old?.mask) { const bytes = Uint8Array.from(atob(old.mask), (c) => c.charCodeAt(0)); region.start(Region.maskOf(await createImageBitmap(new Blob([bytes], {type: "image/png"}))), old.proposal); region.touched = true; region.past = []; }
        else if (old && old.proposal !== null && old.proposal !== undefined) await propose(old.proposal);
      };
      restore();
      reader.images.overlay = (context, panel, scale) => { if (panel.slot === -1) region.paint(context, scale); };
      reader.images.onpoint = (slot, x, y, kind) => slot === -1 && region.point(x, y, kind);
      return {
        region,
        key(key, event) {
          const n = digit(key);
          if (n && n <= item.proposals.length) return choose(box, "proposal", n - 1);
          const tool = {g: "polygon", h: "brush", e: "eraser", b: "box"}[key];
          if (tool) { use(tool); return true; }
          if (key === "<" || key === ">") { region.radius = Math.max(1, Math.round(region.radius * (key === ">" ? 1.25 : 0.8))); reader.images.draw(); return true; }
          if (event.ctrlKey && key === "z") { region.undo(); return true; }
          if (event.ctrlKey && key === "y") { region.redo(); return true; }
          if (key === "enter" && region.points.length > 2) { region.close(); return true; }
          return false;
        },
        read() {
          if (coming !== null) throw new Error("The proposal is still being loaded.");
          if (region.points.length) region.close();
          const proposal = region.proposal;
          if (!region.touched && proposal !== null && proposal !== undefined) return {proposal, mask: null};
          if (region.empty) throw new Error("Please draw a region, or choose a proposal.");
          return {proposal: proposal ?? null, mask: region.png()};
        },
      };
    },
  },
};

function simple(about, legend, name, options, value = (text) => text) {
  return {
    about, keys: [["1 to 9, 0", "answer"]],
    build(box, item, old) {
      const list = options(item);
      box.append(group(legend, "", name, list, old?.[name]));
      return {
        key(key) { const found = list.find((one) => one[2] === key); return found ? choose(box, name, found[0]) : false; },
        read() { const choice = chosen(box, name); if (choice === undefined) throw new Error("Please choose an answer."); return {[name]: value(choice)}; },
      };
    },
  };
}
