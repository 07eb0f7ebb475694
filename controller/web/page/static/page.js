// The page of a controller: who looks signs in, then it follows what the controller sends.

import { setUpEvents } from "./events.js";
import { setUpFabric } from "./fabric.js";
import { setUpJobs } from "./jobs.js";
import { isFailed, setUpLinks } from "./links.js";
import { setUpPins } from "./pins.js";
import { setUpPlans } from "./plans.js";
import { askForToken, showSession, whoLooks } from "./session.js";
import { follow, rows } from "./state.js";
import { followController } from "./stream.js";
import { setUpSwitches } from "./switches.js";
import { setUpViews, showViews } from "./views.js";
import { clockTime, count, setText } from "./words.js";

const banner = document.getElementById("banner");
const about = document.getElementById("about");
const standby = document.getElementById("standby");
const standbyWords = document.getElementById("standby-words");
let lostAt = null;

function onLost() {
  lostAt ??= Date.now() / 1000;
  setText(banner, `No connection to the controller since ${clockTime(lostAt)}. What you see is from then; trying again.`);
}

function onBack() {
  lostAt = null;
  drawProblems();
}

function drawProblems() {
  if (lostAt !== null) return;
  const { policy_problem: policy, database_problem: database, paused } = rows("controller").now ?? {};
  const problems = [];
  if (paused) problems.push(pauseWords(paused));
  if (policy) problems.push(`The policy made no Plan: ${policy}.`);
  if (database) problems.push(`The database fails: ${database}.`);
  setText(banner, problems.join(" "));
}

function pauseWords({ since_s: since, by, reason, released }) {
  const what = released ? "All rules are released, and planning is paused" : "Planning is paused";
  const words = `${what} since ${clockTime(since)}${by ? ` by ${by}` : ""}${reason ? `: ${reason}` : ""}`;
  return /[.?!]$/.test(words) ? words : `${words}.`;
}

function drawController() {
  const controller = rows("controller").now;
  if (!controller) return;
  const leads = controller.standby === null;
  standby.hidden = leads;
  if (!leads) {
    setText(standbyWords, `${controller.standby ? `Who leads: ${controller.standby}.` : "Who leads is not known."} This page goes on by itself once this one leads.`);
    setText(about, "stands by");
  } else {
    const parts = [
      controller.name && `${controller.name}, term ${controller.term}`,
      `policy ${controller.policy}`,
      controller.reloading && `reloading: ${controller.reloading}`,
      controller.plan ? `Plan ${count(controller.plan)}, ${clockTime(controller.planned_s)}` : "no Plan yet",
    ];
    setText(about, parts.filter(Boolean).join(" · "));
  }
  if (leads === document.getElementById("views").hidden) showViews(leads);
  drawProblems();
}

function drawCounts() {
  const bad = {
    links: Object.values(rows("links")).filter(isFailed).length,
    switches: Object.values(rows("switches")).filter((row) => row.condition !== "caught up").length,
  };
  for (const node of document.querySelectorAll("[data-count]")) {
    const section = node.dataset.count;
    const troubles = bad[section] ?? 0;
    setText(node, troubles ? `${count(troubles)} ✕` : count(Object.keys(rows(section)).length));
    node.classList.toggle("bad", troubles > 0);
  }
}

async function start() {
  let visitor = null;
  while (!visitor) {
    try {
      visitor = await whoLooks();
    } catch {
      onLost();
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
  setText(banner, "");
  lostAt = null;
  if (visitor.refusal) visitor = await askForToken("");
  showSession(visitor);
  followController({ onLost, onBack, onRefused: () => location.reload() });
}

setUpViews();
setUpFabric();
setUpJobs();
setUpLinks();
setUpSwitches();
setUpPins();
setUpPlans();
setUpEvents();
follow(["controller"], drawController);
follow(["jobs", "links", "switches"], drawCounts);
start();
