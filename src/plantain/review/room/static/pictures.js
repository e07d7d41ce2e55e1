// Pictures side by side with one view: zoom, pan, window and level move together in all of them.
"use strict";
const PRESETS = {
  any: [["Full range", 255, 127.5], ["Brighter", 180, 90], ["Darker", 180, 165], ["High contrast", 110, 127.5]],
  chest_xray: [["Full range", 255, 127.5], ["Lungs", 150, 75], ["Mediastinum", 140, 150], ["Bone", 110, 195]],
  brain_mri: [["Full range", 255, 127.5], ["Brain", 150, 95], ["Bright lesions", 110, 180], ["Dark lesions", 100, 60]],
  fundus: [["Full range", 255, 127.5], ["Vessels", 150, 100], ["Disc", 120, 180]],
};
const WIDE = {colorSpaceConversion: "none", premultiplyAlpha: "none"}; // its bytes are numbers, not colours
const STEP_ZOOM = 1.25, LENS = 3, LENS_SIDE = 220, SATURATION = 48;

class Pictures {
  constructor(box, output, filter, preset) {
    Object.assign(this, {box, output, preset, panels: [], loaded: new Map(), difference: false, flicker: false, lens: null, magnifier: false});
    this.functions = [...filter.querySelectorAll("feFuncR, feFuncG, feFuncB")];
    this.onpoint = null; // (slot, x, y, kind, event) while marking or drawing; true: taken
    this.overlay = null; // (context, panel) draws over a panel
    this.reset(false);
    new ResizeObserver(() => this.draw()).observe(box);
    preset.addEventListener("change", () => this.usePreset(preset.selectedIndex));
  }
  load(url, how) { // one fetch a picture, decoded once
    if (!this.loaded.has(url)) {
      const promise = fetch(url).then((answer) => { if (!answer.ok) throw new Error("picture " + answer.status); return answer.blob(); })
        .then((blob) => createImageBitmap(blob, how));
      promise.catch(() => this.loaded.delete(url));
      this.loaded.set(url, promise);
      while (this.loaded.size > 24) this.loaded.delete(this.loaded.keys().next().value);
    }
    return this.loaded.get(url);
  }
  async show(pictures, about) { // pictures: [{label, url, slot}], slot -1 for the original
    const bitmaps = await Promise.all(pictures.map((one) => this.load(one.url)));
    this.size = about.size; this.spacing = about.spacing_mm; this.modality = about.modality;
    this.pictures = pictures.map((one, i) => ({...one, bitmap: bitmaps[i]}));
    this.wide = about.wide ? {...about.wide, levels: levelsOf(await this.load(about.wide.url, WIDE))} : null;
    this.flicker = false;
    this.fillPresets();
    this.reset(false);
    this.build();
  }
  presets() { // (name, width, level) in levels of the prepared picture; those of the file first
    const list = PRESETS[this.modality] || PRESETS.any, wide = this.wide;
    if (!wide) return list;
    const one = (wide.white - wide.black) / 255, more = wide.linear ? 1 : 0; // DICOM's LINEAR is one value narrower than its name
    return [list[0], ...wide.windows.map(([name, width, centre]) => [`${name}: W ${Math.round(width)} L ${Math.round(centre)}`, (width - more) / Math.abs(one), (centre - more / 2 - wide.black) / one]), ...list.slice(1)];
  }
  fillPresets() {
    const list = this.presets();
    this.preset.replaceChildren(...list.map(([name]) => new Option(name)));
  }
  usePreset(index) {
    const list = this.presets();
    const [, width, level] = list[(index + list.length) % list.length];
    this.preset.selectedIndex = (index + list.length) % list.length;
    Object.assign(this, {width, level});
    this.draw();
  }
  build() { // the panels for what is shown now
    const shown = this.pictures.map((one) => ({...one}));
    if (this.difference) {
      const original = this.pictures.find((one) => one.slot === -1), first = this.pictures.filter((one) => one.slot >= 0);
      const pairs = original ? first.map((one) => [original, one, "Difference" + (first.length > 1 ? " " + one.label : "")]) : first.length === 2 ? [[first[0], first[1], "Difference"]] : [];
      for (const [a, b, label] of pairs) shown.push({label, slot: -2, bitmap: apart(a.bitmap, b.bitmap), plain: true});
    }
    this.panels = shown.map((one) => {
      const figure = document.createElement("figure"), canvas = document.createElement("canvas"), over = document.createElement("canvas"), caption = document.createElement("figcaption");
      canvas.className = one.plain ? "difference" : "picture";
      over.className = "over"; over.tabIndex = 0;
      over.setAttribute("role", this.crosshair?.role ?? "img"); over.setAttribute("aria-label", one.label);
      caption.textContent = one.label;
      figure.append(canvas, over, caption);
      if (this.spacing) { const bar = document.createElement("div"); bar.className = "scale"; figure.append(bar); }
      const panel = {...one, figure, canvas, over, caption};
      this.listen(panel);
      return panel;
    });
    const n = this.panels.length, columns = n <= 3 ? n : Math.ceil(n / 2);
    this.box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    this.box.style.gridTemplateRows = `repeat(${Math.ceil(n / columns)}, minmax(0, 1fr))`;
    this.box.replaceChildren(...this.panels.map((panel) => panel.figure));
    this.draw();
  }
  fitZoom(panel) {
    const box = panel.figure.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    return Math.min(box.width * ratio / this.size[0], box.height * ratio / this.size[1]) || 1;
  }
  scale(panel) { return this.exact ? this.exact : this.fitZoom(panel) * this.zoom; } // screen pixels a picture pixel
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
  reveal(slot, x, y) { // a place that the zoom has put out of sight comes into the middle
    const panel = this.panels.find((one) => one.slot === slot), ratio = devicePixelRatio || 1;
    if (!panel) return;
    const box = panel.figure.getBoundingClientRect(), scale = this.scale(panel), [left, top] = this.corner(panel);
    const across = left + x * scale, down = top + y * scale;
    if (across < 0 || down < 0 || across > box.width * ratio || down > box.height * ratio) Object.assign(this, {x: x / this.size[0], y: y / this.size[1]});
    if (this.magnifier) this.lens = [x, y];
    this.draw();
  }
  windowBy(dw, dl) {
    const most = this.wide ? 255 * 40 : 510, least = this.wide ? 0.5 : 2, beyond = this.wide ? 255 * 20 : 0;
    this.width = Math.min(most, Math.max(least, this.width + dw));
    this.level = Math.min(255 + beyond, Math.max(-beyond, this.level + dl));
    this.draw();
  }
  toggleDifference() { this.difference = !this.difference; this.build(); }
  setFlicker(on) { this.flicker = on; this.draw(); }
  toggleMagnifier() { this.magnifier = !this.magnifier; this.lens = null; this.draw(); }
  toPicture(panel, event) { // the place in picture pixels that the pointer is over
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
      const [x, y] = this.toPicture(panel, event);
      if (event.button === 0 && !event.altKey && this.onpoint && this.onpoint(panel.slot, x, y, "down", event)) { last = "taken"; return; }
      last = {x: event.clientX, y: event.clientY, window: event.button === 2 || event.altKey};
    });
    over.addEventListener("pointermove", (event) => {
      const [x, y] = this.toPicture(panel, event);
      if (this.magnifier) { this.lens = [x, y]; this.draw(); }
      if (last === "taken") { this.onpoint?.(panel.slot, x, y, "move", event); return; }
      if (!last) { this.onpoint?.(panel.slot, x, y, "hover", event); return; }
      const dx = event.clientX - last.x, dy = event.clientY - last.y, ratio = devicePixelRatio || 1;
      if (last.window) this.windowBy(dx, -dy / 2); else this.pan(dx * ratio, dy * ratio);
      last = {...last, x: event.clientX, y: event.clientY};
    });
    const end = (event) => {
      if (last === "taken") this.onpoint?.(panel.slot, ...this.toPicture(panel, event), "up", event);
      last = null;
    };
    over.addEventListener("pointerup", end);
    over.addEventListener("pointercancel", end);
    over.addEventListener("dblclick", (event) => this.onpoint?.(panel.slot, ...this.toPicture(panel, event), "double", event));
    over.addEventListener("pointerleave", () => { if (this.lens) { this.lens = null; this.draw(); } });
  }
  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }
  paint() {
    const slope = 255 / this.width, intercept = 0.5 - this.level / this.width, ratio = devicePixelRatio || 1;
    for (const one of this.functions) { one.setAttribute("slope", slope); one.setAttribute("intercept", intercept); }
    const original = this.pictures?.find((one) => one.slot === -1);
    for (const panel of this.panels) {
      const box = panel.figure.getBoundingClientRect(), w = Math.round(box.width * ratio), h = Math.round(box.height * ratio);
      for (const canvas of [panel.canvas, panel.over]) if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
      const scale = this.scale(panel), [left, top] = this.corner(panel), flicker = this.flicker && original && panel.slot >= 0;
      const named = this.wide && (flicker || panel.slot === -1);
      panel.canvas.className = named ? "wide" : panel.plain ? "difference" : "picture"; // the filter would window it twice
      const bitmap = named ? this.windowed() : flicker ? original.bitmap : panel.bitmap;
      panel.caption.textContent = flicker ? "Original" : panel.label;
      const context = panel.canvas.getContext("2d"), over = panel.over.getContext("2d");
      context.setTransform(1, 0, 0, 1, 0, 0); context.fillStyle = "#000"; context.fillRect(0, 0, w, h);
      context.imageSmoothingEnabled = scale < 3; context.imageSmoothingQuality = "high";
      context.setTransform(scale, 0, 0, scale, left, top);
      context.drawImage(bitmap, 0, 0, ...this.size);
      over.setTransform(1, 0, 0, 1, 0, 0); over.clearRect(0, 0, w, h);
      over.setTransform(scale, 0, 0, scale, left, top);
      this.overlay?.(over, panel, scale);
      this.crosshair?.paint(over, scale);
      if (this.lens && this.magnifier) this.paintLens(context, bitmap, scale, left, top, ratio);
      const bar = panel.figure.querySelector(".scale");
      if (bar) {
        const target = 80 * ratio / scale * this.spacing, mm = [1, 2, 5, 10, 20, 50, 100].filter((one) => one <= target).pop() || 1;
        bar.style.width = `${mm / this.spacing * scale / ratio}px`; bar.textContent = `${mm} mm`;
      }
    }
    if (this.panels.length) {
      const shown = this.scale(this.panels[0]);
      const one = this.wide ? (this.wide.white - this.wide.black) / 255 : 1, more = this.wide?.linear ? 1 : 0;
      const window = this.wide ? `W ${Math.round(this.width * Math.abs(one) + more)} L ${Math.round(this.wide.black + this.level * one + more / 2)} ${this.wide.unit}` : `W ${Math.round(this.width)} L ${Math.round(this.level)}`;
      this.output.textContent = `${Math.round(100 * shown)} %${Math.abs(shown - 1) < 0.001 ? " (1:1)" : ""} · ${window}`;
    }
  }
  windowed() { // the original's own grey levels through the window, made anew when that moved
    const wide = this.wide, name = `${this.width} ${this.level}`;
    if (wide.shown === name) return wide.canvas;
    const {values, width, height} = wide.levels, table = new Uint8ClampedArray(65536), one = (wide.white - wide.black) / 255;
    for (let level = 0; level < 65536; level++) {
      const grey = (wide.low + wide.step * level - wide.black) / one; // as the prepared picture would show it, unclipped
      table[level] = 255 * ((grey - this.level) / this.width + 0.5);
    }
    wide.canvas ??= Object.assign(document.createElement("canvas"), {width, height});
    wide.image ??= new ImageData(width, height);
    const data = wide.image.data;
    for (let i = 0, at = 0; i < values.length; i++, at += 4) { data[at] = data[at + 1] = data[at + 2] = table[values[i]]; data[at + 3] = 255; }
    wide.canvas.getContext("2d").putImageData(wide.image, 0, 0);
    wide.shown = name;
    return wide.canvas;
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

function levelsOf(bitmap) { // high byte red, low byte green
  const {data, width, height} = pixelsOf(bitmap), values = new Uint16Array(width * height);
  for (let i = 0, at = 0; i < values.length; i++, at += 4) values[i] = data[at] << 8 | data[at + 1];
  return {values, width, height};
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
