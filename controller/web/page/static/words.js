// Elements, and numbers and times in words. Text is only ever set as text.

const NOTHING = "–";
const SPACE = "\u00a0";
const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** Make an element. `class`, `text`, listeners (`onclick`) and attributes come by name; children are nodes or text. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A name that others have chosen: cut off by the style sheet where it is long, and in a direction of its own. */
export function named(name) {
  return element("bdi", { class: "name", title: name, text: name });
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function percent(share) {
  return share === null || share === undefined ? NOTHING : `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)}${SPACE}%`;
}

export function count(number) {
  return number === null || number === undefined ? NOTHING : number.toLocaleString("en");
}

export function counted(number, one, many = `${one}s`) {
  return `${count(number)}${SPACE}${number === 1 ? one : many}`;
}

/** Three digits, with a prefix from a thousand on, as the command line has it. */
export function quantity(value, unit = "") {
  if (value === null || value === undefined) return NOTHING;
  let magnitude = 0;
  while (Math.abs(value) >= 999.5 && magnitude + 1 < PREFIXES.length) {
    value /= 1000;
    magnitude += 1;
  }
  const digits = String(Number(value.toPrecision(3)));
  const suffix = PREFIXES[magnitude] + unit;
  return suffix ? `${digits}${SPACE}${suffix}` : digits;
}

export function seconds(time) {
  if (time === null || time === undefined) return NOTHING;
  return `${time < 10 ? time.toFixed(3) : time.toFixed(1)}${SPACE}s`;
}

/** An age: 12 s, 3 min, 2 h, 5 d. */
export function age(length) {
  const whole = Math.max(0, Math.round(length));
  if (whole < 90) return `${whole}${SPACE}s`;
  if (whole < 5400) return `${Math.round(whole / 60)}${SPACE}min`;
  if (whole < 172800) return `${Math.round(whole / 3600)}${SPACE}h`;
  return `${Math.round(whole / 86400)}${SPACE}d`;
}

export function clockTime(unixSeconds) {
  return new Date(unixSeconds * 1000).toLocaleTimeString("en-GB");
}

export function compareNames(one, other) {
  return one.localeCompare(other, "en", { numeric: true });
}
