// A list of tasks or cases: keys, filters that fill themselves. It works without a script, too.
"use strict";
if ($("rows")) {
  const rows = () => [...document.querySelectorAll("#rows tbody tr[id]")];
  let at = -1;
  const choose = (next) => {
    const all = rows();
    if (!all.length) return;
    all[at]?.classList.remove("now");
    at = Math.max(0, Math.min(all.length - 1, next));
    all[at].classList.add("now");
    all[at].scrollIntoView({block: "nearest"});
    all[at].querySelector("a.open").focus({preventScroll: true});
  };
  const turn = (rel) => { const link = document.querySelector(`#pager a[rel="${rel}"]`); if (link) location.assign(link.href); };
  const change = (name, value) => { const to = new URL(location.href); for (const gone of ["after", "before", "page"]) to.searchParams.delete(gone); if (value) to.searchParams.set(name, value); else to.searchParams.delete(name); location.assign(to); };
  const now = (name) => new URL(location.href).searchParams.get(name);
  document.addEventListener("keydown", (event) => {
    if (typing(event) || $("dialog").open) { if (event.key === "Escape" && event.target === $("search")) $("search").blur(); return; }
    const states = document.querySelectorAll("nav.states a");
    if (event.key === "j" || event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "k" || event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "n") turn("next");
    else if (event.key === "p") turn("prev");
    else if (event.key === "d") change("differ", now("differ") ? "" : "any");
    else if (event.key === "/") $("search").focus();
    else if (/^[1-9]$/.test(event.key) && states[event.key - 1]) location.assign(states[event.key - 1].href);
    else return;
    event.preventDefault();
  });
  document.querySelector("form.filters-bar").addEventListener("change", (event) => { if (event.target.matches("select, [type=checkbox]")) event.currentTarget.requestSubmit(); });
  document.querySelector("form.filters-bar").addEventListener("formdata", (event) => { for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name); });
  const lists = {modality: "modalities", finding: "findings", direction: "directions", criterion: "criteria"};
  const fill = async () => {
    if (!document.querySelector("[data-offered]")) return;
    const reply = await (await fetch("/api/offered")).json();
    for (const select of document.querySelectorAll("[data-offered]")) {
      const chosen = select.value;
      select.replaceChildren(select.options[0], ...reply[lists[select.dataset.offered]].map((one) => new Option(one.replaceAll("_", " "), one)));
      if (chosen && ![...select.options].some((one) => one.value === chosen)) select.append(new Option(chosen, chosen));
      select.value = chosen;
    }
    document.body.dataset.filled = "yes";
  };
  const count = async () => {
    const box = $("count");
    if (!box) return;
    const reply = await (await fetch(box.dataset.count)).json();
    box.textContent = `${reply.count.toLocaleString("en").replaceAll(",", "\u202f")} shown`;
  };
  fill().catch(() => {}); count().catch(() => {});
}
