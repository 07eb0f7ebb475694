// The rows that the controller sends, by section and key, and who wants to hear of them.

const NOT_MEASURED = [null, null];

const sections = {};
const listeners = [];
let changed = new Map();
let isDue = false;
let clockOffset = 0;

/** The rows of a section by key. */
export function rows(section) {
  return sections[section] ?? {};
}

/** The controller's time, in Unix seconds. */
export function now() {
  return Date.now() / 1000 + clockOffset;
}

export function setClock(unixSeconds) {
  clockOffset = unixSeconds - Date.now() / 1000;
}

/** Call `draw` with the changed keys, at most once a frame, whenever rows of these sections change. */
export function follow(names, draw) {
  listeners.push([names, draw]);
}

/** Take a message of the controller: all rows, or those that have changed; null is a row that is gone. */
export function take(message) {
  if (message.full) {
    for (const name of Object.keys(sections)) {
      const gone = Object.keys(sections[name]).filter((key) => !Object.hasOwn(message.sections[name] ?? {}, key));
      for (const key of gone) change(name, key, null);
    }
  }
  for (const [name, news] of Object.entries(message.sections)) {
    for (const [key, row] of Object.entries(news)) change(name, key, row);
  }
  joinLoads(message.sections);
  if (!isDue && changed.size) {
    isDue = true;
    requestAnimationFrame(drawAll);
  }
}

/** What is measured of links comes in rows of its own, since it changes most often; here it is part of the link. */
function joinLoads({ links = {}, loads = {} }) {
  for (const key of new Set([...Object.keys(links), ...Object.keys(loads)])) {
    const row = rows("links")[key];
    if (row) change("links", key, { ...row, measured: rows("loads")[key] ?? NOT_MEASURED });
  }
}

function change(section, key, row) {
  // Without a prototype: rows may have any name.
  const known = (sections[section] ??= Object.create(null));
  if (row === null) delete known[key];
  else known[key] = row;
  if (!changed.has(section)) changed.set(section, new Set());
  changed.get(section).add(key);
}

function drawAll() {
  const drawn = changed;
  changed = new Map();
  isDue = false;
  for (const [names, draw] of listeners) {
    if (names.some((name) => drawn.has(name))) draw(drawn);
  }
}
