(function () {
  "use strict";
  if (document.body.hasAttribute("data-in-run") && location.protocol === "file:") {
    var folder = decodeURIComponent(location.pathname).replace(/\/[^/]*$/, "");
    document.querySelectorAll(".unfilled").forEach(function (words) { words.remove(); });
    document.querySelectorAll("code .run").forEach(function (span) {
      span.textContent = "'" + folder.replace(/'/g, "'\\''") + "'";
    });
  }
  document.documentElement.classList.add("scripted");
  document.querySelectorAll("input.slide").forEach(function (slide) {
    var images = slide.closest(".compare").querySelectorAll("img");
    images[1].parentNode.style.background = 'url("' + images[0].src + '") 0 / 100% 100%';
    slide.addEventListener("input", function () {
      images[1].style.clipPath = "inset(0 " + (100 - slide.value) + "% 0 0)";
    });
  });
  var form = document.querySelector("form.filters");
  if (!form) return;
  var tasks = Array.prototype.slice.call(document.querySelectorAll(".gallery article.task"));
  var output = form.querySelector("output");
  function apply() {
    var shown = 0;
    tasks.forEach(function (task) {
      var visible = Array.prototype.every.call(form.elements, function (field) {
        return field.tagName !== "SELECT" || !field.value || task.dataset[field.name] === field.value;
      });
      task.hidden = !visible;
      if (visible) shown += 1;
    });
    output.textContent = shown + " of " + tasks.length + " shown";
  }
  form.addEventListener("change", apply);
  form.addEventListener("reset", function () { setTimeout(apply, 0); });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.querySelectorAll("a[data-outcome]").forEach(function (link) {
    link.addEventListener("click", function () {
      form.reset();
      form.elements.outcome.value = link.dataset.outcome;
      apply();
    });
  });
  apply();
})();
