// A Plan beside the one before: ranks, levels and paths of jobs that have changed.

import { jobButton, levelMark } from "./jobs.js";
import { follow, rows } from "./state.js";
import { clockTime, count, counted, element } from "./words.js";

const choice = document.getElementById("plan-choice");
const shown = document.getElementById("plan");
const note = element("p", {
  class: "hint note",
  text: "Listed are the newest Plans, ten at most, that were in force while somebody had this page open. Others are not kept here.",
});
let chosen = null;
let drawnAs = "";

export function setUpPlans() {
  shown.after(note);
  follow(["plans"], draw);
  draw();
}

function draw() {
  const plans = rows("plans");
  const numbers = Object.keys(plans).map(Number).sort((one, other) => other - one);
  if (!numbers.includes(chosen)) chosen = null;
  const current = chosen ?? numbers[0];
  const now = `${numbers.join()} ${current}`;
  if (now === drawnAs) return;
  drawnAs = now;
  const focused = document.activeElement?.dataset?.plan;
  choice.replaceChildren(
    ...numbers.map((number) =>
      element("button", {
        type: "button",
        class: "chip",
        "aria-pressed": String(number === current),
        "data-plan": number,
        text: `Plan ${number}`,
        onclick: () => {
          chosen = number === numbers[0] ? null : number;
          draw();
        },
      }),
    ),
  );
  if (focused) choice.querySelector(`[data-plan="${focused}"]`)?.focus();
  choice.hidden = !numbers.length;
  note.hidden = !numbers.length;
  shown.replaceChildren(...(numbers.length ? planParts(plans[current]) : [nothing()]));
}

function nothing() {
  return element("p", { class: "empty", text: "No Plan has been seen yet. The controller makes one when a job or a link comes or goes." });
}

function planParts(plan) {
  const parts = [element("p", { class: "hint", text: sentence(plan) })];
  if (plan.new.length) parts.push(nameList("New jobs", plan.new));
  if (plan.gone.length) parts.push(nameList("Jobs that have gone", plan.gone, false));
  if (plan.changed.length) parts.push(changedTable(plan.changed));
  if (plan.left_out) parts.push(element("p", { class: "hint", text: `${count(plan.left_out)} more are not listed.` }));
  return parts;
}

function sentence(plan) {
  const made = `Plan ${plan.number} was made at ${clockTime(plan.time_s)}`;
  if (plan.before === null && plan.number === 1) return `${made}. It is the first one.`;
  if (plan.before === null) return `${made}. The Plan before is missing: it is of before the controller started, or of another fabric.`;
  return `${made}. Beside Plan ${plan.before}: ${counted(plan.new.length, "new job")}, ${count(plan.gone.length)} gone, ${count(plan.changed.length)} changed, ${count(plan.unchanged)} as before.`;
}

function nameList(title, names, areThere = true) {
  const items = names.map((name) => element("li", {}, areThere ? jobButton(name) : element("bdi", { class: "name", text: name })));
  return element("div", {}, element("h3", { text: title }), element("ul", { class: "names" }, ...items));
}

function changedTable(changed) {
  const headings = ["Job", "Rank", "Level", "Paths"].map((label) => element("th", { scope: "col", role: "columnheader", text: label }));
  const lines = changed.map((job) =>
    element(
      "tr",
      { role: "row" },
      element("td", { role: "cell", "data-label": "Job", class: "subject" }, jobButton(job.name)),
      element("td", { role: "cell", "data-label": "Rank" }, change(job.ranks, (rank) => String(rank))),
      element("td", { role: "cell", "data-label": "Level" }, change(job.levels, levelMark)),
      element("td", { role: "cell", "data-label": "Paths", class: "wide" }, paths(job)),
    ),
  );
  return element(
    "div",
    { class: "table" },
    element("h3", { text: "Changed jobs" }),
    element(
      "table",
      { role: "table", "aria-label": "Changed jobs" },
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...headings)),
      element("tbody", { role: "rowgroup" }, ...lines),
    ),
  );
}

function change([before, after], show) {
  if (before === after) return element("span", { class: "none" }, show(after));
  return element("span", { class: "change" }, show(before), " → ", show(after));
}

function paths(job) {
  if (!job.moved) return element("span", { class: "none", text: "as before" });
  const moves = job.moves.map((move) =>
    element("li", {}, element("bdi", { class: "name", text: move.flow }), `: ${move.before} → ${move.after}`),
  );
  if (job.moved > job.moves.length) moves.push(element("li", { class: "hint", text: `and ${count(job.moved - job.moves.length)} more` }));
  return element(
    "details",
    {},
    element("summary", { text: `${count(job.moved)} of ${counted(job.flows, "flow")} moved` }),
    element("ul", { class: "moves" }, ...moves),
  );
}
