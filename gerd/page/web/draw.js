// What the canvases share: their size in the screen's own pixels, and short numbers.

import { style } from "./colours.js";

// Gives a canvas as many pixels as it has on the screen; width and height are in units of the page.
function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, canvas.clientWidth), height = Math.max(1, canvas.clientHeight);
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  return { width, height, ratio };
}

export function pen(canvas) {
  const { width, height, ratio } = fit(canvas);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11px ${style("--font")}`;
  return { context, width, height, ratio };
}

// A number as short as it can be read.
export function short(value) {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

// Round numbers from `low` to `high`, as few as there are of the same distance, but not fewer than `least`.
export function ticks(low, high, least = 2) {
  const power = 10 ** Math.floor(Math.log10(high - low));
  const between = (step) => Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  const step = [10, 5, 2, 1, 0.5, 0.2, 0.1].map((part) => part * power).find((each) => between(each) >= least);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: between(step) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
