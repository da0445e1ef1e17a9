// The stage: recordings in lockstep, as events, brightness, cloud, timeline and curves, all at the same step.

import { whole } from "./address.js";
import { Cloud, firstLook } from "./cloud.js";
import { captioned, heading } from "./caption.js";
import { Curves } from "./curves.js";
import { element, make } from "./dom.js";
import { arranged, lay } from "./layout.js";
import { sum } from "./recording.js";
import { Timeline } from "./timeline.js";
import { brightnessPane, eventPane } from "./video.js";

const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120, 240, 1000]; // steps per second
const PANES = ["events", "brightness", "cloud"];
const GAP = 8, CAPTION = 24; // units of the page: between pictures, and of the words above them
const SMALL = window.matchMedia("(max-width: 900px)"); // where the form stands below the pictures
const TIGHT = window.matchMedia("(max-width: 900px), (max-height: 640px)"); // where there is no room for the curves

export class Player {
  // `chosen(k)` is called when the k-th of several recordings is clicked.
  constructor(state, changed, chosen) {
    Object.assign(this, { changed, recordings: [], main: 0, playing: false });
    this.step = whole(state, "step", 0);
    this.isChosen = "step" in state; // the step, by the user; until then it is one at which there is something to see
    this.speed = SPEEDS.includes(whole(state, "speed")) ? whole(state, "speed") : 20;
    const panes = PANES.filter((pane) => state.show?.[0].split(",").includes(pane));
    this.chosen = panes.length ? panes : null;
    this.hasCurves = { on: true, off: false }[state.curves?.[0]] ?? null;
    this.look = firstLook(state.look?.[0]);
    this.views = [];
    this.curves = new Curves(element("curves"));
    this.timeline = new Timeline(element("timeline"), element("peak"));
    element("outlines").checked = state.outlines?.[0] !== "off";
    element("speed").append(...SPEEDS.map((speed) => new Option(`${speed} steps/s`, speed, false, speed === this.speed)));
    this.#listen(chosen);
    const resized = new ResizeObserver(() => this.redraw());
    for (const part of ["views", "timeline", "curves"]) resized.observe(element(part));
  }

  #listen(chosen) {
    element("play").addEventListener("click", () => this.toggle());
    element("back").addEventListener("click", () => this.go(this.step - 1));
    element("forth").addEventListener("click", () => this.go(this.step + 1));
    element("scrub").addEventListener("input", (event) => this.go(Number(event.target.value)));
    element("speed").addEventListener("change", (event) => {
      this.speed = Number(event.target.value);
      this.changed();
    });
    element("outlines").addEventListener("change", () => this.redraw());
    for (const button of element("panes").querySelectorAll("[data-pane]")) {
      button.addEventListener("click", () => this.#choose(button.dataset.pane));
    }
    element("with-curves").addEventListener("click", () => {
      this.hasCurves = !this.showsCurves;
      this.#arrange();
      this.redraw();
    });
    TIGHT.addEventListener("change", () => this.#arrange());
    element("views").addEventListener("scroll", () => this.redraw());
    element("views").addEventListener("click", (event) => {
      const box = event.target.closest("figure");
      if (box && this.recordings.length > 2) chosen([...element("views").children].indexOf(box));
    });
  }

  // What of the stage is worth keeping in an address; nothing of it where it is as at first.
  state() {
    return {
      step: this.isChosen ? this.step : null,
      show: this.chosen && this.chosen.join(","),
      curves: this.hasCurves === null ? null : this.hasCurves ? "on" : "off",
      outlines: element("outlines").checked ? null : "off",
      speed: this.speed === 20 ? null : this.speed,
      look: this.look.toString() === firstLook().toString() ? null : this.look.toString(),
    };
  }

  // Shows a pane more or less, but never none.
  #choose(pane) {
    const panes = this.panes.includes(pane) ? this.panes.filter((each) => each !== pane) : [...this.panes, pane];
    if (!panes.length) return;
    this.chosen = PANES.filter((each) => panes.includes(each));
    this.#arrange();
    this.redraw();
  }

  // What is shown of each recording: several have room for their events only, unless the user says so. There is no
  // brightness where nobody knows it.
  get panes() {
    const panes = this.chosen ?? (this.recordings.length > 1 ? ["events"] : ["events", "cloud"]);
    const known = panes.filter((pane) => pane !== "brightness" || this.#hasTruth);
    return known.length ? known : ["events"];
  }

  get #hasTruth() {
    return this.recordings.some(({ has_truth }) => has_truth);
  }

