// A reader's link ends in #TOKEN: browsers do not send the part after #, so no log contains it.
"use strict";
const message = $("status"), form = $("form");
async function enter(token) {
  history.replaceState(null, "", "/enter");
  const answer = await fetch("/enter", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({token})});
  if (answer.ok) { location.replace("/"); return; }
  message.textContent = "Unknown link. Please ask for a new one.";
  form.hidden = false;
  $("token").focus();
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  enter($("token").value.trim().split("#").pop());
});
const token = location.hash.slice(1);
if (token) { enter(token); } else {
  message.textContent = "Please open the link that you were sent.";
  form.hidden = false;
}
