// One task or one case: its images with one view, and its rounds by key.
"use strict";
const page = document.body.dataset;
const images = new Images($("panels"), $("view"), $("window"), $("preset"));
window.images = images; // for tests
let shown = -1;
const rounds = () => [...document.querySelectorAll("#story .round")];
async function show(index) {
  const all = rounds(), original = page.original ? [{label: "Original", url: page.original, slot: -1}] : [];
  shown = Math.max(0, Math.min(all.length - 1, index));
  const one = all[shown];
  const list = one?.dataset.image ? [...original, {label: /^\d/.test(one.dataset.label) ? `${page.each} ${one.dataset.label}` : one.dataset.label, url: one.dataset.image, slot: 0}] : original;
  let bitmaps = [], missing = list.length ? "" : "No image: the imported release did not contain it.";
  try { bitmaps = await Promise.all(list.map((each) => images.load(each.url))); } catch { missing = "This image is missing."; }
  if (all[shown] !== one) return; // another round was selected meanwhile
  for (const section of all) section.classList.toggle("now", section === one);
  [...$("rounds").children].forEach((button, i) => button.setAttribute("aria-pressed", i === shown));
  if (missing) $("panels").textContent = missing;
  else {
    const {zoom, exact, x, y, width, level} = images, preset = $("preset").selectedIndex, first = !images.list;
    await images.show(list, {size: [bitmaps[0].width, bitmaps[0].height], spacing_mm: Number(page.spacing) || null, modality: page.modality});
    if (!first) { Object.assign(images, {zoom, exact, x, y, width, level}); $("preset").selectedIndex = preset; images.draw(); }
  }
  const to = new URL(location.href);
  if (one && all.length > 1) to.searchParams.set("show", one.dataset.round);
  history.replaceState(null, "", to);
  page.shown = one?.dataset.round ?? "original";
}
function list() {
  $("rounds").replaceChildren(...rounds().map((one, i) => {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = one.dataset.label; button.title = `${page.each} ([ and ])`;
    button.addEventListener("click", () => show(i));
    return button;
  }));
}
const copy = async () => { try { await navigator.clipboard.writeText(location.href); $("live").textContent = "link copied"; } catch { $("live").textContent = location.href; } };
$("copy").addEventListener("click", copy);
const go = (to) => { if (to) location.assign(to); };
const KEYS = {j: () => go(page.next), k: () => go(page.previous), u: () => go(page.back || "/"), "]": () => show(shown + 1), "[": () => show(shown - 1), c: copy};
document.addEventListener("keydown", (event) => {
  if (typing(event) || $("dialog").open) return;
  const act = KEYS[event.key];
  if (act) act();
  if (act || images.key(event)) event.preventDefault();
});
list();
const asked = new URL(location.href).searchParams.get("show");
const place = rounds().findIndex((one) => one.dataset.round === asked);
show(place >= 0 ? place : rounds().length - 1);
