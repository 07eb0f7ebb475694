// A table of rows by key: it is sorted by a click, filtered by a text, and changes only the cells that change.

import { count, counted, element, setText } from "./words.js";

const AT_ONCE = 200;

/**
 * Make a table under a heading.
 *
 * columns: {label, value(key, row): what it is sorted by, show(key, row): text or node, number: flush right, wide}
 * options: {section, id, caption, words: [one, many], sort: column index, text(key, row): what is filtered,
 *   empty(): a sentence, rowClass(row)}
 */
export function makeTable(columns, options) {
  const drawn = new Map();
  let sorted = options.sort ?? 0;
  let isDescending = options.descending ?? false;
  let known = {};
  let most = AT_ONCE;
  let isStale = false;
  const section = options.after.closest("section");

  const filter = element("input", { type: "search", id: `${options.id}-filter`, class: "filter", autocomplete: "off", spellcheck: "false" });
  const number = element("span", { class: "hint", role: "status" });
  const headings = columns.map((column, at) =>
    element(
      "th",
      { scope: "col", role: "columnheader", class: column.number ? "number" : "" },
      element("button", { type: "button", class: "heading", text: column.label, onclick: () => sortBy(at) }),
    ),
  );
  const body = element("tbody", { role: "rowgroup" });
  const table = element(
    "table",
    { role: "table", "aria-label": options.caption },
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...headings)),
    body,
  );
  const empty = element("p", { class: "empty" });
  const more = element("button", { type: "button", class: "more" });
  const tools = element(
    "div",
    { class: "tools" },
    element("label", { for: filter.id, text: "Filter" }),
    filter,
    number,
  );
  options.after.after(tools, element("div", { class: "table" }, table), more, empty);
  filter.addEventListener("input", () => draw(known));
  more.addEventListener("click", () => {
    most += AT_ONCE;
    draw(known);
  });
  document.addEventListener("view", () => {
    if (isStale) draw(known);
  });

  function sortBy(at) {
    isDescending = at === sorted && !isDescending;
    sorted = at;
    draw(known);
  }

  function order(keys) {
    const { value } = columns[sorted];
    const values = new Map(keys.map((key) => [key, value(key, known[key])]));
    const direction = isDescending ? -1 : 1;
    return keys.sort((one, other) => direction * compare(values.get(one), values.get(other)) || compare(one, other));
  }

  /** Draw these rows, or later, where nobody sees them. */
  function draw(rows) {
    known = rows;
    isStale = section.hidden;
    if (isStale) return;
    const wanted = filter.value.trim().toLowerCase();
    const all = Object.keys(rows);
    const found = order(wanted ? all.filter((key) => options.text(key, rows[key]).toLowerCase().includes(wanted)) : all);
    const keys = found.slice(0, most);
    const shown = new Set(keys);
    for (const [key, line] of drawn) {
      if (!shown.has(key)) {
        line.node.remove();
        drawn.delete(key);
      }
    }
    let place = body.firstChild;
    for (const key of keys) {
      const line = drawn.get(key) ?? newLine(key);
      drawLine(line, key, rows[key]);
      if (line.node !== place) body.insertBefore(line.node, place);
      else place = place.nextSibling;
    }
    headings.forEach((heading, at) => {
      if (at === sorted) heading.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    table.hidden = !keys.length;
    tools.hidden = !all.length;
    more.hidden = found.length <= most;
    setText(more, `Show more: ${count(found.length - keys.length)} are left`);
    setText(number, wanted ? `${found.length} of ${counted(all.length, ...options.words)}` : counted(all.length, ...options.words));
    setText(empty, keys.length ? "" : all.length ? `Nothing matches “${filter.value.trim()}”.` : options.empty());
    empty.hidden = Boolean(keys.length);
  }

  function newLine(key) {
    const cells = columns.map((column) =>
      element("td", { role: "cell", "data-label": column.label, class: [column.number ? "number" : "", column.class ?? ""].join(" ").trim() }),
    );
    const line = { node: element("tr", { role: "row" }, ...cells), cells, row: null, shown: [] };
    drawn.set(key, line);
    return line;
  }

  function drawLine(line, key, row) {
    if (line.row === row && !options.ages) return;
    line.row = row;
    line.node.className = options.rowClass?.(row) ?? "";
    columns.forEach((column, at) => {
      const value = column.mark ? column.mark(key, row) : undefined;
      if (value !== undefined && line.shown[at] === value) return;
      const content = column.show(key, row);
      if (content instanceof Node) line.cells[at].replaceChildren(content);
      else setText(line.cells[at], content);
      line.shown[at] = value;
    });
  }

  return { draw, redraw: () => draw(known) };
}

function compare(one, other) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  return typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
}
