// The view of the fabric: what is up at a glance, the map with its colours, and details of what is chosen there.

import { jobButton } from "./jobs.js";
import { onShowCables } from "./explain.js";
import { isFailed, loadOf, reason, stateMark } from "./links.js";
import { FabricMap } from "./map.js";
import { follow, now, rows } from "./state.js";
import { conditionMark } from "./switches.js";
import { goTo } from "./views.js";
import { age, clockTime, count, counted, element, named, percent, quantity, setText } from "./words.js";

const HEATS = [0.01, 0.3, 0.6, 0.9];
const LOAD_WORDS = ["under 1 %", "1 to 30 %", "30 to 60 %", "60 to 90 %", "90 % and more"];
const INTENSITY_WORDS = ["no job", "up to 30 % of the highest", "30 to 60 %", "60 to 90 %", "the highest"];
const MOST_LISTED = 40;
const FULLEST = 5;
const NEWEST = 5;

const details = document.getElementById("details");
const key = document.getElementById("key");
const clearPath = document.getElementById("clear-path");
const summary = document.getElementById("summary");
const tiles = new Map();
let map;
let chosen = [];
let detailsAs = "";
let colour = "load";

const heatOf = (share) => HEATS.filter((limit) => share >= limit).length;

export function setUpFabric() {
  map = new FabricMap(document.getElementById("map"), choose);
  map.box.addEventListener("drawn", () => {
    drawLines(null);
    drawNodes();
  });
  follow(["map"], () => {
    map.draw(rows("map").fabric);
    drawLines(null);
    drawNodes();
    drawDetails();
  });
  follow(["links"], (changed) => drawLines(changed.get("links")));
  follow(["switches", "drains"], drawNodes);
  const section = document.getElementById("fabric");
  const drawTexts = () => {
    if (section.hidden) return;
    drawSummary();
    drawDetails();
  };
  follow(["links", "switches", "jobs", "drains", "pins", "map", "events"], drawTexts);
  document.addEventListener("view", drawTexts);
  for (const choice of document.querySelectorAll("input[name=colour]")) {
    choice.addEventListener("change", () => {
      colour = choice.value;
      drawKey();
      drawLines(null);
    });
  }
  onShowCables((name, cables) => {
    map.light(cables);
    clearPath.textContent = `Show all cables, not only those of ${name.slice(0, 40)}`;
    clearPath.hidden = false;
    goTo("fabric");
  });
  clearPath.addEventListener("click", () => {
    map.light(null);
    clearPath.hidden = true;
  });
  drawKey();
}

function choose(names) {
  chosen = names;
  map.select(names);
  detailsAs = "";
  drawDetails();
}

function drawKey() {
  const words = colour === "load" ? LOAD_WORDS : INTENSITY_WORDS;
  const items = words.map((text, heat) => element("li", {}, element("span", { class: "swatch", "data-heat": heat, "aria-hidden": "true" }), text));
  const failed = element("li", {}, element("span", { class: "swatch unused", "aria-hidden": "true", text: "✕" }), "failed");
  const drained = element("li", {}, element("span", { class: "swatch drained", "aria-hidden": "true" }), "drained");
  key.replaceChildren(...items, failed, drained);
  document.getElementById("map").dataset.colour = colour;
}

/** Colour the lines of these cables; null: of all. By intensity all change where the highest does. */
function drawLines(changed) {
  const links = rows("links");
  const highest = colour === "intensity" ? Math.max(0, ...Object.values(links).map((row) => row.intensity)) : 0;
  const keys = changed && colour === "load" ? new Set([...changed].map((cable) => map.lineOf.get(cable))) : map.lines.keys();
  for (const name of keys) {
    const line = map.lines.get(name);
    if (!line) continue;
    const known = line.cables.map((cable) => links[cable]).filter(Boolean);
    if (!known.length) continue;
    const share = Math.max(...known.map((row) => loadOf(row).share));
    const intensity = Math.max(...known.map((row) => row.intensity));
    const unused = known.filter((row) => row.state).length;
    const failed = known.filter(isFailed).length;
    const heat = colour === "load" ? heatOf(share) : intensity ? Math.max(1, heatOf(intensity / highest)) : 0;
    const lost = (failed ? `, ${failed} failed` : "") + (unused > failed ? `, ${unused - failed} drained` : "");
    map.heat(name, heat, usedAs(known.length, unused, failed), `${line.ends.join(" – ")}: ${counted(known.length, "cable")}${lost}, ${percent(share)}, intensity ${quantity(intensity)}`);
  }
}

/** How many of a line's cables are used, as the style sheet has it. */
function usedAs(cables, unused, failed) {
  if (!unused) return "all";
  if (failed) return unused === cables ? "none" : "some";
  return unused === cables ? "drained" : "partly drained";
}

function drawNodes() {
  const drains = rows("drains");
  for (const [name, { kind }] of map.nodes) {
    const row = rows("switches")[name];
    const isDrained = Boolean(drains[`${kind === "host" ? "host" : "switch"} ${name}`]);
    const words = [row?.condition, isDrained && "drained"].filter(Boolean).join(", ");
    map.mark(name, !row || row.condition === "caught up", isDrained, words);
  }
}

