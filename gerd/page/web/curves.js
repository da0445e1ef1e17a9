// T's parameters and their derivatives over time, and the events per step; each with a line at the current step.

import { actorColour, css, eventColours, isDark, style } from "./colours.js";
import { make } from "./dom.js";
import { pen, short } from "./draw.js";
import { truth } from "./recording.js";

const COLUMNS = [
  { name: "x", unit: "px", parameters: [0] },
  { name: "y", unit: "px", parameters: [1] },
  { name: "scale x, y", unit: "px", parameters: [2, 3] },
  { name: "rotation", unit: "°", parameters: [4], factor: 180 / Math.PI },
  { name: "shear", unit: "", parameters: [5] },
];
const ROWS = [["T", ""], ["T′", "/step"], ["T″", "/step²"]];
const LEFT = 22, TOP = 15, GAP = 10, LINE = 12; // units of the page
const NARROW = 560; // a width at which the columns stand in two blocks
const MOST_LINES = 6; // of numbers under each other
const MOST_POINTS = 600; // of a curve; more would not be seen

// Draws a still picture once and only the line at the current step anew.
class Chart {
  constructor(canvas) {
    this.canvas = canvas;
    this.still = make("canvas");
  }

  show(recordings, step) {
    const { context, width, height, ratio } = pen(this.canvas);
    const key = [width, height, ratio, isDark()];
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
  // The canvas is as high as the numbers of all actors need.
  show(recordings, step) {
    const lines = Math.min(MOST_LINES, recordings.reduce((count, recording) => count + recording.actors.length, 0));
    const blocks = this.canvas.clientWidth < NARROW ? 2 : 1;
    const block = Math.max(parseInt(style("--curves"), 10), TOP + ROWS.length * (lines * LINE + 8));
    this.canvas.style.height = `${blocks * block + (blocks - 1) * GAP}px`;
    super.show(recordings, step);
  }

  #cells(width, height) {
    const blocks = width < NARROW ? 2 : 1, abreast = Math.ceil(COLUMNS.length / blocks);
    const block = (height - GAP * (blocks - 1)) / blocks;
    const w = (width - LEFT - GAP * (abreast - 1)) / abreast;
    const h = (block - TOP - 4 * (ROWS.length - 1)) / ROWS.length;
    return COLUMNS.flatMap((column, i) => {
      const left = LEFT + (i % abreast) * (w + GAP), above = Math.floor(i / abreast) * (block + GAP) + TOP;
      return ROWS.map((_, order) => ({ ...column, order, left, top: above + order * (h + 4), w, h, isFirst: i % abreast === 0 }));
    });
  }

  draw(context, recordings, width, height) {
    for (const cell of this.#cells(width, height)) {
      if (cell.order === 0) this.#title(context, cell);
      context.textBaseline = "middle";
      context.fillStyle = style("--faint");
      if (cell.isFirst) context.fillText(ROWS[cell.order][0], 2, cell.top + cell.h / 2);
      context.fillStyle = style("--field");
      context.fillRect(cell.left, cell.top, cell.w, cell.h);
      this.#cell(context, cell, recordings);
    }
  }

  #title(context, { name, unit, left, top }) {
    context.textBaseline = "alphabetic";
    context.fillStyle = style("--ink");
    context.fillText(name, left + 1, top - 5);
    const shift = context.measureText(`${name} `).width;
    context.fillStyle = style("--faint");
    context.fillText(unit, left + 1 + shift, top - 5);
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
      context.fillStyle = "#8883";
      context.fillRect(left, height(0), w, 1);
    }
    for (const { k, actor, faint, points } of sampled) {
      context.strokeStyle = actorColour(actor);
      context.globalAlpha = faint ? 0.45 : 1;
      context.lineWidth = k ? 1.2 : 1.5;
      context.setLineDash(k ? [4, 3] : []);
      context.beginPath();
      for (const [step, value] of points) context.lineTo(left + ((step + 0.5) / steps) * w, height(value)); // from the first
      context.stroke();
    }
    context.restore();
  }

  cursor(context, recordings, step, width, height) {
    for (const cell of this.#cells(width, height)) {
      line(context, cell.left + ((step + 0.5) / longest(recordings)) * cell.w, cell.top, cell.top + cell.h);
      this.#numbers(context, cell, recordings, step);
    }
  }

  // The numbers of all actors at the step, under each other and, where that is not enough, in columns to the left.
  #numbers(context, { left, top, w, h, order, parameters, factor = 1 }, recordings, step) {
    const upright = context.font;
    const numbers = recordings.flatMap((recording, k) => recording.actors.flatMap(({ rings }, actor) => {
      if (!rings) return []; // it is absent
      const values = parameters.map((parameter) => short(truth(recording, Math.min(step, recording.steps - 1), actor, order, parameter) * factor));
      return [[[...new Set(values)].join(" × "), actorColour(actor), k ? `italic ${upright}` : upright]];
    }));
    const rows = Math.max(1, Math.floor((h - 2) / LINE));
    context.textBaseline = "top";
    context.textAlign = "right";
    for (let first = 0, right = left + w - 3; first < numbers.length; first += rows) {
      const column = numbers.slice(first, first + rows);
      const wide = Math.max(...column.map(([text]) => context.measureText(text).width));
      if (right - wide < left) {
        context.fillStyle = style("--faint");
        context.fillText("…", right, top + 1);
        return;
      }
      context.fillStyle = style("--veil");
      context.fillRect(right - wide - 3, top + 1, wide + 5, column.length * LINE + 1);
      column.forEach(([text, colour, font], i) => {
        Object.assign(context, { fillStyle: colour, font });
        context.fillText(text, right, top + 2 + i * LINE);
      });
      right -= wide + 8;
      context.font = upright;
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
  draw(context, recordings, width, height) {
    const steps = longest(recordings), bar = width / steps, middle = height / 2, { on, off } = eventColours();
    context.fillStyle = style("--field");
    context.fillRect(0, 0, width, height);
    const most = Math.max(1, ...recordings.flatMap(({ counts }) => [peak(counts.on), peak(counts.off)]));
    recordings.forEach(({ counts, steps: own }, k) => {
      for (const [counted, colour, way] of [[counts.on, on, -1], [counts.off, off, 1]]) {
        context.fillStyle = css(colour, 0.85);
        context.strokeStyle = style("--ink");
        context.beginPath();
        for (let step = 0; step < own; step++) {
          const y = middle + (way * (middle - 2) * counted[step]) / most;
          if (k) context.lineTo((step + 0.5) * bar, y); // the second recording as a line over the first
          else context.rect(step * bar, middle, Math.max(bar - (bar > 3 ? 1 : 0), 0.7), y - middle);
        }
        if (k) context.stroke();
        else context.fill();
      }
    });
  }

  cursor(context, recordings, step, width, height) {
    line(context, ((step + 0.5) / longest(recordings)) * width, 0, height);
  }
}

const peak = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 0);
