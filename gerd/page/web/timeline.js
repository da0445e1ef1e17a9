// Events per step: ON upwards, OFF downwards.

import { Chart, line, longest } from "./chart.js";
import { css, eventColours, style } from "./colours.js";
import { make } from "./dom.js";

export class Timeline extends Chart {
  constructor(canvas, peak) {
    super(canvas);
    this.peak = peak; // where the number of events stands that the height means
  }

  draw(context, recordings, main, width, height) {
    const steps = longest(recordings), bar = width / steps, middle = height / 2, { on, off } = eventColours();
    context.fillStyle = style("--field");
    context.fillRect(0, 0, width, height);
    const most = Math.max(1, ...recordings.flatMap(({ counts }) => [largest(counts.on), largest(counts.off)]));
    this.peak.replaceChildren(...[most, 0, most].map((count) => make("span", { textContent: count })));
    for (const [counted, colour, way] of [["on", on, -1], ["off", off, 1]]) {
      const y = (count) => middle + (way * (middle - 2) * count) / most;
      context.fillStyle = css(colour, 0.85);
      recordings[main].counts[counted].forEach((count, step) => {
        context.fillRect(step * bar, middle, Math.max(bar - (bar > 3 ? 1 : 0), 0.7), y(count) - middle);
      });
      context.strokeStyle = recordings.length > 2 ? css(colour, 0.4) : style("--ink"); // other recordings as lines over the bars
      for (const { counts } of recordings.filter((_, k) => k !== main)) {
        context.beginPath();
        counts[counted].forEach((count, step) => context.lineTo((step + 0.5) * bar, y(count)));
        context.stroke();
      }
    }
  }

  cursor(context, recordings, main, step, width, height) {
    line(context, ((step + 0.5) / longest(recordings)) * width, 0, height);
  }
}

const largest = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 0);
