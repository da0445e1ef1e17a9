// T's parameters and their derivatives over time, and the events per step; each with a line at the current step.

import { actorColour, css, pen, short, style } from "./draw.js";
import { truth } from "./recording.js";

const COLUMNS = [
  { name: "x", unit: "px", parameters: [0] },
  { name: "y", unit: "px", parameters: [1] },
  { name: "scale x, y", unit: "px", parameters: [2, 3] },
  { name: "rotation", unit: "°", parameters: [4], factor: 180 / Math.PI },
  { name: "shear", unit: "", parameters: [5] },
];
const ROWS = [["T", ""], ["T′", "/step"], ["T″", "/step²"]];
const LEFT = 22, TOP = 15, GAP = 10; // units of the page
const MOST_POINTS = 600; // of a curve; more would not be seen

// Draws a still picture once and only the line at the current step anew.
class Chart {
  constructor(canvas) {
    this.canvas = canvas;
    this.still = document.createElement("canvas");
  }

  show(recordings, step) {
    const { context, width, height, ratio } = pen(this.canvas);
    const key = [width, height, ratio];
    if (this.drawn !== recordings || String(key) !== this.size) {
      Object.assign(this.still, { width: this.canvas.width, height: this.canvas.height });
      const still = this.still.getContext("2d");
      still.setTransform(ratio, 0, 0, ratio, 0, 0);
      still.font = context.font;
      this.draw(still, recordings, width, height);
      [this.drawn, this.size] = [recordings, String(key)];
    }
    context.drawImage(this.still, 0, 0, width, height);
    this.cursor(context, recordings, step, width, height);
  }
}

const longest = (recordings) => Math.max(...recordings.map((recording) => recording.steps));

function line(context, x, top, bottom) {
  context.strokeStyle = style("--accent");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, top);
  context.lineTo(Math.round(x) + 0.5, bottom);
  context.stroke();
}

export class Curves extends Chart {
  #cells(width, height) {
    const w = (width - LEFT - GAP * (COLUMNS.length - 1)) / COLUMNS.length;
    const h = (height - TOP - 4 * (ROWS.length - 1)) / ROWS.length;
    return COLUMNS.flatMap((column, i) =>
      ROWS.map((_, order) => ({ ...column, order, left: LEFT + i * (w + GAP), top: TOP + order * (h + 4), w, h })));
  }

  draw(context, recordings, width, height) {
    context.fillStyle = style("--faint");
    context.textBaseline = "middle";
    ROWS.forEach(([name], order) => context.fillText(name, 2, TOP + ((order + 0.5) * (height - TOP)) / ROWS.length));
    for (const cell of this.#cells(width, height)) {
      if (cell.order === 0) this.#title(context, cell);
      context.fillStyle = "#fff";
      context.fillRect(cell.left, cell.top, cell.w, cell.h);
      this.#cell(context, cell, recordings);
    }
  }

  #title(context, { name, unit, left }) {
    context.textBaseline = "alphabetic";
    context.fillStyle = style("--ink");
    context.fillText(name, left + 1, TOP - 5);
    const shift = context.measureText(`${name} `).width;
    context.fillStyle = style("--faint");
    context.fillText(unit, left + 1 + shift, TOP - 5);
  }

  #cell(context, cell, recordings) {
    const { left, top, w, h, order, parameters, factor = 1 } = cell;
    const curves = recordings.flatMap((recording, k) =>
      recording.actors.flatMap((_, actor) => parameters.map((parameter, i) => ({ recording, k, actor, parameter, faint: i > 0 }))));
    const sampled = curves.map((curve) => ({ ...curve, points: samples(curve, order, factor) }));
    const [low, high] = range(sampled.flatMap((curve) => curve.points.map(([, value]) => value)));
    const steps = longest(recordings);
    const height = (value) => top + 3 + (h - 6) * (1 - (value - low) / (high - low));
    context.save();
    context.beginPath();
    context.rect(left, top, w, h);
    context.clip();
    if (low < 0 && high > 0) {
      context.fillStyle = "#0001";
      context.fillRect(left, height(0), w, 1);
    }
    for (const { k, actor, faint, points } of sampled) {
      context.strokeStyle = actorColour(actor);
      context.globalAlpha = faint ? 0.45 : 1;
      context.lineWidth = k ? 1.2 : 1.5;
      context.setLineDash(k ? [4, 3] : []);
      context.beginPath();
      points.forEach(([step, value], i) => {
        const x = left + ((step + 0.5) / steps) * w;
        if (i) context.lineTo(x, height(value));
        else context.moveTo(x, height(value));
      });
      context.stroke();
    }
    context.restore();
  }

  cursor(context, recordings, step, width, height) {
    context.textBaseline = "top";
    context.textAlign = "right";
    for (const cell of this.#cells(width, height)) {
      line(context, cell.left + ((step + 0.5) / longest(recordings)) * cell.w, cell.top, cell.top + cell.h);
      const [recording] = recordings;
      if (!recording.actors.length) continue;
      const value = truth(recording, Math.min(step, recording.steps - 1), 0, cell.order, cell.parameters[0]) * (cell.factor ?? 1);
      const text = short(value);
      const wide = context.measureText(text).width;
      context.fillStyle = "#ffffffd0";
      context.fillRect(cell.left + cell.w - wide - 6, cell.top + 1, wide + 5, 13);
      context.fillStyle = actorColour(0);
      context.fillText(text, cell.left + cell.w - 3, cell.top + 2);
    }
  }
}

