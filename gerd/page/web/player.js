// The stage: one recording, or two in lockstep, as video, cloud, timeline and curves, all at the same step.

import { Cloud, firstLook } from "./cloud.js";
import { Curves, Timeline } from "./curves.js";
import { labelled, sum } from "./recording.js";
import { Video } from "./video.js";

const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120, 240, 1000]; // steps per second
const element = (id) => document.getElementById(id);

export class Player {
  constructor(colours) {
    Object.assign(this, { colours, recordings: [], step: 0, playing: false, speed: 20, chosen: null });
    this.look = firstLook();
    this.views = [];
    this.curves = new Curves(element("curves"));
    this.timeline = new Timeline(element("timeline"), colours);
    element("speed").append(...SPEEDS.map((speed) => new Option(`${speed} steps/s`, speed, false, speed === this.speed)));
    this.#listen();
    new ResizeObserver(() => this.redraw()).observe(element("stage"));
  }

  #listen() {
    element("play").addEventListener("click", () => this.toggle());
    element("back").addEventListener("click", () => this.go(this.step - 1));
    element("forth").addEventListener("click", () => this.go(this.step + 1));
    element("scrub").addEventListener("input", (event) => this.go(Number(event.target.value)));
    element("speed").addEventListener("change", (event) => (this.speed = Number(event.target.value)));
    element("outlines").addEventListener("change", () => this.redraw());
    for (const button of element("panes").querySelectorAll("button")) {
      button.addEventListener("click", () => {
        this.chosen = button.dataset.panes;
        this.#arrange();
        this.redraw();
      });
    }
  }

  // What is shown of each recording: two beside each other have room for their videos only, unless the user says so.
  get panes() {
    return this.chosen ?? (this.recordings.length > 1 ? "video" : "both");
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
    this.go(Math.min(this.step, this.steps - 1), false);
  }

  #arrange() {
    const panes = this.panes === "both" ? ["video", "cloud"] : [this.panes];
    for (const button of element("panes").querySelectorAll("button")) {
      button.setAttribute("aria-checked", button.dataset.panes === this.panes);
    }
    while (this.views.length < this.recordings.length) {
      this.views.push({ video: new Video(this.colours), cloud: new Cloud(this.colours, this.look, () => this.redraw()) });
    }
    const boxes = this.recordings.map((_, k) => {
      const box = document.createElement("figure");
      const caption = document.createElement("figcaption");
      const row = document.createElement("div");
      row.append(...panes.map((pane) => this.views[k][pane].element));
      box.append(caption, row);
      this.views[k].caption = caption;
      return box;
    });
    element("views").replaceChildren(...boxes);
    element("views").classList.toggle("two", this.recordings.length > 1);
  }

  go(step, stop = true) {
    if (stop && this.playing) this.toggle();
    this.step = Math.max(0, Math.min(this.steps - 1, step));
    this.redraw();
  }

  toggle() {
    this.playing = !this.playing;
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
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      if (this.recordings.length) this.#draw();
    });
  }

  #draw() {
    const outlines = element("outlines").checked;
    this.recordings.forEach((recording, k) => {
      const step = Math.min(this.step, recording.steps - 1);
      const { video, cloud, caption } = this.views[k];
      if (this.panes !== "cloud") video.show(recording, step, { outlines });
      if (this.panes !== "video") cloud.show(recording, step);
      caption.replaceChildren(...captioned(recording, step, this.colours));
    });
    this.timeline.show(this.recordings, this.step);
    this.curves.show(this.recordings, this.step);
    const { first } = this.recordings[0];
    element("scrub").value = this.step;
    element("step").textContent = `step ${first + this.step} / ${first + this.steps - 1}`;
  }
}

function captioned(recording, step, colours) {
  const part = (text, className = "") => Object.assign(document.createElement("span"), { textContent: text, className });
  const { on, off, background } = recording.counts;
  const name = [`draw ${recording.index}`, labelled(recording.labels)].filter(Boolean).join(", ");
  return [
    part(name, "what"),
    part(`${on[step]} ON`, "on"), part(`${off[step]} OFF`, "off"),
    part(`of ${sum(on)} ON, ${sum(off)} OFF, ${sum(background)} noise`, "faint"),
  ];
}
