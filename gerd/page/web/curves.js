// T's parameters and their derivatives over time, with axes, and beside them the numbers of the current step.

import { actorColour, style } from "./colours.js";
import { Chart, line, longest } from "./chart.js";
import { short, ticks } from "./draw.js";
import { truth } from "./recording.js";

const COLUMNS = [
  { name: "x", unit: "px", parameters: [0] },
  { name: "y", unit: "px", parameters: [1] },
  { name: "scale x, y", unit: "px", parameters: [2, 3] },
  { name: "rotation", unit: "°", parameters: [4], factor: 180 / Math.PI },
  { name: "shear", unit: "", parameters: [5] },
];
const ROWS = [["T", ""], ["T′", "/step"], ["T″", "/step²"]];
const LEFT = 20, TOP = 15, BOTTOM = 14, GAP = 6, BETWEEN = 5, LINE = 12; // units of the page
const NARROWEST = 128; // of a column with its numbers; where there is less room, fewer stand abreast
const AXIS = 10; // height of the axes' numbers
const MOST_LINES = 6; // of numbers under each other
const MOST_POINTS = 600; // of a curve; more would not be seen
const LOOKS = 40; // steps at which the room for numbers is measured

export class Curves extends Chart {
  // The canvas is as high as the numbers of all actors need.
  show(recordings, main, step) {
    const numbered = read(recordings, main);
    const lines = Math.min(MOST_LINES, numbered.reduce((count, { recording }) => count + recording.actors.length, 0));
    const block = Math.max(parseInt(style("--curves"), 10), TOP + BOTTOM + ROWS.length * (lines * LINE + BETWEEN));
    const { blocks } = grid(this.canvas.clientWidth);
    this.canvas.style.height = `${blocks * block + (blocks - 1) * GAP}px`;
    super.show(recordings, main, step);
  }

  draw(context, recordings, main, width, height) {
    this.cells = cells(context, recordings, main, width, height);
    for (const cell of this.cells) {
      if (cell.order === 0) title(context, cell);
      context.fillStyle = style("--faint");
      Object.assign(context, { textBaseline: "middle", textAlign: "left" });
      if (cell.isFirst) context.fillText(ROWS[cell.order][0], 2, cell.top + cell.h / 2);
      context.fillStyle = style("--field");
      context.fillRect(cell.left, cell.top, cell.w, cell.h);
      axes(context, cell, recordings);
      curves(context, cell, recordings, main);
    }
  }

  cursor(context, recordings, main, step) {
    for (const cell of this.cells) {
      line(context, cell.left + ((step + 0.5) / longest(recordings)) * cell.w, cell.top, cell.top + cell.h);
      numbers(context, cell, read(recordings, main), step);
    }
  }
}

// The recordings whose numbers are shown: both of two, and of more only the one that is described.
function read(recordings, main) {
  const all = recordings.map((recording, k) => ({ recording, isOther: k !== main }));
  return recordings.length > 2 ? [all[main]] : all;
}

// How many columns stand beside each other, and in how many blocks.
function grid(width) {
  const most = Math.max(1, Math.min(COLUMNS.length, Math.floor((width - LEFT + GAP) / (NARROWEST + GAP))));
  const blocks = Math.ceil(COLUMNS.length / most);
  return { abreast: Math.ceil(COLUMNS.length / blocks), blocks };
}

// Where the curves of each parameter and derivative are, between the numbers of their axis and those of the step.
function cells(context, recordings, main, width, height) {
  const { abreast, blocks } = grid(width);
  const block = (height - GAP * (blocks - 1)) / blocks, wide = (width - LEFT - GAP * (abreast - 1)) / abreast;
  const h = (block - TOP - BOTTOM - BETWEEN * (ROWS.length - 1)) / ROWS.length;
  return COLUMNS.flatMap((column, i) => {
    const begin = LEFT + (i % abreast) * (wide + GAP), above = Math.floor(i / abreast) * (block + GAP) + TOP;
    const rows = ROWS.map((_, order) => sampled({ ...column, order }, recordings));
    context.font = sized(context, AXIS);
    const axis = 6 + Math.max(...rows.flatMap(({ ticks }) => ticks.map((tick) => context.measureText(short(tick)).width)));
    context.font = sized(context, 11);
    const room = 6 + Math.max(0, ...rows.map((row) => widest(context, row, read(recordings, main))));
    return rows.map((row, order) => ({
      ...row, left: begin + axis, top: above + order * (h + BETWEEN), w: Math.max(20, wide - axis - room), h, room,
      isFirst: i % abreast === 0, isLast: order === ROWS.length - 1,
    }));
  });
}

const sized = (context, size) => context.font.replace(/[\d.]+px/, `${size}px`);

// The curves of a cell as points, their range, and the numbers of their axis.
function sampled(cell, recordings) {
  const { parameters, order, factor = 1 } = cell;
  const curves = recordings.flatMap((recording, k) => recording.actors.flatMap(({ rings }, actor) =>
    rings ? parameters.map((parameter, i) => ({ k, actor, isSecond: i > 0, points: samples(recording, actor, parameter, order, factor) })) : []));
  const [low, high] = range(curves);
  return { ...cell, curves, low, high, ticks: ticks(low, high) };
}

