// What the canvases share: their size in the screen's own pixels, and the colours.

export const ACTOR_COLOURS = ["#00855f", "#b4568b", "#5b5ea6", "#8a6d00", "#4d4d4d", "#7f3c12"];

export const css = ([red, green, blue], alpha = 1) => `rgba(${red}, ${green}, ${blue}, ${alpha})`;
export const actorColour = (actor) => ACTOR_COLOURS[actor % ACTOR_COLOURS.length];
export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Gives a canvas as many pixels as it has on the screen; width and height are in units of the page.
export function fit(canvas) {
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
