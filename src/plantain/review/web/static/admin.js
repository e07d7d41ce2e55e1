// Progress of readers. All of it is inserted as text, never as markup.
"use strict";
function table(headings, rows) {
  const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
  for (const text of headings) { const th = document.createElement("th"); th.textContent = text; head.append(th); }
  for (const cells of rows) { const row = body.insertRow(); for (const cell of cells) { const td = row.insertCell(); if (cell instanceof Node) td.append(cell); else td.textContent = cell; } }
  return made;
}
function meter(value, of) {
  const bar = document.createElement("progress"), box = document.createElement("span");
  bar.className = "meter"; bar.max = of || 1; bar.value = value; bar.setAttribute("aria-label", `${value} of ${of}`);
  box.append(bar, ` ${value} / ${of}`);
  return box;
}
async function read(agreement) {
  const answer = await fetch("/api/admin" + (agreement ? "?agreement=true" : ""));
  if (!answer.ok) { location.replace("/enter"); return; }
  const reply = await answer.json();
  $("study").textContent = reply.study;
  $("readers").replaceChildren(reply.readers.length ? table(["reader", "answered", "parts closed", "median time", "known answers", "cannot judge", "last answer"],
    reply.readers.map((one) => [one.reader, meter(one.answered, one.items), `${one.blocks_closed} / ${reply.blocks}`, one.median_s === null ? "–" : `${one.median_s.toFixed(1)} s`,
      one.known ? `${one.known_right} of ${one.known} right` : "–", one.cannot, one.last ? new Date(one.last).toLocaleString() : "–"])) : document.createTextNode("No readers yet: plantain review invite STUDY"));
  if (reply.agreement) $("agreed").replaceChildren(table(["part", "items", "Krippendorff's alpha"], reply.agreement.map((one) => [one.title, one.items, one.alpha === null ? "–" : one.alpha.toFixed(2)])));
  $("status").textContent = `read at ${new Date().toLocaleTimeString()}`;
}
$("again").addEventListener("click", () => read(false));
$("agreement").addEventListener("click", () => read(true));
read(false);
