(function () {
  "use strict";
  document.querySelectorAll("table.sortable").forEach(function (table) {
    table.querySelectorAll("thead th").forEach(function (head, column) {
      if (!head.hasAttribute("data-sort")) return;
      var button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      while (head.firstChild) button.appendChild(head.firstChild);
      head.appendChild(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") !== "descending";
        table.querySelectorAll("thead th[aria-sort]").forEach(function (other) { other.setAttribute("aria-sort", "none"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        table.querySelectorAll("tbody").forEach(function (body) {
          var rows = Array.prototype.slice.call(body.querySelectorAll("tr:not(.fixed)"));
          rows.sort(function (a, b) {
            var x = parseFloat(a.cells[column].dataset.value), y = parseFloat(b.cells[column].dataset.value);
            if (isNaN(x) || isNaN(y)) return (isNaN(x) ? 1 : 0) - (isNaN(y) ? 1 : 0);
            return down ? y - x : x - y;
          });
          rows.forEach(function (row) { body.appendChild(row); });
        });
      });
    });
  });
  var dialog = document.querySelector("dialog.large");
  if (!dialog || !dialog.showModal) return;
  var opener = null;
  document.querySelectorAll(".shot .frame").forEach(function (frame) {
    frame.addEventListener("click", function () {
      opener = frame;
      var copy = frame.cloneNode(true);
      copy.setAttribute("autofocus", "");
      copy.addEventListener("click", function () { dialog.close(); });
      dialog.replaceChildren(copy);
      var words = document.createElement("p");
      words.textContent = frame.dataset.caption || "";
      dialog.appendChild(words);
      dialog.showModal();
    });
  });
  dialog.addEventListener("click", function (event) { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", function () { if (opener) opener.focus(); });
})();
