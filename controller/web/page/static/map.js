// The map: tiers of nodes, hosts at the bottom, and one line for all parallel cables of two nodes.
//
// It is drawn as SVG, so that nodes can be reached and read like anything else on the page. A change sets two
// attributes of the lines that it is about.

import { fitted, ruler } from "./labels.js";

const SPACE_NAME = "http://www.w3.org/2000/svg";
const MARGIN = 12;
const TOP = 30;
const TIER_HEIGHTS = [90, 200];
const BESIDES = 430;
const ROW_HEIGHT = 18;
const LEAST_SPACING = 15;
const MOST_ROWS = 8;
const LABEL_LEAST = 28;
const BOX_PADDING = 14;
const BOX_HEIGHTS = [26, 38];
const LINE_HEIGHT = 13;

function shape(tag, attributes, text) {
  const made = document.createElementNS(SPACE_NAME, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** What is written at the nodes of a tier: `of` has the lines by name, `width` and `height` are those of a switch. */
function tierLabels(tier, spacing, mayWrap, widthOf) {
  const isHosts = tier[0]?.[1] === "host";
  const most = spacing - (isHosts ? 6 : 6 + BOX_PADDING);
  const widest = Math.max(0, ...tier.map(([name]) => widthOf(name)));
  // All nodes of a tier have labels, or none has.
  const hasRoom = most >= Math.min(LABEL_LEAST, widest);
  const of = new Map(tier.map(([name]) => [name, hasRoom ? fitted(name, most, mayWrap, widthOf) : []]));
  const lines = [...of.values()];
  const needed = Math.max(0, ...lines.flat().map(widthOf));
  return {
    of,
    width: Math.max(10, Math.min(spacing - 6, Math.max(50, needed + BOX_PADDING))),
    height: BOX_HEIGHTS[lines.some((each) => each.length > 1) ? 1 : 0],
  };
}

/** The map of a fabric in a box. `onChoose` is called with a node's name, or with the two ends of a line. */
export class FabricMap {
  constructor(box, onChoose) {
    this.box = box;
    this.onChoose = onChoose;
    this.svg = shape("svg", { role: "group", "aria-label": "Map of the fabric. Arrow keys move between nodes, Enter shows one." });
    box.append(this.svg);
    this.nodes = new Map();
    this.lines = new Map();
    this.lineOf = new Map();
    this.fabric = null;
    this.width = 0;
    this.svg.addEventListener("keydown", (event) => this.#move(event));
    new ResizeObserver(() => this.#resize()).observe(box);
  }

  /** Draw another fabric. */
  draw(fabric) {
    this.fabric = fabric;
    this.lines = new Map();
    this.lineOf = new Map();
    for (const [cable, [one, other]] of Object.entries(fabric?.cables ?? {})) {
      const key = JSON.stringify([one, other].sort());
      if (!this.lines.has(key)) this.lines.set(key, { ends: [one, other], cables: [] });
      this.lines.get(key).cables.push(cable);
      this.lineOf.set(cable, key);
    }
    this.width = 0;
    this.#resize();
  }

  /** Give a line its heat (0 to 4), whether its cables are used (all, some, none, partly drained, drained), and words. */
  heat(key, heat, used, words) {
    const line = this.lines.get(key);
    if (!line?.path) return;
    if (line.heat !== heat) line.path.setAttribute("data-heat", (line.heat = heat));
    if (line.used !== used) {
      line.path.setAttribute("data-used", (line.used = used));
      line.cross.setAttribute("visibility", used === "none" || used === "some" ? "visible" : "hidden");
    }
    if (line.words !== words) line.title.textContent = line.words = words;
  }

  /** Say how a node is: a sign beside it where something is wrong, dots around it where it is drained, and words. */
  mark(name, isGood, isDrained, words) {
    const node = this.nodes.get(name);
    if (!node) return;
    node.group.setAttribute("data-drained", String(isDrained));
    node.group.setAttribute("data-good", String(isGood));
    node.group.setAttribute("aria-label", `${node.kind} ${name}${words ? `: ${words}` : ""}`);
    node.title.textContent = words ? `${name}: ${words}` : name;
  }

  /** Show only these cables in full; null: all. */
  light(cables) {
    this.lit = cables;
    const keys = cables && new Set(cables.map((cable) => this.lineOf.get(String(cable))));
    this.svg.classList.toggle("dimmed", Boolean(keys));
    for (const [key, line] of this.lines) line.path?.classList.toggle("lit", Boolean(keys?.has(key)));
  }

  select(names) {
    this.selected = names;
    for (const [name, node] of this.nodes) node.group.setAttribute("aria-pressed", String(names.length === 1 && names[0] === name));
  }

  #resize() {
    const width = Math.floor(this.box.clientWidth);
    if (!width || width === this.width) return;
    this.width = width;
    const focused = document.activeElement?.closest?.("[data-node]")?.dataset.node;
    this.#place();
    if (focused) this.nodes.get(focused)?.group.focus();
    this.light(this.lit ?? null);
    this.box.dispatchEvent(new CustomEvent("drawn"));
  }

  #place() {
    const tiers = this.fabric?.tiers ?? [];
    this.places = new Map();
    const hosts = tiers[0]?.length ?? 0;
    const rows = Math.max(1, Math.min(MOST_ROWS, Math.ceil((LEAST_SPACING * hosts) / (this.width - 2 * MARGIN))));
    const widthOf = ruler(this.svg);
    const [least, most] = TIER_HEIGHTS;
    const tierHeight = Math.max(least, Math.min(most, (innerHeight - BESIDES) / Math.max(1, tiers.length - 1)));
    const bottom = TOP + (tiers.length - 1) * tierHeight;
    tiers.forEach((tier, number) => {
      const columns = number ? tier.length : Math.ceil(tier.length / rows);
      const spacing = (this.width - 2 * MARGIN) / Math.max(1, columns);
      const labels = tierLabels(tier, spacing, number > 0 || rows === 1, widthOf);
      tier.forEach(([name, kind], at) => {
        const column = number ? at : Math.floor(at / rows);
        const row = number ? 0 : at % rows;
        this.places.set(name, {
          kind,
          spacing,
          tier: number,
          at,
          labels,
          x: MARGIN + spacing * (column + 0.5),
          y: bottom - number * tierHeight + row * ROW_HEIGHT,
        });
      });
    });
    const height = tiers.length ? bottom + rows * ROW_HEIGHT + 40 : 0;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(this.#lineShapes(), this.#nodeShapes());
  }

  #lineShapes() {
    const group = shape("g", { class: "lines", "aria-hidden": "true" });
    for (const line of this.lines.values()) {
      const [from, to] = line.ends.map((end) => this.places.get(end));
      const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
      let way = `M${from.x} ${from.y}L${to.x} ${to.y}`;
      if (from.tier === to.tier) {
        const bend = middle.y - 46;
        way = `M${from.x} ${from.y}Q${middle.x} ${bend} ${to.x} ${to.y}`;
        middle.y = (middle.y + bend) / 2;
      }
      line.path = shape("path", { d: way, "data-heat": 0, "data-used": "all" });
      line.title = shape("title", {});
      line.cross = shape("text", { x: middle.x, y: middle.y + 5, class: "cross", visibility: "hidden" }, "✕");
      line.heat = line.used = line.words = undefined;
      line.path.append(line.title);
      line.path.addEventListener("click", () => this.onChoose(line.ends));
      group.append(line.path, line.cross);
    }
    return group;
  }

  #nodeShapes() {
    const group = shape("g", { class: "nodes" });
    this.nodes = new Map();
    for (const [name, place] of this.places) {
      const isHost = place.kind === "host";
      const node = shape("g", { class: `node ${place.kind}`, role: "button", tabindex: "-1", "data-node": name, "aria-pressed": "false" });
      const title = shape("title", {});
      const { width, height } = place.labels;
      const mark = isHost
        ? shape("circle", { cx: place.x, cy: place.y, r: Math.max(3, Math.min(7, place.spacing / 3)) })
        : shape("rect", { x: place.x - width / 2, y: place.y - height / 2, width, height, rx: 6 });
      node.append(title, mark);
      const lines = place.labels.of.get(name);
      const first = isHost ? 21 : 4.5 - ((lines.length - 1) * LINE_HEIGHT) / 2;
      lines.forEach((line, at) => node.append(shape("text", { x: place.x, y: place.y + first + at * LINE_HEIGHT }, line)));
      const beside = isHost ? { x: place.x + 8, y: place.y - 8 } : { x: place.x + width / 2 + 7, y: place.y + 6 };
      node.append(shape("text", { ...beside, class: "sign" }, "!"));
      node.addEventListener("click", () => this.#choose(name));
      node.addEventListener("focus", () => this.#hold(name));
      group.append(node);
      this.nodes.set(name, { group: node, title, kind: place.kind === "ordinary" ? "ordinary switch" : place.kind });
      this.mark(name, true, false, "");
    }
    this.#hold(this.selected?.length === 1 && this.nodes.has(this.selected[0]) ? this.selected[0] : this.places.keys().next().value);
    this.select(this.selected ?? []);
    return group;
  }

  #choose(name) {
    this.#hold(name);
    this.onChoose([name]);
  }

  /** Have one node be where Tab leads. */
  #hold(name) {
    if (this.held) this.nodes.get(this.held)?.group.setAttribute("tabindex", "-1");
    this.nodes.get(name)?.group.setAttribute("tabindex", "0");
    this.held = name;
  }

  #move(event) {
    const name = event.target.closest("[data-node]")?.dataset.node;
    if (!name) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#choose(name);
      return;
    }
    const place = this.places.get(name);
    const next = this.#neighbour(place, event.key);
    if (!next) return;
    event.preventDefault();
    this.nodes.get(next).group.focus();
  }

  #neighbour(place, key) {
    const tiers = this.fabric.tiers;
    if (key === "ArrowLeft" || key === "ArrowRight") return tiers[place.tier][place.at + (key === "ArrowLeft" ? -1 : 1)]?.[0];
    if (key !== "ArrowUp" && key !== "ArrowDown") return null;
    const tier = tiers[place.tier + (key === "ArrowUp" ? 1 : -1)];
    const distance = (name) => Math.abs(this.places.get(name).x - place.x);
    return tier?.map(([name]) => name).sort((one, other) => distance(one) - distance(other))[0];
  }
}

