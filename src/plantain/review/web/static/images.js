// Images side by side with one view: zoom, pan, window and level apply to all of them.
"use strict";
const PRESETS = {
  any: [["Full range", 255, 127.5], ["Brighter", 180, 90], ["Darker", 180, 165], ["High contrast", 110, 127.5]],
  chest_xray: [["Full range", 255, 127.5], ["Lungs", 150, 75], ["Mediastinum", 140, 150], ["Bone", 110, 195]],
  brain_mri: [["Full range", 255, 127.5], ["Brain", 150, 95], ["Bright lesions", 110, 180], ["Dark lesions", 100, 60]],
  fundus: [["Full range", 255, 127.5], ["Vessels", 150, 100], ["Disc", 120, 180]],
};
const STEP_ZOOM = 1.25, LENS = 3, LENS_SIDE = 220, SATURATION = 48;

class Images {
  constructor(box, output, filter, preset) {
    Object.assign(this, {box, output, preset, panels: [], loaded: new Map(), difference: false, flicker: false, lens: null, magnifier: false});
    this.functions = [...filter.querySelectorAll("feFuncR, feFuncG, feFuncB")];
    this.onpoint = null; // (slot, x, y, kind) while drawing; true: handled
    this.overlay = null; // (context, panel) draws over a panel
    this.reset(false);
    new ResizeObserver(() => this.draw()).observe(box);
    preset.addEventListener("change", () => this.usePreset(preset.selectedIndex));
    this.tools = {
      fit: () => this.fit(), one: () => this.one(), in: () => this.zoomBy(STEP_ZOOM), out: () => this.zoomBy(1 / STEP_ZOOM), reset: () => this.reset(),
      flicker: () => this.setFlicker(!this.flicker), difference: () => this.toggleDifference(), magnifier: () => this.toggleMagnifier(),
      full: () => document.fullscreenElement ? document.exitFullscreen() : $("stage").requestFullscreen?.(),
    };
    for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => { this.tools[button.dataset.do](); this.pressed(); });
    document.addEventListener("keyup", (event) => { if (event.key.toLowerCase() === "f" && this.flicker) { this.setFlicker(false); this.pressed(); } });
  }
  load(url) { // each image is fetched and decoded once
    if (!this.loaded.has(url)) {
      const promise = fetch(url).then((answer) => { if (!answer.ok) throw new Error("image " + answer.status); return answer.blob(); })
        .then((blob) => createImageBitmap(blob));
      promise.catch(() => this.loaded.delete(url));
      this.loaded.set(url, promise);
      while (this.loaded.size > 24) this.loaded.delete(this.loaded.keys().next().value);
    }
    return this.loaded.get(url);
  }
  async show(list, about) { // list: [{label, url, slot}], slot -1 for the original, -3 for the ground truth
    const bitmaps = await Promise.all(list.map((one) => this.load(one.url)));
    this.size = about.size; this.spacing = about.spacing_mm; this.modality = about.modality;
    this.list = list.map((one, i) => ({...one, bitmap: bitmaps[i]}));
    this.flicker = false;
    this.preset.replaceChildren(...this.presets().map(([name]) => new Option(name)));
    this.reset(false);
    this.build();
  }
  presets() { return PRESETS[this.modality] || PRESETS.any; } // (name, width, level)
  usePreset(index) {
    const list = this.presets();
    const [, width, level] = list[(index + list.length) % list.length];
    this.preset.selectedIndex = (index + list.length) % list.length;
    Object.assign(this, {width, level});
    this.draw();
  }
  build() { // the panels for the images shown now
    const shown = this.list.map((one) => ({...one}));
    if (this.difference) {
      const original = this.list.find((one) => one.slot === -1), first = this.list.filter((one) => one.slot >= 0);
      const pairs = original ? first.map((one) => [original, one, "Difference" + (first.length > 1 ? " " + one.label : "")]) : first.length === 2 ? [[first[0], first[1], "Difference"]] : [];
      for (const [a, b, label] of pairs) shown.push({label, slot: -2, bitmap: apart(a.bitmap, b.bitmap), plain: true});
    }
    this.panels = shown.map((one) => {
      const figure = document.createElement("figure"), canvas = document.createElement("canvas"), over = document.createElement("canvas"), caption = document.createElement("figcaption");
      canvas.className = one.plain ? "difference" : "image";
      over.className = "over"; over.tabIndex = 0;
      over.setAttribute("role", "img"); over.setAttribute("aria-label", one.label);
      caption.textContent = one.label;
      figure.append(canvas, over, caption);
      if (this.spacing) { const bar = document.createElement("div"); bar.className = "scale"; figure.append(bar); }
      const panel = {...one, figure, canvas, over, caption};
      this.listen(panel);
      return panel;
    });
    this.box.replaceChildren(...this.panels.map((panel) => panel.figure));
    this.draw();
  }
  arrange() { // in as many columns as make the images largest
    const n = this.panels.length, box = this.box.getBoundingClientRect(), rows = (columns) => Math.ceil(n / columns);
    const scale = (columns) => Math.min(box.width / columns / this.size[0], box.height / rows(columns) / this.size[1]);
    let columns = n;
    for (let fewer = n - 1; fewer > 0; fewer--) if (scale(fewer) > 1.05 * scale(columns)) columns = fewer;
    this.box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    this.box.style.gridTemplateRows = `repeat(${rows(columns)}, minmax(0, 1fr))`;
  }
  fitZoom(panel) {
    const box = panel.figure.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    return Math.min(box.width * ratio / this.size[0], box.height * ratio / this.size[1]) || 1;
  }
  scale(panel) { return this.exact ? this.exact : this.fitZoom(panel) * this.zoom; } // screen pixels for one image pixel
  pressed() { for (const name of ["flicker", "difference", "magnifier"]) document.querySelector(`[data-do="${name}"]`).setAttribute("aria-pressed", String(this[name])); }
  key(event) { // true: it was a key of the view
    const tools = this.tools, act = {
      d: tools.difference, m: tools.magnifier, o: tools.one, r: tools.reset, z: tools.full, "+": tools.in, "=": tools.in, "-": tools.out, f: () => this.setFlicker(true), F: tools.fit,
      v: () => this.usePreset(this.preset.selectedIndex + 1), ";": () => this.windowBy(0, -8), "'": () => this.windowBy(0, 8), ",": () => this.windowBy(-12, 0), ".": () => this.windowBy(12, 0),
      ArrowLeft: () => this.pan(40, 0), ArrowRight: () => this.pan(-40, 0), ArrowUp: () => this.pan(0, 40), ArrowDown: () => this.pan(0, -40),
    }[event.key];
    if (!act) return false;
    if (!event.repeat || event.key !== "f") { act(); this.pressed(); }
    return true;
  }
  reset(draw = true) {
    Object.assign(this, {zoom: 1, exact: 0, x: 0.5, y: 0.5, width: 255, level: 127.5});
    if (this.preset.options.length) this.preset.selectedIndex = 0;
    if (draw) this.draw();
  }
  one() { this.exact = 1; this.draw(); }
  fit() { Object.assign(this, {zoom: 1, exact: 0, x: 0.5, y: 0.5}); this.draw(); }
  zoomBy(factor) {
    if (this.exact && this.panels.length) { this.zoom = this.exact / this.fitZoom(this.panels[0]); this.exact = 0; }
    this.zoom = Math.min(40, Math.max(0.5, this.zoom * factor)); this.draw();
  }
  pan(dx, dy) { // in screen pixels
    if (!this.panels.length) return;
    const scale = this.scale(this.panels[0]);
    this.x = Math.min(1, Math.max(0, this.x - dx / scale / this.size[0]));
    this.y = Math.min(1, Math.max(0, this.y - dy / scale / this.size[1]));
    this.draw();
  }
  windowBy(dw, dl) {
    this.width = Math.min(510, Math.max(2, this.width + dw));
    this.level = Math.min(255, Math.max(0, this.level + dl));
    this.draw();
  }
  toggleDifference() { this.difference = !this.difference; this.build(); }
  setFlicker(on) { this.flicker = on; this.draw(); }
  toggleMagnifier() { this.magnifier = !this.magnifier; this.lens = null; this.draw(); }
  toImage(panel, event) { // the position of the pointer in image pixels
    const box = panel.figure.getBoundingClientRect(), ratio = devicePixelRatio || 1, scale = this.scale(panel);
    const [left, top] = this.corner(panel);
    return [((event.clientX - box.left) * ratio - left) / scale, ((event.clientY - box.top) * ratio - top) / scale];
  }
  corner(panel) {
    const box = panel.figure.getBoundingClientRect(), ratio = devicePixelRatio || 1, scale = this.scale(panel);
    return [box.width * ratio / 2 - this.x * this.size[0] * scale, box.height * ratio / 2 - this.y * this.size[1] * scale];
  }
  listen(panel) {
    const over = panel.over;
    let last = null;
    over.addEventListener("wheel", (event) => { event.preventDefault(); this.zoomBy(event.deltaY < 0 ? STEP_ZOOM : 1 / STEP_ZOOM); }, {passive: false});
    over.addEventListener("contextmenu", (event) => event.preventDefault());
    over.addEventListener("pointerdown", (event) => {
      over.setPointerCapture(event.pointerId);
      const [x, y] = this.toImage(panel, event);
      if (event.button === 0 && !event.altKey && this.onpoint && this.onpoint(panel.slot, x, y, "down", event)) { last = "taken"; return; }
      last = {x: event.clientX, y: event.clientY, window: event.button === 2 || event.altKey};
    });
    over.addEventListener("pointermove", (event) => {
      const [x, y] = this.toImage(panel, event);
      if (this.magnifier) { this.lens = [x, y]; this.draw(); }
      if (last === "taken") { this.onpoint?.(panel.slot, x, y, "move", event); return; }
      if (!last) { this.onpoint?.(panel.slot, x, y, "hover", event); return; }
      const dx = event.clientX - last.x, dy = event.clientY - last.y, ratio = devicePixelRatio || 1;
      if (last.window) this.windowBy(dx, -dy / 2); else this.pan(dx * ratio, dy * ratio);
      last = {...last, x: event.clientX, y: event.clientY};
    });
    const end = (event) => {
      if (last === "taken") this.onpoint?.(panel.slot, ...this.toImage(panel, event), "up", event);
      last = null;
    };
    over.addEventListener("pointerup", end);
    over.addEventListener("pointercancel", end);
    over.addEventListener("dblclick", (event) => this.onpoint?.(panel.slot, ...this.toImage(panel, event), "double", event));
    over.addEventListener("pointerleave", () => { if (this.lens) { this.lens = null; this.draw(); } });
  }
  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }
  paint() {
    const slope = 255 / this.width, intercept = 0.5 - this.level / this.width, ratio = devicePixelRatio || 1;
    for (const one of this.functions) { one.setAttribute("slope", slope); one.setAttribute("intercept", intercept); }
    const original = this.list?.find((one) => one.slot === -1);
    if (this.panels.length) this.arrange();
    for (const panel of this.panels) {
      const box = panel.figure.getBoundingClientRect(), w = Math.round(box.width * ratio), h = Math.round(box.height * ratio);
      for (const canvas of [panel.canvas, panel.over]) if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
      const scale = this.scale(panel), [left, top] = this.corner(panel), flicker = this.flicker && original && panel.slot >= 0;
      const bitmap = flicker ? original.bitmap : panel.bitmap;
      panel.caption.textContent = flicker ? "Original" : panel.label;
      const context = panel.canvas.getContext("2d"), over = panel.over.getContext("2d");
      context.setTransform(1, 0, 0, 1, 0, 0); context.fillStyle = "#000"; context.fillRect(0, 0, w, h);
      context.imageSmoothingEnabled = scale < 3; context.imageSmoothingQuality = "high";
      context.setTransform(scale, 0, 0, scale, left, top);
      context.drawImage(bitmap, 0, 0, ...this.size);
      over.setTransform(1, 0, 0, 1, 0, 0); over.clearRect(0, 0, w, h);
      over.setTransform(scale, 0, 0, scale, left, top);
      this.overlay?.(over, panel, scale);
      if (this.lens && this.magnifier) this.paintLens(context, bitmap, scale, left, top, ratio);
      const bar = panel.figure.querySelector(".scale");
      if (bar) {
        const target = 80 * ratio / scale * this.spacing, mm = [1, 2, 5, 10, 20, 50, 100].filter((one) => one <= target).pop() || 1;
        bar.style.width = `${mm / this.spacing * scale / ratio}px`; bar.textContent = `${mm} mm`;
      }
    }
    if (this.panels.length) {
      const shown = this.scale(this.panels[0]);
      const window = `W ${Math.round(this.width)} L ${Math.round(this.level)}`;
      this.output.textContent = `${Math.round(100 * shown)} %${Math.abs(shown - 1) < 0.001 ? " (1:1)" : ""} · ${window}`;
    }
  }
  paintLens(context, bitmap, scale, left, top, ratio) {
    const side = LENS_SIDE * ratio, [x, y] = this.lens, at = [left + x * scale, top + y * scale], big = scale * LENS;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.beginPath(); context.arc(at[0], at[1], side / 2, 0, 7); context.clip();
    context.fillStyle = "#000"; context.fill();
    context.imageSmoothingEnabled = big < 4;
    context.setTransform(big, 0, 0, big, at[0] - x * big, at[1] - y * big);
    context.drawImage(bitmap, 0, 0, ...this.size);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.lineWidth = 2 * ratio; context.strokeStyle = "#888"; context.beginPath(); context.arc(at[0], at[1], side / 2 - ratio, 0, 7); context.stroke();
    context.restore();
  }
}

function pixelsOf(bitmap) {
  const canvas = document.createElement("canvas");
  canvas.width = bitmap.width; canvas.height = bitmap.height;
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, bitmap.width, bitmap.height);
}

function apart(before, after) { // orange where it became brighter, blue where darker
  const a = pixelsOf(before), b = pixelsOf(after), found = new ImageData(a.width, a.height);
  for (let i = 0; i < a.data.length; i += 4) {
    const change = (b.data[i] + b.data[i + 1] + b.data[i + 2] - a.data[i] - a.data[i + 1] - a.data[i + 2]) / 3;
    const share = Math.min(1, Math.abs(change) / SATURATION), to = change > 0 ? [255, 176, 66] : [86, 168, 255];
    for (let c = 0; c < 3; c++) found.data[i + c] = 22 + share * (to[c] - 22);
    found.data[i + 3] = 255;
  }
  const canvas = document.createElement("canvas");
  canvas.width = a.width; canvas.height = a.height;
  canvas.getContext("2d").putImageData(found, 0, 0);
  return canvas;
}
