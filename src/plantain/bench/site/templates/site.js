document.documentElement.classList.add("scripted");
const filter = document.getElementById("filter");
filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase();
  for (const row of document.querySelectorAll("tr[data-row]")) row.hidden = !row.dataset.row.includes(wanted);
});
for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());
const picks = [...document.querySelectorAll("select[data-side]")];
const show = () => {
  const wanted = new Set(["before", "after", ...picks.map((pick) => pick.value)]);
  for (const figure of document.querySelectorAll("figure[data-label]")) figure.hidden = !wanted.has(figure.dataset.label);
};
for (const pick of picks) pick.addEventListener("change", show);
if (picks.length) show();