// The width of the widest numbers of a cell, as far as a look at some of the steps shows.
function widest(context, cell, recordings) {
  const looks = recordings.flatMap(({ recording: { steps } }) => Array.from({ length: LOOKS }, (_, i) => Math.floor((i * steps) / LOOKS)));
  return Math.max(0, ...looks.flatMap((step) => written(cell, recordings, step).map(({ text }) => context.measureText(text).width)));
}

function title(context, { name, unit, left, top }) {
  Object.assign(context, { textBaseline: "alphabetic", textAlign: "left" });
  context.fillStyle = style("--ink");
  context.fillText(name, left + 1, top - 5);
  const shift = context.measureText(`${name} `).width;
  context.fillStyle = style("--faint");
  context.fillText(unit, left + 1 + shift, top - 5);
}

// Numbers at the left, and below the last row the steps, with faint lines at them.
function axes(context, { left, top, w, h, low, high, ticks: values, isLast }, recordings) {
  const height = heightIn({ top, h, low, high }), steps = longest(recordings), { first } = recordings[0], font = context.font;
  context.font = sized(context, AXIS);
  Object.assign(context, { textBaseline: "middle", textAlign: "right" });
  for (const value of values) {
    context.fillStyle = "#8882";
    context.fillRect(left, Math.round(height(value)), w, 1);
    context.fillStyle = style("--faint");
    context.fillText(short(value), left - 4, Math.min(Math.max(height(value), top + AXIS / 2 - 1), top + h - AXIS / 2 + 1));
  }
  Object.assign(context, { textBaseline: "top", textAlign: "center" });
  for (const step of steps > 1 ? ticks(first, first + steps - 1, w < 90 ? 2 : 3).filter(Number.isInteger) : [first]) {
    const x = left + ((step - first + 0.5) / steps) * w;
    context.fillStyle = "#8882";
    context.fillRect(Math.round(x), top, 1, h);
    context.fillStyle = style("--faint");
    if (isLast) context.fillText(step, x, top + h + 3);
  }
  context.font = font;
}

const heightIn = ({ top, h, low, high }) => (value) => top + 3 + (h - 6) * (1 - (value - low) / (high - low));

// The one that is described is drawn full, over the others: a second one is dashed, more are faint.
function curves(context, cell, recordings, main) {
  const { left, top, w, h } = cell, height = heightIn(cell), steps = longest(recordings);
  const ordered = [...cell.curves.filter(({ k }) => k !== main), ...cell.curves.filter(({ k }) => k === main)];
  context.save();
  context.beginPath();
  context.rect(left, top, w, h);
  context.clip();
  for (const { k, actor, isSecond, points } of ordered) {
    const isOther = k !== main;
    context.strokeStyle = actorColour(actor);
    context.globalAlpha = (isSecond ? 0.45 : 1) * (isOther && recordings.length > 2 ? 0.3 : 1);
    context.lineWidth = isOther ? 1.2 : 1.5;
    context.setLineDash(isOther && recordings.length === 2 ? [4, 3] : []);
    context.beginPath();
    for (const [step, value] of points) context.lineTo(left + ((step + 0.5) / steps) * w, height(value)); // from the first
    context.stroke();
  }
  context.restore();
}

// What is written beside a cell: the numbers of each actor that is there, in its colour.
function written({ order, parameters, factor = 1 }, recordings, step) {
  return recordings.flatMap(({ recording, isOther }) => recording.actors.flatMap(({ rings }, actor) => {
    if (!rings) return []; // it is absent
    const at = Math.min(step, recording.steps - 1);
    const values = parameters.map((parameter) => short(truth(recording, at, actor, order, parameter) * factor));
    return [{ text: [...new Set(values)].join("×"), actor, isOther }];
  }));
}

// The numbers of the step under each other, at the right of the curves; of more than there is room for, the first.
function numbers(context, cell, recordings, step) {
  const { left, top, w, h, room } = cell, all = written(cell, recordings, step), upright = context.font;
  const fit = Math.max(1, Math.floor((h + 3) / LINE)), shown = all.length > fit ? all.slice(0, fit - 1) : all;
  Object.assign(context, { textBaseline: "top", textAlign: "left" });
  shown.forEach(({ text, actor, isOther }, i) => {
    context.fillStyle = actorColour(actor);
    context.font = isOther ? `italic ${upright}` : upright;
    context.fillText(text, left + w + 5, top + i * LINE, room);
  });
  context.font = upright;
  context.fillStyle = style("--faint");
  if (shown.length < all.length) context.fillText(`+ ${all.length - shown.length}`, left + w + 5, top + shown.length * LINE);
}

// The points of a curve; of one with too many steps, the lowest and the highest of every few.
function samples(recording, actor, parameter, order, factor) {
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

// The range of a cell's axis; a constant lies in the middle of it.
function range(curves) {
  let low = Infinity, high = -Infinity;
  for (const { points } of curves) {
    for (const [, value] of points) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return [-1, 1];
  const least = Math.max(1e-6, 1e-4 * Math.max(Math.abs(low), Math.abs(high)));
  return high - low < least ? [low - 1, high + 1] : [low, high];
}
