// A region drawn on an image, as a mask of the image's own size: the mask on the screen is the mask that is saved.
"use strict";
const MOST_UNDO = 40, MOST_KEPT = 2 ** 28; // steps, and bytes of them
const SHADE = 0x6e82e85c; // transparent green, as one word of ImageData

class Region {
  constructor(size, changed) {
    [this.w, this.h] = size;
    Object.assign(this, {mask: new Uint8Array(this.w * this.h), tool: "polygon", radius: Math.max(4, Math.round(this.w / 60)), points: [], hover: null, past: [], future: [], changed, proposal: null, touched: false});
    this.canvas = document.createElement("canvas"); this.canvas.width = this.w; this.canvas.height = this.h;
  }
  get empty() { return !this.mask.includes(1); }
  get state() { return {mask: this.mask.slice(), proposal: this.proposal, touched: this.touched}; } // touched: drawn on since the proposal
  keep() { this.past.push(this.state); if (this.past.length > Math.min(MOST_UNDO, MOST_KEPT / this.mask.length)) this.past.shift(); this.future = []; this.touched = true; }
  undo() { if (this.points.length) { this.points.pop(); this.changed(); return; } if (this.past.length) { this.future.push(this.state); Object.assign(this, this.past.pop()); this.update(); } }
  redo() { if (this.future.length) { this.past.push(this.state); Object.assign(this, this.future.pop()); this.update(); } }
  clear() { this.keep(); this.mask = new Uint8Array(this.w * this.h); this.points = []; this.proposal = null; this.update(); }
  start(mask, proposal) { this.keep(); this.mask = mask; this.proposal = proposal; this.touched = false; this.points = []; this.update(); }
  point(x, y, kind) { // true: handled
    const value = this.tool === "eraser" ? 0 : 1;
    if (this.tool === "polygon") {
      if (kind === "down") { this.points.push([x, y]); this.changed(); return true; }
      if (kind === "hover") { this.hover = [x, y]; if (this.points.length) this.changed(); }
      if (kind === "double") this.close();
      return kind !== "hover";
    }
    if (this.tool === "box") {
      if (kind === "down") { this.points = [[x, y]]; this.hover = [x, y]; return true; }
      if (kind === "move") { this.hover = [x, y]; this.changed(); return true; }
      if (kind === "up" && this.points.length) {
        const [[ax, ay]] = this.points; this.points = []; this.keep();
        this.fill([[ax, ay], [x, ay], [x, y], [ax, y]]); this.update(); return true;
      }
      return false;
    }
    if (kind === "down") { this.keep(); this.last = [x, y]; this.stamp(x, y, value); this.update(...this.around([[x, y]])); return true; }
    if (kind === "move" && this.last) { this.line(this.last, [x, y], value); this.update(...this.around([this.last, [x, y]])); this.last = [x, y]; return true; }
    if (kind === "up") { this.last = null; return true; }
    if (kind === "hover") { this.hover = [x, y]; this.changed(); }
    return false;
  }
  close() { // the polygon
    const corners = this.points.filter((one, i, all) => i === 0 || Math.hypot(one[0] - all[i - 1][0], one[1] - all[i - 1][1]) > 0.5);
    this.points = [];
    if (corners.length > 2) { this.keep(); this.fill(corners); }
    this.update();
  }
  fill(corners) { // pixels whose centre is inside, by crossings of each row
    for (let y = Math.max(0, Math.floor(Math.min(...corners.map((one) => one[1])))); y < Math.min(this.h, Math.ceil(Math.max(...corners.map((one) => one[1])))); y++) {
      const at = [], middle = y + 0.5;
      corners.forEach(([ax, ay], i) => {
        const [bx, by] = corners[(i + 1) % corners.length];
        if ((ay <= middle) !== (by <= middle)) at.push(ax + (middle - ay) / (by - ay) * (bx - ax));
      });
      at.sort((a, b) => a - b);
      for (let i = 0; i + 1 < at.length; i += 2)
        for (let x = Math.max(0, Math.ceil(at[i] - 0.5)); x < Math.min(this.w, at[i + 1] - 0.5); x++) this.mask[y * this.w + x] = 1;
    }
  }
  stamp(cx, cy, value) {
    const r = this.radius;
    for (let y = Math.max(0, Math.floor(cy - r)); y <= Math.min(this.h - 1, cy + r); y++)
      for (let x = Math.max(0, Math.floor(cx - r)); x <= Math.min(this.w - 1, cx + r); x++)
        if ((x + 0.5 - cx) ** 2 + (y + 0.5 - cy) ** 2 <= r * r) this.mask[y * this.w + x] = value;
  }
  line(from, to, value) {
    const steps = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / Math.max(1, this.radius / 2)));
    for (let i = 1; i <= steps; i++) this.stamp(from[0] + (to[0] - from[0]) * i / steps, from[1] + (to[1] - from[1]) * i / steps, value);
  }
  around(places) { // left, top, right and bottom of the pixels that the brush can have changed
    const xs = places.map((one) => one[0]), ys = places.map((one) => one[1]), r = this.radius + 1;
    return [Math.max(0, Math.floor(Math.min(...xs) - r)), Math.max(0, Math.floor(Math.min(...ys) - r)), Math.min(this.w, Math.ceil(Math.max(...xs) + r)), Math.min(this.h, Math.ceil(Math.max(...ys) + r))];
  }
  update(left = 0, top = 0, right = this.w, bottom = this.h) { // only the changed part, so that strokes are fast on large images
    if (right > left && bottom > top) {
      const data = new ImageData(right - left, bottom - top), words = new Uint32Array(data.data.buffer);
      for (let y = top, at = 0; y < bottom; y++) for (let x = left; x < right; x++, at++) if (this.mask[y * this.w + x]) words[at] = SHADE;
      this.canvas.getContext("2d").putImageData(data, left, top);
    }
    this.changed();
  }
  paint(context, scale) {
    context.imageSmoothingEnabled = false;
    context.drawImage(this.canvas, 0, 0);
    context.lineWidth = 2 / scale; context.strokeStyle = "#5ce882"; context.fillStyle = "#5ce882";
    if (this.points.length) {
      context.beginPath();
      if (this.tool === "box") { const [[x, y]] = this.points; context.rect(x, y, this.hover[0] - x, this.hover[1] - y); }
      else { this.points.forEach(([x, y], i) => i ? context.lineTo(x, y) : context.moveTo(x, y)); if (this.hover) context.lineTo(...this.hover); }
      context.stroke();
      for (const [x, y] of this.points) { context.beginPath(); context.arc(x, y, 3 / scale, 0, 7); context.fill(); }
    } else if (this.hover && (this.tool === "brush" || this.tool === "eraser")) {
      context.beginPath(); context.arc(...this.hover, this.radius, 0, 7); context.stroke();
    }
  }
  png() { // black and white, of the image's size, as base64
    const data = new ImageData(this.w, this.h), words = new Uint32Array(data.data.buffer), canvas = document.createElement("canvas");
    for (let i = 0; i < this.mask.length; i++) words[i] = this.mask[i] ? 0xffffffff : 0xff000000;
    canvas.width = this.w; canvas.height = this.h; canvas.getContext("2d").putImageData(data, 0, 0);
    return canvas.toDataURL("image/png").split(",")[1];
  }
  static maskOf(bitmap) { const data = pixelsOf(bitmap).data, mask = new Uint8Array(data.length / 4); for (let i = 0; i < mask.length; i++) mask[i] = data[4 * i] > 127 ? 1 : 0; return mask; }
}
