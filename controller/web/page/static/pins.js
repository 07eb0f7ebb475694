// What operators have pinned: a level or a path, by whom, until when, and whether it holds.

import { explain } from "./explain.js";
import { follow, now, rows } from "./state.js";
import { makeTable } from "./table.js";
import { age, clockTime, element, named } from "./words.js";

/** A mark beside what is pinned, with who has done it and until when. */
export function pinMark(pin) {
  const by = pin.by ? ` by ${pin.by}` : "";
  const title = `Pinned${by} until ${clockTime(pin.until_s)}${pin.problem ? `. It does not hold: ${pin.problem}` : ""}`;
  return element("span", { class: "pin", title, text: pin.problem ? "pin not held" : "pinned" });
}

function left(pin) {
  return `${clockTime(pin.until_s)}, ${age(pin.until_s - now())} left`;
}

function holds(pin) {
  if (!pin.problem) return element("span", { class: "state good", text: "✓ yes" });
  return element("span", {}, element("span", { class: "state waiting", text: "… no" }), ` ${pin.problem}`);
}

function target(name) {
  return element("button", { type: "button", class: "link", onclick: () => explain(name) }, named(name));
}

const columns = [
  { label: "What", class: "subject", value: (name) => name, mark: (name) => name, show: target },
  {
    label: "To",
    class: "wide",
    value: (_, row) => row.path ?? `level ${row.level}`,
    mark: (_, row) => row.path ?? String(row.level),
    show: (_, row) => row.path ?? `level ${row.level}`,
  },
  { label: "Holds", class: "wide", value: (_, row) => row.problem, mark: (_, row) => row.problem, show: (_, row) => holds(row) },
  { label: "Until", class: "short", value: (_, row) => row.until_s, show: (_, row) => left(row) },
  { label: "Since", number: true, value: (_, row) => -row.since_s, show: (_, row) => age(now() - row.since_s) },
  { label: "By", value: (_, row) => row.by, show: (_, row) => row.by || "–" },
];

export function setUpPins() {
  const pins = makeTable(columns, {
    after: document.getElementById("pins-title"),
    id: "pins",
    caption: "Pinned levels and paths",
    words: ["pin", "pins"],
    ages: true,
    text: (name, row) => [name, row.by, row.path, row.problem].join(" "),
    empty: () => "Nothing is pinned. An operator pins a level or a path with trainyard pin.",
  });
  follow(["pins"], () => pins.draw(rows("pins")));
  pins.draw({});
  setInterval(() => {
    if (!document.getElementById("switches").hidden) pins.redraw();
  }, 5000);
}
