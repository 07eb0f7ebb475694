// Links: state, loads both ways, and why a cable is not used.

import { follow, now, rows } from "./state.js";
import { makeTable } from "./table.js";
import { age, count, counted, element, named, percent, quantity } from "./words.js";

const REASONS = {
  down: "a switch says that its port is down",
  held: "up, but it failed so often that it is held",
  silent: "up, but it loses all probes",
  misplaced: "ends at another port than the fabric file says",
  unheard: "what one end sends does not arrive at the other",
  drained: "an operator has drained it",
};

/** The load of a cable in its fuller direction, and whether that is measured: {share, isMeasured, shares: [there, back]}. */
export function loadOf(row) {
  const shares = row.measured.map((share, at) => share ?? row.planned[at]);
  const share = Math.max(...shares);
  const isMeasured = shares.some((each, at) => each === share && row.measured[at] !== null);
  return { share, isMeasured, shares };
}

export function reason(row) {
  if (!row.state) return "";
  const held = row.until_s ? ` for ${age(row.until_s - now())} more` : "";
  const falls = row.falls ? `; went down ${counted(row.falls, "time")}` : "";
  const since = row.since_s ? `, last ${age(now() - row.since_s)} ago` : "";
  return `${REASONS[row.state] ?? row.state}${held}${falls}${since}`;
}

/** Whether a cable is not used for another reason than that an operator wants it so. */
export function isFailed(row) {
  return Boolean(row.state) && row.state !== "drained";
}

export function stateMark(row) {
  if (isFailed(row)) return element("span", { class: "state bad", text: `✕ ${row.state}` });
  return element("span", { class: `state ${row.state ? "info" : "good"}`, text: row.state ? "– drained" : "✓ in use" });
}

function loadBar(share) {
  const bar = element("span", { class: "bar-track", "aria-hidden": "true" }, element("span", { class: "bar-fill" }));
  bar.firstChild.style.inlineSize = `${Math.min(100, share * 100)}%`;
  return element("span", { class: "loaded" }, bar, element("span", { class: "share", text: percent(share) }));
}

const columns = [
  { label: "Cable", class: "subject", value: (_, row) => row.name, mark: (_, row) => row.name, show: (_, row) => named(row.name) },
  { label: "State", value: (_, row) => row.state || "~", mark: (_, row) => row.state, show: (_, row) => stateMark(row) },
  {
    label: "Load",
    number: true,
    value: (_, row) => loadOf(row).share,
    mark: (_, row) => String(loadOf(row).share),
    show: (_, row) => loadBar(loadOf(row).share),
  },
  { label: "There", number: true, value: (_, row) => loadOf(row).shares[0], show: (_, row) => percent(loadOf(row).shares[0]) },
  { label: "Back", number: true, value: (_, row) => loadOf(row).shares[1], show: (_, row) => percent(loadOf(row).shares[1]) },
  { label: "Known", class: "short", value: (_, row) => String(loadOf(row).isMeasured), show: (_, row) => (loadOf(row).isMeasured ? "measured" : "planned") },
  { label: "Jobs", number: true, value: (_, row) => row.jobs, show: (_, row) => count(row.jobs) },
  { label: "Intensity", number: true, value: (_, row) => row.intensity, show: (_, row) => quantity(row.intensity) },
  { label: "Why it is not used", class: "wide", value: (_, row) => row.state, show: (_, row) => reason(row) },
];

export function setUpLinks() {
  const hint = element("p", {
    class: "hint",
    text:
      "Load is what switches have measured lately, or else what the Plan puts there: above 100 %, jobs wait for one another. " +
      "Intensity is the highest of the jobs that send there.",
  });
  document.getElementById("links-title").after(hint);
  const table = makeTable(columns, {
    after: hint,
    id: "links",
    caption: "Cables",
    words: ["cable", "cables"],
    sort: 2,
    descending: true,
    text: (_, row) => `${row.name} ${row.state || "in use"}`,
    empty: () => "No cable is known yet.",
    rowClass: (row) => (isFailed(row) ? "attention" : ""),
  });
  follow(["links"], () => table.draw(rows("links")));
  table.draw({});
}