function tile(name, view, words, value, isBad) {
  if (!tiles.has(name)) {
    const number = element("strong");
    const label = element("span");
    const link = element("a", { href: `#${view}` }, number, label);
    tiles.set(name, { number, label, link });
    summary.append(element("li", {}, link));
  }
  const { number, label, link } = tiles.get(name);
  setText(number, value);
  setText(label, words);
  link.classList.toggle("bad", isBad);
}

function drawSummary() {
  const links = Object.values(rows("links"));
  const switches = Object.values(rows("switches"));
  const jobs = Object.values(rows("jobs"));
  const failed = links.filter(isFailed).length;
  const drained = links.filter((row) => row.state === "drained").length;
  const troubled = switches.filter((row) => row.condition !== "caught up").length;
  tile("jobs", "jobs", "jobs", count(jobs.length), false);
  tile("waiting", "jobs", "jobs that wait for others", count(jobs.filter((row) => row.goes_before?.[1]).length), false);
  tile("fullest", "links", "on the fullest cable", percent(Math.max(0, ...links.map((row) => loadOf(row).share))), false);
  tile("failed", "links", "cables failed", (failed ? "✕ " : "") + count(failed), failed > 0);
  tile("switches", "switches", "switches not caught up", (troubled ? "✕ " : "") + count(troubled), troubled > 0);
  tile("drains", "switches", drained ? `drained, ${counted(drained, "cable")}` : "drained", count(Object.keys(rows("drains")).length), false);
  tile("pins", "switches", "pinned", count(Object.keys(rows("pins")).length), false);
}

function drawDetails() {
  if (details.contains(document.activeElement) && document.activeElement !== details && detailsAs) return;
  const [one, other] = chosen;
  const parts = chosen.length === 2 ? lineParts(one, other) : chosen.length ? nodeParts(one) : generalParts();
  const text = parts.map((part) => part.textContent).join("\n");
  if (text === detailsAs) return;
  detailsAs = text;
  details.replaceChildren(...parts);
}

function generalParts() {
  const { fabric } = rows("map");
  const parts = [element("h3", { text: "The fullest cables" })];
  const fullest = Object.values(rows("links")).sort((first, second) => loadOf(second).share - loadOf(first).share);
  parts.push(cableList(fullest.slice(0, FULLEST)));
  parts.push(element("p", { class: "hint", text: "Choose a node or a cable of the map to see more." }));
  const newest = Object.entries(rows("events")).sort(([one], [other]) => other - one).slice(0, NEWEST);
  if (newest.length) parts.push(element("h3", { text: "The newest events" }), element("ul", { class: "cables" }, ...newest.map(eventItem)));
  if (fabric?.hosts_left_out) parts.push(element("p", { class: "hint", text: `The map has no room for ${counted(fabric.hosts_left_out, "host")}.` }));
  if (fabric?.cables_left_out) parts.push(element("p", { class: "hint", text: `${counted(fabric.cables_left_out, "cable")} are not drawn.` }));
  return parts;
}

function eventItem([, row]) {
  return element("li", {}, element("span", { class: "hint", text: `${clockTime(row.time_s)} ` }), element("bdi", { text: row.message }));
}

function nodeParts(name) {
  const status = rows("switches")[name];
  const parts = [element("h3", {}, named(name))];
  if (status) {
    parts.push(element("p", {}, conditionMark(status.condition), ` for ${age(now() - status.since_s)}`));
    if (status.problem) parts.push(element("p", { class: "problem", text: status.problem }));
    parts.push(element("p", { text: `${count(status.rules)} rules for flows, ${count(status.planned_rules)} planned` }));
  }
  const jobs = Object.entries(rows("jobs")).filter(([, row]) => row.hosts.includes(name));
  if (jobs.length) {
    parts.push(element("h4", { text: counted(jobs.length, "job") }));
    parts.push(element("ul", { class: "names" }, ...jobs.slice(0, MOST_LISTED).map(([job]) => element("li", {}, jobButton(job)))));
  }
  parts.push(...cableParts((ends) => ends.includes(name)));
  return parts;
}

function lineParts(one, other) {
  return [
    element("h3", {}, named(one), " – ", named(other)),
    ...cableParts((ends) => ends.includes(one) && ends.includes(other)),
  ];
}

function cableParts(isWanted) {
  const cables = Object.entries(rows("map").fabric?.cables ?? {}).filter(([, [one, other]]) => isWanted([one, other]));
  const links = cables.map(([cable]) => rows("links")[cable]).filter(Boolean);
  const parts = [element("h4", { text: counted(links.length, "cable") }), cableList(links.slice(0, MOST_LISTED))];
  if (links.length > MOST_LISTED) parts.push(element("p", { class: "hint", text: `and ${count(links.length - MOST_LISTED)} more` }));
  return parts;
}

function cableList(links) {
  const items = links.map((row) => {
    const { share, isMeasured } = loadOf(row);
    const words = row.state ? reason(row) : `${percent(share)} ${isMeasured ? "measured" : "planned"}, ${counted(row.jobs, "job")}`;
    return element("li", {}, named(row.name), element("div", {}, row.state ? stateMark(row) : "", ` ${words}`));
  });
  return element("ul", { class: "cables" }, ...items);
}
