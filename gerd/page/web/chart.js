// What the charts over time share: a still picture, and over it a line at the current step.

import { isDark, style } from "./colours.js";
import { make } from "./dom.js";
import { pen } from "./draw.js";

// Draws a still picture once and only what belongs to the current step anew.
export class Chart {
  constructor(canvas) {
    this.canvas = canvas;
    this.still = make("canvas");
  }

  show(recordings, main, step) {
    const { context, width, height, ratio } = pen(this.canvas);
    const key = String([main, width, height, ratio, isDark()]);
    if (this.drawn !== recordings || key !== this.key) {
      Object.assign(this.still, { width: this.canvas.width, height: this.canvas.height });
      const still = this.still.getContext("2d");
      still.setTransform(ratio, 0, 0, ratio, 0, 0);
      still.font = context.font;
      this.draw(still, recordings, main, width, height);
      [this.drawn, this.key] = [recordings, key];
    }
    context.drawImage(this.still, 0, 0, width, height);
    this.cursor(context, recordings, main, step, width, height);
  }
}

export const longest = (recordings) => Math.max(...recordings.map((recording) => recording.steps));

export function line(context, x, top, bottom) {
  context.strokeStyle = style("--accent");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, top);
  context.lineTo(Math.round(x) + 0.5, bottom);
  context.stroke();
}