  get #hasActors() {
    return this.recordings.some(({ actors }) => actors.length > 0);
  }

  get showsCurves() {
    return this.#hasActors && (this.hasCurves ?? !TIGHT.matches);
  }

  get steps() {
    return Math.max(1, ...this.recordings.map((recording) => recording.steps));
  }

  // The recording that is described, of those that are shown.
  get recording() {
    return this.recordings[this.main];
  }

  // Shows recordings, of which that of number `main` is described; the step stays where it is. `across` says how many
  // may lie beside each other, where not all numbers are as good.
  show(recordings, main = 0, across = []) {
    Object.assign(this, { recordings, main, across });
    element("scrub").max = this.steps - 1;
    this.#arrange();
    const step = Math.min(this.step, this.steps - 1);
    this.go(this.isChosen || isBusy(this.recording, step) ? step : firstBusyStep(this.recording), false);
  }

  #arrange() {
    const { panes, recordings } = this;
    for (const button of element("panes").querySelectorAll("[data-pane]")) {
      button.setAttribute("aria-pressed", panes.includes(button.dataset.pane));
      button.hidden = button.dataset.pane === "brightness" && !this.#hasTruth;
    }
    element("outlines").parentElement.hidden = element("with-curves").hidden = !this.#hasActors;
    element("with-curves").setAttribute("aria-pressed", this.showsCurves);
    element("curves").hidden = !this.showsCurves;
    while (this.views.length < recordings.length) {
      const box = make("figure"), caption = make("figcaption"), row = make("div");
      box.append(caption, row);
      this.views.push({ box, caption, row, events: eventPane(), brightness: brightnessPane(), cloud: new Cloud(this.look, () => this.redraw()) });
    }
    const views = this.views.slice(0, recordings.length);
    for (const view of views) if (view.panes !== String(panes)) {
      view.row.replaceChildren(...panes.map((pane) => view[pane].element));
      view.panes = String(panes);
    }
    views.forEach(({ box }, k) => box.classList.toggle("main", recordings.length > 2 && k === this.main));
    const shown = [...element("views").children];
    if (shown.length !== views.length) element("views").replaceChildren(...views.map(({ box }) => box));
    element("views").classList.toggle("many", recordings.length > 2);
    element("heading").textContent = recordings.length > 2 ? heading(recordings) : "";
    element("heading").hidden = !element("heading").textContent;
  }

  go(step, chosen = true) {
    if (chosen && this.playing) this.toggle();
    this.isChosen ||= chosen;
    this.step = Math.max(0, Math.min(this.steps - 1, step));
    this.redraw();
  }

  toggle() {
    this.playing = !this.playing;
    this.isChosen = true;
    element("play").classList.toggle("playing", this.playing);
    if (!this.playing) return;
    let last = performance.now(), due = 0;
    const tick = (now) => {
      if (!this.playing) return;
      due += ((now - last) / 1000) * this.speed;
      last = now;
      const whole = Math.floor(due);
      due -= whole;
      if (whole) this.go((this.step + whole) % this.steps, false);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  // Draws at the next frame, however often it is asked for until then.
  redraw() {
    this.changed();
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      if (this.recordings.length) this.draw();
    });
  }

  draw() {
    const { panes, recordings } = this, outlines = element("outlines").checked;
    this.#lay();
    const many = recordings.length > 2, classes = !many || new Set(recordings.map(({ shapes }) => String(shapes))).size > 1;
    recordings.forEach((recording, k) => {
      const { box, caption } = this.views[k], step = Math.min(this.step, recording.steps - 1);
      caption.replaceChildren(...captioned(recording, step, box.clientWidth, { many, classes }));
      if (isSeen(box)) for (const pane of panes) this.views[k][pane].show(recording, step, { outlines });
    });
    this.timeline.show(recordings, this.main, this.step);
    if (this.showsCurves) this.curves.show(recordings, this.main, this.step);
    const { first } = this.recording;
    element("scrub").value = this.step;
    element("step").textContent = `step ${first + this.step} / ${first + this.steps - 1}`;
  }

  // Gives all pictures their places; on a small screen the room is no higher than they are.
  #lay() {
    const { panes, recordings } = this, views = element("views");
    const { width, height } = recordings.reduce((one, other) => (other.width / other.height > one.width / one.height ? other : one));
    const measure = (pane, wide, high) => this.views[0][pane].picture({ width, height }, wide, high);
    views.style.height = "";
    const { paddingTop, paddingBottom, paddingLeft, paddingRight } = getComputedStyle(views);
    const [beside, above] = [[paddingLeft, paddingRight], [paddingTop, paddingBottom]].map(([one, other]) => parseFloat(one) + parseFloat(other));
    const room = { width: views.clientWidth - beside, height: views.clientHeight - above, gap: GAP, caption: CAPTION };
    const rows = this.views.slice(0, recordings.length).map(({ row }) => row);
    const arrangement = arranged(recordings.length, panes, room, measure, this.across);
    if (SMALL.matches && arrangement.high < room.height) views.style.height = `${arrangement.high + above}px`;
    lay(views, rows, arrangement);
  }
}

// The first step with about as many events as others have, noise not counted; in exact timing step 0 has none.
function firstBusyStep(recording) {
  const events = recording.counts.on.map((_, step) => seen(recording, step)), usual = sum(events) / recording.steps;
  return Math.max(0, events.findIndex((count) => count > 0 && count >= usual / 2));
}

const seen = ({ counts: { on, off, background } }, step) => on[step] + off[step] - background[step];
const isBusy = (recording, step) => step < recording.steps && seen(recording, step) > 0 && step >= firstBusyStep(recording);

// Whether a box is where the room shows it, and not scrolled away.
function isSeen(box) {
  const { top, bottom } = box.parentElement.getBoundingClientRect(), own = box.getBoundingClientRect();
  return own.bottom > top && own.top < bottom;
}
