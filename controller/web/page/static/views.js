// Which view is shown, by the address; keys; the theme.

const THEMES = ["system", "light", "dark"];
const sections = [...document.querySelectorAll("section.view")];
const links = [...document.querySelectorAll("#views a")];
const theme = document.getElementById("theme");
let isLeading = false;

/** Show the view that the address names, or none while the controller does not lead. */
export function showViews(leads) {
  isLeading = leads;
  document.getElementById("views").hidden = !leads;
  show();
}

export function goTo(view) {
  location.hash = `#${view}`;
}

function show() {
  const wanted = location.hash.slice(1);
  const current = sections.some((section) => section.id === wanted) ? wanted : sections[0].id;
  for (const section of sections) section.hidden = !isLeading || section.id !== current;
  for (const link of links) {
    if (link.hash === `#${current}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.dispatchEvent(new CustomEvent("view", { detail: current }));
}

function setTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.textContent = `Theme: ${name}`;
}

function storedTheme() {
  const stored = localStorage.getItem("theme");
  return THEMES.includes(stored) ? stored : "system";
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(storedTheme()) + 1) % THEMES.length];
  localStorage.setItem("theme", next);
  setTheme(next);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) {
    if (event.key === "Escape" && event.target.closest("input")) event.target.blur();
    return;
  }
  const number = Number(event.key);
  if (isLeading && number >= 1 && number <= links.length) goTo(links[number - 1].hash.slice(1));
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "/") {
    const filter = document.querySelector("section.view:not([hidden]) input.filter");
    if (!filter) return;
    filter.focus();
    event.preventDefault();
  }
}

export function setUpViews() {
  setTheme(storedTheme());
  theme.addEventListener("click", nextTheme);
  document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
  addEventListener("hashchange", () => {
    show();
    document.getElementById("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  });
  addEventListener("keydown", pressed);
  for (const button of document.querySelectorAll("dialog [data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
}
