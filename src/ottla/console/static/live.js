// Pages that move: each has one stream, which is closed while nobody sees the page.

const ROWS_MAX = 500;
const counted = (number) => number.toLocaleString("en");
const sized = (bytes) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
};

class Moving extends HTMLElement {
  connectedCallback() {
    this.place = "";
    this.isPaused = false;
    this.part("pause").addEventListener("click", () => this.isPaused ? this.resume() : this.pause());
    this.seen = () => {
      if (document.hidden) this.close();
      else if (!this.isPaused && !this.isOver) this.open();
    };
    document.addEventListener("visibilitychange", this.seen);
    this.open();
  }

  disconnectedCallback() {
    document.removeEventListener("visibilitychange", this.seen);
    this.close();
  }

  part(name) { return this.querySelector(`[data-${name}]`); }
  say(name, text) { this.part(name).textContent = text; }

  open() {
    if (this.stream) return;
    const address = new URL(this.dataset.stream, location.href);
    if (this.place) address.searchParams.set("from", this.place);
    if (this.end) address.searchParams.set("to", this.end);
    this.stream = new EventSource(address);
    this.stream.addEventListener(this.eventName, (event) => {
      this.place = event.lastEventId || this.place;
      const data = JSON.parse(event.data);
      this.add(data.rows);
      const trouble = this.part("trouble");
      trouble.hidden = !data.trouble;
      trouble.textContent = data.trouble ?? "";
      this.show(data);
    });
    this.stream.addEventListener("failed", (event) => {
      this.close();
      this.isOver = true;
      const trouble = this.part("trouble");
      trouble.hidden = false;
      trouble.textContent = JSON.parse(event.data).sentence;
      this.say("state", "Stopped");
    });
    this.stream.onerror = () => {
      // The browser would begin where the page began; we begin where we are.
      this.close();
      if (this.isPaused || this.isOver) return;
      this.say("state", "The connection was lost, trying again");
      setTimeout(() => { if (!this.isPaused && !document.hidden) this.open(); }, 2000);
    };
  }

  close() { this.stream?.close(); this.stream = null; }

  add(rows) {
    if (!rows) return;
    const body = this.querySelector("tbody");
    body.insertAdjacentHTML("afterbegin", rows);
    while (body.rows.length > ROWS_MAX) body.lastElementChild.remove();
    document.dispatchEvent(new CustomEvent("htmx:after:swap"));
  }
}

customElements.define("live-tail", class extends Moving {
  eventName = "records";
  before = { seen: 0, dropped: 0 };
  now = { seen: 0, dropped: 0 };

  show(data) {
    this.now = { seen: this.before.seen + data.seen, dropped: this.before.dropped + data.dropped };
    this.say("seen", counted(this.now.seen));
    this.say("dropped", counted(this.now.dropped));
    if (this.part("state").textContent !== "Live") this.say("state", "Live");
  }

  close() { super.close(); this.before = { ...this.now }; }

  pause() {
    this.isPaused = true;
    this.close();
    this.say("pause", "Resume");
    this.say("state", "Paused: what is written meanwhile is counted when you resume");
  }

  resume() { this.isPaused = false; this.say("pause", "Pause"); this.open(); }
});

customElements.define("record-search", class extends Moving {
  eventName = "report";
  before = { scanned: 0, bytes: 0 };
  now = { scanned: 0, bytes: 0 };
  found = 0;

  show(data) {
    this.end = data.to;
    this.found += data.found;
    this.now = { scanned: this.before.scanned + data.scanned, bytes: this.before.bytes + data.bytes };
    this.say("scanned", counted(this.now.scanned));
    this.say("bytes", sized(this.now.bytes));
    this.say("left", counted(data.left));
    this.say("found", counted(this.found));
    const all = this.now.scanned + data.left;
    this.querySelector("progress").value = all ? this.now.scanned / all : 1;
    if (data.state === "done") {
      this.isOver = true;
      this.close();
      this.part("pause").hidden = true;
      this.say("state", this.found ? "Everything was searched" : "Everything was searched, and nothing was found");
    } else if (data.state === "paused") {
      this.pause("Paused, because a page is full");
    } else {
      this.say("state", "Searching");
    }
  }

  close() { super.close(); this.before = { ...this.now }; }

  pause(reason = "Stopped: the rest was not searched") {
    this.isPaused = true;
    this.close();
    this.say("pause", "Resume");
    this.say("state", reason);
  }

  resume() { this.isPaused = false; this.say("pause", "Stop"); this.say("state", "Searching"); this.open(); }
});
