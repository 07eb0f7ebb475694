// Jobs: ranks, levels, iteration times, and who waits for whom.

import { explain } from "./explain.js";
import { follow, rows } from "./state.js";
import { makeTable } from "./table.js";
import { pinMark } from "./pins.js";
import { count, element, named, quantity, seconds } from "./words.js";

const NAMED = 2;

/** A button that explains a job. */
export function jobButton(name) {
  return element("button", { type: "button", class: "link", onclick: () => explain(name) }, named(name));
}

/** A level, also as a bar of so many parts. */
export function levelMark(level) {
  if (level === undefined || level === null) return element("span", { text: "–" });
  return element("span", { class: "level", "data-level": level }, String(level));
}

function metNames(met) {
  if (!met || !met[1]) return element("span", { class: "none", text: "–" });
  const [names, number] = met;
  const shown = names.slice(0, NAMED);
  const box = element("span", { class: "names" });
  for (const name of shown) box.append(jobButton(name));
  if (number > shown.length) box.append(element("span", { class: "hint", text: `and ${count(number - shown.length)} more` }));
  return box;
}

/** The jobs, each of those that have pins with them. */
function jobsWithPins() {
  const jobs = Object.assign(Object.create(null), rows("jobs"));
  for (const [target, pin] of Object.entries(rows("pins"))) {
    const job = jobs[pin.job];
    if (job) jobs[pin.job] = { ...job, pins: { ...job.pins, [target]: pin } };
  }
  return jobs;
}

/** The pin of a job's level. */
function pinOf(row) {
  return Object.values(row.pins ?? {}).find((pin) => pin.level !== null);
}

function shownLevel(row) {
  const pin = pinOf(row);
  return element("span", { class: "pinnable" }, levelMark(row.level), pin ? pinMark(pin) : "");
}

function shownFlows(row) {
  const pins = Object.values(row.pins ?? {}).filter((pin) => pin.path !== null);
  if (!pins.length) return count(row.flows);
  const held = pins.filter((pin) => !pin.problem).length;
  const words = `${count(held)} pinned${held < pins.length ? `, ${count(pins.length - held)} not held` : ""}`;
  return element("span", { class: "pinnable" }, count(row.flows), element("span", { class: "pin", text: words }));
}

function slowdown(row) {
  return row.measured_s && row.alone_s ? row.measured_s / row.alone_s : null;
}

const columns = [
  { label: "Rank", number: true, value: (_, row) => row.rank, show: (_, row) => count(row.rank) },
  { label: "Job", class: "subject", value: (name) => name, mark: (name) => name, show: (name) => jobButton(name) },
  { label: "Level", value: (_, row) => row.level, mark: (_, row) => `${row.level} ${pinOf(row)?.until_s} ${pinOf(row)?.problem}`, show: (_, row) => shownLevel(row) },
  { label: "Intensity", number: true, value: (_, row) => row.intensity, show: (_, row) => quantity(row.intensity) },
  { label: "Iteration", number: true, value: (_, row) => row.measured_s, show: (_, row) => seconds(row.measured_s) },
  { label: "Alone", number: true, value: (_, row) => row.alone_s, show: (_, row) => seconds(row.alone_s) },
  { label: "Expected", number: true, value: (_, row) => row.expected_s, show: (_, row) => seconds(row.expected_s) },
  {
    label: "Slowdown",
    number: true,
    value: (_, row) => slowdown(row),
    show: (_, row) => (slowdown(row) ? slowdown(row).toFixed(2) : "–"),
  },
  { label: "GPUs", number: true, value: (_, row) => row.gpus, show: (_, row) => count(row.gpus) },
  { label: "Flows", number: true, value: (_, row) => row.flows, show: (_, row) => shownFlows(row) },
  { label: "Profile", value: (_, row) => row.profile, show: (_, row) => row.profile },
  {
    label: "Waits for",
    value: (_, row) => row.goes_before?.[1] ?? 0,
    mark: (_, row) => JSON.stringify(row.goes_before ?? null),
    show: (_, row) => metNames(row.goes_before),
  },
  {
    label: "Waited for by",
    value: (_, row) => row.waits?.[1] ?? 0,
    mark: (_, row) => JSON.stringify(row.waits ?? null),
    show: (_, row) => metNames(row.waits),
  },
  {
    label: "Shares a level with",
    value: (_, row) => row.shares?.[1] ?? 0,
    mark: (_, row) => JSON.stringify(row.shares ?? null),
    show: (_, row) => metNames(row.shares),
  },
];

export function setUpJobs() {
  const title = document.getElementById("jobs-title");
  const hint = element("p", {
    class: "hint",
    text:
      "Rank 0 and level 7 are the most urgent. A job waits for those that share a link with it at a higher level. " +
      "Iteration is measured, or what the job reports; Alone is without other jobs; Expected is the policy’s model. " +
      "Choose a job to read why.",
  });
  title.after(hint);
  const table = makeTable(columns, {
    after: hint,
    id: "jobs",
    caption: "Jobs in order of rank",
    words: ["job", "jobs"],
    text: (name, row) => [name, row.tenant, row.hosts.join(" "), `level:${row.level}`, row.profile, row.pins ? "pinned" : ""].join(" "),
    empty: () => "No job is registered. Jobs come with the host library: python -m hostlib run train.py.",
  });
  follow(["jobs", "pins"], () => table.draw(jobsWithPins()));
  table.draw({});
}
