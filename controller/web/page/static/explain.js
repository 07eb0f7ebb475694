// The explanation of a job or a flow, in the words of `trainyard explain`.

import { rows } from "./state.js";
import { clockTime, counted, element, named, quantity } from "./words.js";

const dialog = document.getElementById("explanation");
const title = document.getElementById("explanation-title");
const body = document.getElementById("explanation-body");
let showCables = () => {};
let asked = 0;

/** Have `show(name, cables)` show the cables of what is explained on the map. */
export function onShowCables(show) {
  showCables = show;
}

/** Explain a job, or a flow named JOB/GROUP/NUMBER. */
export async function explain(name) {
  const number = (asked += 1);
  title.replaceChildren(named(name));
  body.replaceChildren(element("p", { class: "hint", text: "Asking the controller…" }));
  if (!dialog.open) dialog.showModal();
  let parts;
  try {
    const answer = await fetch(`/page/explain?name=${encodeURIComponent(name)}`);
    parts = answer.ok ? explanation(await answer.json()) : [element("p", { class: "problem", text: (await answer.text()).trim() })];
  } catch {
    parts = [element("p", { class: "problem", text: "The controller does not answer." })];
  }
  if (number === asked) body.replaceChildren(...parts);
}

function explanation(answer) {
  const lines = answer.lines.map((line) => element("p", { class: line.startsWith("  ") ? "indented" : "", text: line }));
  const parts = [element("div", { class: "lines" }, ...lines)];
  if (answer.cables.length) {
    const show = () => {
      dialog.close();
      showCables(answer.name, answer.cables);
    };
    const text = `Show its ${counted(answer.cables.length, "cable")} on the map`;
    parts.unshift(element("p", {}, element("button", { type: "button", text, onclick: show })));
  }
  if (answer.flows) parts.push(...flowParts(answer));
  else parts.push(back(answer.name.split("/")[0]));
  return parts;
}

function flowParts(answer) {
  if (!answer.flows.length) return [];
  const items = answer.flows.map((flow) =>
    element(
      "li",
      {},
      element("button", { type: "button", class: "link", onclick: () => explain(flow.name) }, named(flow.label)),
      ` level ${flow.level}, ${quantity(flow.bytes, "B")}, ${chosenBy(flow)}: ${flow.path}`,
    ),
  );
  const all = answer.num_flows > items.length ? `the first ${items.length} of ${answer.num_flows}` : counted(items.length, "flow");
  return [element("h3", { text: `Flows: ${all}` }), element("ul", { class: "flows" }, ...items)];
}

function chosenBy(flow) {
  if (flow.cut_off) return "cut off";
  const pin = rows("pins")[flow.name];
  if (pin && !pin.problem) return `pinned${pin.by ? ` by ${pin.by}` : ""} until ${clockTime(pin.until_s)}`;
  return flow.steered ? "by the Plan" : "by hash";
}

function back(job) {
  return element("p", {}, element("button", { type: "button", class: "link", onclick: () => explain(job) }, "Explain its job ", named(job)));
}
