// A crosshair that arrow keys move over the pictures: it does what the pointer does, for whoever has none.
"use strict";
const WAYS = {arrowleft: [-1, 0], arrowright: [1, 0], arrowup: [0, -1], arrowdown: [0, 1]};
const OWN_KEYS = "button, input, select, textarea, a"; // where arrows and Space are the browser's

class Crosshair {
  constructor(pictures, tell) {
    Object.assign(this, {pictures, tell, on: false, held: null, x: 0, y: 0, slot: 0});
    pictures.crosshair = this;
    pictures.box.addEventListener("pointerdown", () => this.hide(), true);
    pictures.box.addEventListener("focusin", (event) => this.enter(pictures.panels.find((one) => one.over === event.target)?.slot));
  }
  get role() { return this.on ? "application" : "img"; } // so that a screen reader hands the arrow keys on
  roles() { for (const panel of this.pictures.panels) panel.over.setAttribute("role", this.role); }
  show(slots, holds) { // slots: of the pictures it may go over; holds(): whether what Space begins lasts until Space again
    Object.assign(this, {slots, holds, on: true, held: null, slot: slots[0]});
    const [w, h] = this.pictures.size;
    if (this.of !== this.pictures.pictures) Object.assign(this, {of: this.pictures.pictures, x: Math.round(w / 2), y: Math.round(h / 2)});
    this.far = Math.max(8, Math.round(Math.max(w, h) / 32));
    this.roles();
    this.pictures.panels.find((one) => one.slot === this.slot)?.over.focus({preventScroll: true});
    this.send("hover");
    this.say("Crosshair on");
  }
  hide() {
    if (!this.on) return;
    this.lift();
    this.on = false; this.roles(); this.tell(""); this.pictures.draw();
  }
  enter(slot) { // Tab went to another picture
    if (!this.on || slot === this.slot || !this.slots.includes(slot)) return;
    this.lift();
    this.slot = slot; this.send("hover"); this.say();
  }
  key(key, event) { // true: taken
    if (!this.on || event.ctrlKey || event.altKey || event.target.matches(OWN_KEYS)) return false;
    if (key === "enter" && this.held) this.lift();
    else if (key === " ") { if (!event.repeat) this.press(); }
    else if (WAYS[key]) this.move(WAYS[key], event.shiftKey ? this.far : 1);
    else return false;
    return true;
  }
  move([dx, dy], step) {
    const [w, h] = this.pictures.size;
    this.x = Math.min(w, Math.max(0, this.x + dx * step)); this.y = Math.min(h, Math.max(0, this.y + dy * step));
    this.send(this.held ? "move" : "hover");
    this.pictures.reveal(this.slot, this.x, this.y);
    this.say();
  }
  press() {
    if (this.held) return this.lift();
    this.held = {x: this.x, y: this.y};
    this.send("down");
    if (!this.holds()) this.lift(); else this.say();
  }
  lift() { // ends what Space began
    if (!this.held) return;
    this.held = null;
    this.send("up"); this.say();
  }
  send(kind) { this.pictures.onpoint?.(this.slot, this.x, this.y, kind); this.pictures.draw(); }
  say(before = "") {
    const name = this.pictures.pictures.find((one) => one.slot === this.slot).label;
    this.tell(`${before && before + ": "}${name} ${this.x}, ${this.y}${this.held ? ` from ${this.held.x}, ${this.held.y}` : ""}`);
  }
  paint(context, scale) { // in every picture, so that the same place is seen in each
    if (!this.on) return;
    const arm = 14 / scale, gap = 3 / scale;
    for (const [colour, width] of [["#000", 4], ["#ffe14d", 2]]) {
      context.strokeStyle = colour; context.lineWidth = width / scale;
      context.beginPath();
      for (const [dx, dy] of Object.values(WAYS)) { context.moveTo(this.x + dx * gap, this.y + dy * gap); context.lineTo(this.x + dx * arm, this.y + dy * arm); }
      context.stroke();
    }
    if (this.held) context.strokeRect(Math.min(this.x, this.held.x), Math.min(this.y, this.held.y), Math.abs(this.x - this.held.x), Math.abs(this.y - this.held.y));
  }
}
