// Switches and what operators have drained.

import { follow, now, rows } from "./state.js";
import { makeTable } from "./table.js";
import { age, count, element, named } from "./words.js";
import { jobButton } from "./jobs.js";

export function conditionMark(condition) {
  const isGood = condition === "caught up";
  const isWaiting = condition === "behind";
  const sign = isGood ? "✓" : isWaiting ? "…" : "✕";
  return element("span", { class: `state ${isGood ? "good" : isWaiting ? "waiting" : "bad"}`, text: `${sign} ${condition}` });
}

const switchColumns = [
  { label: "Switch", class: "subject", value: (name) => name, mark: (name) => name, show: (name) => named(name) },
  {
    label: "Condition",
    value: (_, row) => (row.condition === "caught up" ? "~" : row.condition),
    mark: (_, row) => row.condition,
    show: (_, row) => conditionMark(row.condition),
  },
  { label: "Since", number: true, value: (_, row) => -row.since_s, show: (_, row) => age(now() - row.since_s) },
  { label: "Problem", class: "wide", value: (_, row) => row.problem, show: (_, row) => row.problem || "–" },
  { label: "Rules", number: true, value: (_, row) => row.rules, show: (_, row) => count(row.rules) },
  { label: "Planned", number: true, value: (_, row) => row.planned_rules, show: (_, row) => count(row.planned_rules) },
  { label: "Drifted", number: true, value: (_, row) => row.drifted, show: (_, row) => count(row.drifted) },
  { label: "Address", value: (_, row) => row.address, show: (_, row) => `${row.address}, device ${row.device}` },
];

function jobNames(names) {
  if (!names.length) return element("span", { class: "none", text: "–" });
  return element("span", { class: "names" }, ...names.map(jobButton));
}

const drainColumns = [
  { label: "What", class: "subject", value: (name) => name, mark: (name) => name, show: (name) => named(name) },
  {
    label: "Safe to work on",
    value: (_, row) => row.waits_for.length,
    mark: (_, row) => String(row.waits_for.length === 0),
    show: (_, row) =>
      element("span", { class: `state ${row.waits_for.length ? "waiting" : "good"}`, text: row.waits_for.length ? "… not yet" : "✓ yes" }),
  },
  { label: "Waits for", class: "wide", value: (_, row) => row.waits_for.join(), show: (_, row) => row.waits_for.join("; ") || "–" },
  {
    label: "Jobs there",
    value: (_, row) => row.jobs.length,
    mark: (_, row) => row.jobs.join(),
    show: (_, row) => jobNames(row.jobs),
  },
  { label: "Since", number: true, value: (_, row) => -row.since_s, show: (_, row) => age(now() - row.since_s) },
  { label: "By", value: (_, row) => row.by, show: (_, row) => (row.by || "–") + (row.forced ? ", forced" : "") },
];

export function setUpSwitches() {
  const switches = makeTable(switchColumns, {
    after: document.getElementById("switches-title"),
    id: "switches",
    caption: "Switches",
    words: ["switch", "switches"],
    ages: true,
    text: (name, row) => [name, row.condition, row.problem, row.address].join(" "),
    empty: () => "The controller writes to no switch.",
    rowClass: (row) => (row.condition === "caught up" ? "" : "attention"),
  });
  const drains = makeTable(drainColumns, {
    after: document.getElementById("drains-title"),
    id: "drains",
    caption: "Drained switches, cables and hosts",
    words: ["drain", "drains"],
    ages: true,
    text: (name, row) => [name, row.by, ...row.jobs].join(" "),
    empty: () => "Nothing is drained. An operator drains with trainyard drain, to work on a switch, a cable or a host.",
  });
  follow(["switches"], () => switches.draw(rows("switches")));
  follow(["drains"], () => drains.draw(rows("drains")));
  switches.draw({});
  drains.draw({});
  setInterval(() => {
    if (!document.getElementById("switches").hidden) {
      switches.redraw();
      drains.redraw();
    }
  }, 5000);
}