// The points of a curve; of one with too many steps, the lowest and the highest of every few.
function samples({ recording, actor, parameter }, order, factor) {
  const stride = Math.ceil(recording.steps / MOST_POINTS), points = [];
  for (let begin = 0; begin < recording.steps; begin += stride) {
    let low = Infinity, high = -Infinity;
    for (let step = begin; step < Math.min(begin + stride, recording.steps); step++) {
      const value = truth(recording, step, actor, order, parameter) * factor;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    points.push([begin, low]);
    if (high > low) points.push([begin, high]);
  }
  return points;
}

// The range of a curve's axis; a constant lies in the middle of it.
function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [-1, 1];
  const least = Math.max(1e-6, 1e-4 * Math.max(Math.abs(low), Math.abs(high)));
  return high - low < least ? [low - 1, high + 1] : [low, high];
}

// Events per step: ON upwards, OFF downwards.
export class Timeline extends Chart {
  constructor(canvas, colours) {
    super(canvas);
    this.colours = colours;
  }

  draw(context, recordings, width, height) {
    const steps = longest(recordings), bar = width / steps, middle = height / 2;
    context.fillStyle = "#fff";
    context.fillRect(0, 0, width, height);
    const most = Math.max(1, ...recordings.flatMap(({ counts }) => [peak(counts.on), peak(counts.off)]));
    recordings.forEach(({ counts, steps: own }, k) => {
      for (const [counted, colour, way] of [[counts.on, this.colours.on, -1], [counts.off, this.colours.off, 1]]) {
        context.fillStyle = context.strokeStyle = css(colour, 0.85);
        context.beginPath();
        for (let step = 0; step < own; step++) {
          const y = middle + (way * (middle - 2) * counted[step]) / most;
          if (k) context.lineTo((step + 0.5) * bar, y); // the second recording as a line over the first
          else context.rect(step * bar, middle, Math.max(bar - (bar > 3 ? 1 : 0), 0.7), y - middle);
        }
        if (k) (context.strokeStyle = "#222a"), context.stroke();
        else context.fill();
      }
    });
  }

  cursor(context, recordings, step, width, height) {
    line(context, ((step + 0.5) / longest(recordings)) * width, 0, height);
  }
}

const peak = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 0);
