// A list of tasks or cases: keys and a search. It works without a script, too.
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
  document.addEventListener("keydown", (event) => {
    if (typing(event) || $("dialog").open) { if (event.key === "Escape" && event.target === $("search")) $("search").blur(); return; }
    const states = document.querySelectorAll("nav.states a");
    if (event.key === "j" || event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "k" || event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "n") turn("next");
    else if (event.key === "p") turn("prev");
    else if (event.key === "/") $("search")?.focus();
    else if (/^[1-9]$/.test(event.key) && states[event.key - 1]) location.assign(states[event.key - 1].href);
    else return;
    event.preventDefault();
  });
  document.querySelector("form.filters-bar")?.addEventListener("formdata", (event) => { for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name); });
}
