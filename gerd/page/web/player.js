// The stage: one recording, or two in lockstep, as events, brightness, cloud, timeline and curves, all at the same step.

import { whole } from "./address.js";
import { Cloud, firstLook } from "./cloud.js";
import { Curves, Timeline } from "./curves.js";
import { element, make } from "./dom.js";
import { sum } from "./recording.js";
import { brightnessPane, eventPane } from "./video.js";

const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120, 240, 1000]; // steps per second
const PANES = ["events", "brightness", "cloud"];

export class Player {
  constructor(state, changed) {
    Object.assign(this, { changed, recordings: [], playing: false });
    this.step = whole(state, "step", 0);
    this.isChosen = "step" in state; // the step, by the user; until then it is one at which there is something to see
    this.speed = SPEEDS.includes(whole(state, "speed")) ? whole(state, "speed") : 20;
    const chosen = PANES.filter((pane) => state.show?.[0].split(",").includes(pane));
    this.chosen = chosen.length ? chosen : null;
    this.look = firstLook(state.look?.[0]);
    this.views = [];
    this.curves = new Curves(element("curves"));
    this.timeline = new Timeline(element("timeline"));
    element("outlines").checked = state.outlines?.[0] !== "off";
    element("speed").append(...SPEEDS.map((speed) => new Option(`${speed} steps/s`, speed, false, speed === this.speed)));
    this.#listen();
    new ResizeObserver(() => this.redraw()).observe(element("stage"));
  }

  #listen() {
    element("play").addEventListener("click", () => this.toggle());
    element("back").addEventListener("click", () => this.go(this.step - 1));
    element("forth").addEventListener("click", () => this.go(this.step + 1));
    element("scrub").addEventListener("input", (event) => this.go(Number(event.target.value)));
    element("speed").addEventListener("change", (event) => {
      this.speed = Number(event.target.value);
      this.changed();
    });
    element("outlines").addEventListener("change", () => this.redraw());
    for (const button of element("panes").querySelectorAll("button")) {
      button.addEventListener("click", () => this.#choose(button.dataset.pane));
    }
  }

  // What of the stage is worth keeping in an address; nothing of it where it is as at first.
  state() {
    return {
      step: this.isChosen ? this.step : null,
      show: this.chosen && this.chosen.join(","),
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

  // What is shown of each recording: two beside each other have room for their events only, unless the user says so.
  get panes() {
    return this.chosen ?? (this.recordings.length > 1 ? ["events"] : ["events", "cloud"]);
  }

  get steps() {
    return Math.max(1, ...this.recordings.map((recording) => recording.steps));
  }

  // Shows one recording or two; the step stays where it is.
  show(recordings) {
    const others = recordings.length !== this.recordings.length;
    this.recordings = recordings;
    element("scrub").max = this.steps - 1;
    if (others) this.#arrange();
    const step = Math.min(this.step, this.steps - 1);
    this.go(this.isChosen || isBusy(recordings[0], step) ? step : firstBusyStep(recordings[0]), false);
  }

  #arrange() {
    const { panes } = this;
    for (const button of element("panes").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", panes.includes(button.dataset.pane));
    }
    while (this.views.length < this.recordings.length) {
      this.views.push({ events: eventPane(), brightness: brightnessPane(), cloud: new Cloud(this.look, () => this.redraw()) });
    }
    const boxes = this.recordings.map((_, k) => {
      const box = make("figure"), caption = make("figcaption"), row = make("div");
      row.append(...panes.map((pane) => this.views[k][pane].element));
      box.append(caption, row);
      this.views[k].caption = caption;
      return box;
    });
    element("views").replaceChildren(...boxes);
    element("views").classList.toggle("two", this.recordings.length > 1);
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
    const { panes } = this, outlines = element("outlines").checked;
    this.recordings.forEach((recording, k) => {
      const step = Math.min(this.step, recording.steps - 1);
      for (const pane of panes) this.views[k][pane].show(recording, step, { outlines });
      this.views[k].caption.replaceChildren(...captioned(recording, step));
    });
    this.timeline.show(this.recordings, this.step);
    this.curves.show(this.recordings, this.step);
    const { first } = this.recordings[0];
    element("scrub").value = this.step;
    element("step").textContent = `step ${first + this.step} / ${first + this.steps - 1}`;
  }
}

// The first step with about as many events as others have, noise not counted; in exact timing step 0 has none.
function firstBusyStep(recording) {
  const events = recording.counts.on.map((_, step) => seen(recording, step)), usual = sum(events) / recording.steps;
  return Math.max(0, events.findIndex((count) => count > 0 && count >= usual / 2));
}

const seen = ({ counts: { on, off, background } }, step) => on[step] + off[step] - background[step];
const isBusy = (recording, step) => step < recording.steps && seen(recording, step) > 0 && step >= firstBusyStep(recording);

function captioned(recording, step) {
  const part = (textContent, className) => make("span", { textContent, className });
  const { on, off, background } = recording.counts;
  return [
    part(recording.name, "what"),
    part(`${on[step]} ON`, "on"), part(`${off[step]} OFF`, "off"),
    part(`of ${sum(on)} ON, ${sum(off)} OFF, ${sum(background)} noise`, "faint"),
  ];
}
