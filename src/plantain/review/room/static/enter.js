// A reader's link ends in #TOKEN: the part after # is sent to no server by itself, so no log can hold it.
"use strict";
const said = document.getElementById("said"), form = document.getElementById("form");
async function enter(token) {
  history.replaceState(null, "", "/enter");
  const answer = await fetch("/enter", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({token})});
  if (answer.ok) { location.replace("/"); return; }
  said.textContent = "This link is not known here. Please ask for a new one.";
  form.hidden = false;
  document.getElementById("token").focus();
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  enter(document.getElementById("token").value.trim().split("#").pop());
});
const token = location.hash.slice(1);
if (token) { enter(token); } else {
  said.textContent = "Please open the link that you were sent.";
  form.hidden = false;
}
