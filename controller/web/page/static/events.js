// What has happened, the newest first.

import { follow, rows } from "./state.js";
import { makeTable } from "./table.js";
import { clockTime, element } from "./words.js";

const SIGNS = { debug: "·", info: "·", warning: "!", error: "✕", critical: "✕" };

const columns = [
  { label: "Time", class: "when", value: (_, row) => row.time_s, show: (_, row) => clockTime(row.time_s) },
  {
    label: "Severity",
    value: (_, row) => row.severity,
    mark: (_, row) => row.severity,
    show: (_, row) => element("span", { class: `state ${row.severity}`, text: `${SIGNS[row.severity] ?? "·"} ${row.severity}` }),
  },
  { label: "Kind", value: (_, row) => row.kind, show: (_, row) => row.kind },
  { label: "What happened", class: "wide", value: (_, row) => row.message, mark: (key) => key, show: (_, row) => element("bdi", { text: row.message }) },
];

export function setUpEvents() {
  const table = makeTable(columns, {
    after: document.getElementById("events-title"),
    id: "events",
    caption: "Events, the newest first",
    words: ["event", "events"],
    descending: true,
    text: (_, row) => [row.severity, row.kind, row.message].join(" "),
    empty: () => "Nothing has happened since this controller started.",
  });
  follow(["events"], () => table.draw(rows("events")));
  table.draw({});
}
