// What all pages share: theme and the list of keys.
"use strict";
const $ = (id) => document.getElementById(id);
const typing = (event) => event.target.closest?.("input:not([type=radio]):not([type=checkbox]), select, textarea") || event.ctrlKey || event.metaKey || event.altKey;
const say = (text) => { $("saved").textContent = text; };

const theme = (name) => { document.documentElement.dataset.theme = name; if ($("theme")) $("theme").textContent = name === "light" ? "Dark" : "Light"; try { localStorage.setItem("theme", name); } catch { /* kept for this page only */ } };
const otherTheme = () => theme(document.documentElement.dataset.theme === "light" ? "dark" : "light");
let kept = ""; try { kept = localStorage.getItem("theme") || ""; } catch { /* no storage */ }
theme(kept === "light" ? "light" : "dark");
$("theme")?.addEventListener("click", otherTheme);
$("help")?.addEventListener("click", () => $("dialog").showModal());
document.addEventListener("keydown", (event) => {
  if (typing(event) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") $("dialog").showModal();
  else if (event.key === "l") otherTheme();
});
