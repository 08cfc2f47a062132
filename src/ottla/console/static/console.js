// What all pages share: themes, time zones, copying, keys, and the palette. Pages work without it.

const kept = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* It holds for this page then. */ } },
};
const $ = (selector, from = document) => from.querySelector(selector);
const say = (text) => { $("#said").textContent = text; };

// Themes

const themes = ["auto", "light", "dark"];

function showTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("[data-theme-name]").textContent = name[0].toUpperCase() + name.slice(1);
}

function nextTheme() {
  const now = themes.indexOf(kept.get("ottla-theme") ?? "auto");
  const next = themes[(now + 1) % themes.length];
  kept.set("ottla-theme", next);
  showTheme(next);
}

// Times: the server writes them in UTC, and the zone is always beside them.

const two = (number) => String(number).padStart(2, "0");
const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function localText(moment) {
  const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" })
    .formatToParts(moment).find((part) => part.type === "timeZoneName").value;
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} `
    + `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.`
    + `${String(moment.getMilliseconds()).padStart(3, "0")} ${zone}`;
}

function showTimes(from = document) {
  const isLocal = kept.get("ottla-zone") === "local";
  for (const element of from.querySelectorAll("time[datetime]")) {
    const iso = element.getAttribute("datetime");
    const text = isLocal ? localText(new Date(iso)) : iso.replace("T", " ").replace("Z", " UTC");
    if (element.textContent !== text) element.textContent = text;
  }
  $("[data-zone-name]").textContent = isLocal ? localZone : "UTC";
}

function nextZone() {
  kept.set("ottla-zone", kept.get("ottla-zone") === "local" ? "utc" : "local");
  showTimes();
}

// The palette

const palette = $("dialog.palette");
let asking = 0;

function pages() {
  return [...document.querySelectorAll(".side a")]
    .map((link) => ({ kind: "page", name: link.textContent.trim(), url: link.getAttribute("href") }));
}

function choose(place) {
  const items = [...palette.querySelectorAll("li")];
  items.forEach((item, at) => item.setAttribute("aria-selected", String(at === place)));
  items[place]?.scrollIntoView({ block: "nearest" });
  const input = $("input", palette);
  if (items[place]) input.setAttribute("aria-activedescendant", items[place].id);
  else input.removeAttribute("aria-activedescendant");
}

const chosen = () => [...palette.querySelectorAll("li")].findIndex((one) => one.ariaSelected === "true");

function fill(found) {
  const list = $("ul", palette);
  list.replaceChildren(...found.map((one, at) => {
    const item = document.createElement("li");
    item.id = `found-${at}`;
    item.setAttribute("role", "option");
    item.dataset.url = one.url;
    const kind = document.createElement("span");
    kind.textContent = one.kind;
    item.append(one.name, kind);
    return item;
  }));
  choose(0);
}

async function look() {
  const text = $("input", palette).value.trim();
  const mine = ++asking;
  const near = pages().filter((one) => one.name.toLowerCase().includes(text.toLowerCase()));
  if (!text) { fill(near); return; }
  const answer = await fetch(`${document.body.dataset.search}?q=${encodeURIComponent(text)}`);
  const found = answer.ok ? await answer.json() : [];
  if (mine === asking) fill([...near, ...found]);
}

function openPalette() {
  if (!document.body.dataset.search || palette.open) return;
  $("input", palette).value = "";
  palette.showModal();
  look();
}

function go(item) { if (item) location.assign(item.dataset.url); }

palette.addEventListener("input", () => setTimeout(look, 80));
palette.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
  else go(event.target.closest("li"));
});
palette.addEventListener("keydown", (event) => {
  const count = palette.querySelectorAll("li").length;
  if (event.key === "ArrowDown" && count) choose((chosen() + 1) % count);
  else if (event.key === "ArrowUp" && count) choose((chosen() + count - 1) % count);
  else if (event.key === "Enter") go(palette.querySelectorAll("li")[chosen()]);
  else return;
  event.preventDefault();
});

// Keys

const isTyping = (element) => element.closest("input, textarea, select, dialog[open]") !== null;
let before = "";

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const sides = { o: 0, t: "topics", g: "groups" };
  if (before === "g" && event.key in sides) {
    const links = [...document.querySelectorAll(".side a")];
    const wanted = links.find((link) => link.getAttribute("href").endsWith(`/${sides[event.key]}`)) ?? links[0];
    before = "";
    if (wanted) location.assign(wanted.href);
    return;
  }
  before = event.key;
  if (event.key === "/") openPalette();
  else if (event.key === "?") $("dialog.keyboard").showModal();
  else if (event.key === "u") nextZone();
  else if (event.key === "d") nextTheme();
  else return;
  event.preventDefault();
});

// Clicks

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("palette" in button.dataset) openPalette();
  else if ("zone" in button.dataset) nextZone();
  else if ("themeSwitch" in button.dataset) nextTheme();
  else if ("copy" in button.dataset) {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }
});

// A filter that is changed begins at the first page, and empty fields need not be in the address.
document.addEventListener("htmx:config:request", (event) => {
  const request = event.detail.ctx.request;
  if (request.method !== "GET") request.headers["X-Console-Token"] = document.body.dataset.token ?? "";
});
document.addEventListener("htmx:after:swap", () => showTimes());

showTheme(kept.get("ottla-theme") ?? "auto");
showTimes();

// A file is read here and sent as text, so that it can be looked at before it is written.
document.addEventListener("change", async (event) => {
  if (!("file" in event.target.dataset) || !event.target.files.length) return;
  const file = event.target.files[0];
  const form = event.target.closest("form");
  $("[data-from-file]", form).value = await file.text();
  if (file.name.endsWith(".csv")) $("select[name=form]", form).value = "csv";
});
