// One task, or one case: pictures with one view, its rounds by key, and what changes while a build goes on.
"use strict";
const said = document.body.dataset;
const pictures = new Pictures($("panels"), $("view"), $("window"), $("preset"));
window.pictures = pictures; // for tests: what is shown
let shown = -1;
const rounds = () => [...document.querySelectorAll("#story .round")].filter((one) => one.dataset.picture);
async function show(index) {
  const all = rounds(), original = said.original ? [{label: "Original", url: said.original, slot: -1}] : [];
  shown = Math.max(0, Math.min(all.length - 1, index));
  const one = all[shown];
  for (const section of document.querySelectorAll("#story .round")) section.classList.toggle("now", section === one);
  [...$("rounds").children].forEach((button, i) => button.setAttribute("aria-pressed", i === shown));
  const list = one ? [...original, {label: /^\d/.test(one.dataset.label) ? `${said.each} ${one.dataset.label}` : one.dataset.label, url: one.dataset.picture, slot: 0}] : original;
  if (!list.length) { $("panels").textContent = "There is no picture here: an imported release did not carry it."; return; }
  let bitmaps;
  try { bitmaps = await Promise.all(list.map((each) => pictures.load(each.url))); } catch { $("panels").textContent = "This picture cannot be shown: it is not here."; }
  if (all[shown] !== one) return; // another round was asked for meanwhile
  if (bitmaps) {
    const {zoom, exact, x, y, width, level} = pictures, preset = $("preset").selectedIndex, first = !pictures.pictures;
    await pictures.show(list, {size: [bitmaps[0].width, bitmaps[0].height], spacing_mm: Number(said.spacing) || null, modality: said.modality});
    if (!first) { Object.assign(pictures, {zoom, exact, x, y, width, level}); $("preset").selectedIndex = preset; pictures.draw(); }
  }
  const to = new URL(location.href);
  if (one && all.length > 1) to.searchParams.set("show", one.dataset.round);
  history.replaceState(null, "", to);
  said.shown = one?.dataset.round ?? "original";
}
function list() {
  $("rounds").replaceChildren(...rounds().map((one, i) => {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = one.dataset.label; button.title = `${said.each} ([ and ])`;
    button.addEventListener("click", () => show(i));
    return button;
  }));
}
function press(name, on) { document.querySelector(`[data-do="${name}"]`).setAttribute("aria-pressed", on); }
const DO = {
  fit: () => pictures.fit(), one: () => pictures.one(), in: () => pictures.zoomBy(STEP_ZOOM), out: () => pictures.zoomBy(1 / STEP_ZOOM), reset: () => pictures.reset(),
  flicker: () => { pictures.setFlicker(!pictures.flicker); press("flicker", pictures.flicker); },
  difference: () => { pictures.toggleDifference(); press("difference", pictures.difference); },
  magnifier: () => { pictures.toggleMagnifier(); press("magnifier", pictures.magnifier); },
  copy: async () => { try { await navigator.clipboard.writeText(location.href); $("live").textContent = "link copied"; } catch { $("live").textContent = location.href; } },
};
document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", () => DO[button.dataset.do]()));
const go = (to) => { if (to) location.assign(to); };
const KEYS = {
  j: () => go(said.next), k: () => go(said.previous), u: () => go(said.back || "/"), "]": () => show(shown + 1), "[": () => show(shown - 1),
  d: DO.difference, m: DO.magnifier, "+": DO.in, "=": DO.in, "-": DO.out, 0: DO.fit, o: DO.one, r: DO.reset, c: DO.copy, v: () => pictures.usePreset($("preset").selectedIndex + 1),
  ArrowLeft: () => pictures.pan(60, 0), ArrowRight: () => pictures.pan(-60, 0), ArrowUp: () => pictures.pan(0, 60), ArrowDown: () => pictures.pan(0, -60),
};
document.addEventListener("keydown", (event) => {
  if (typing(event) || $("dialog").open) return;
  if (event.key === "f") { if (!event.repeat) pictures.setFlicker(true); event.preventDefault(); return; }
  const act = KEYS[event.key];
  if (act) { act(); event.preventDefault(); }
});
document.addEventListener("keyup", (event) => { if (event.key === "f") { pictures.setFlicker(false); press("flicker", false); } });
const follow = async () => {
  try {
    if (!document.hidden) {
      const now = await (await fetch(`/api/mark/${encodeURIComponent(said.about)}`)).json();
      if (now.mark !== said.mark) {
        const fresh = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html"), last = shown === rounds().length - 1;
        $("story").replaceWith(document.adoptNode(fresh.getElementById("story")));
        document.querySelector(".crumbs").replaceWith(document.adoptNode(fresh.querySelector(".crumbs")));
        said.mark = fresh.body.dataset.mark;
        list();
        await show(last ? rounds().length - 1 : shown);
        $("live").textContent = `followed at ${new Date().toLocaleTimeString()}`;
      }
    }
  } catch { $("live").textContent = "the viewer has ended"; }
  setTimeout(follow, EVERY_MS);
};
list();
const asked = new URL(location.href).searchParams.get("show");
const place = rounds().findIndex((one) => one.dataset.round === asked);
show(place >= 0 ? place : rounds().length - 1).then(() => setTimeout(follow, EVERY_MS));
