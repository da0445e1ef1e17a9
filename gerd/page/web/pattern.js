// The fixed pattern of a camera, as gerd/page/pattern.py describes it: a pixel of the picture for each of the sensor.

import { css, isDark } from "./colours.js";
import { make } from "./dom.js";

const LEVELS = 252, HOT = 254, DEAD = 255;
const COLOURS = { hot: [230, 159, 0], dead: [0, 114, 178] };

export class Pattern {
  constructor() {
    this.canvas = make("canvas");
    this.caption = make("p", { className: "faint" });
    this.element = make("div", { className: "pattern", hidden: true });
    this.element.append(this.canvas, this.caption);
  }

  show(pattern, width, height) {
    this.element.hidden = !pattern;
    if (!pattern) return;
    Object.assign(this.canvas, { width, height });
    this.canvas.style.setProperty("--shape", width / height);
    const context = this.canvas.getContext("2d"), image = context.createImageData(width, height);
    const pixels = atob(pattern.pixels);
    for (let i = 0; i < pixels.length; i++) image.data.set([...colour(pixels.charCodeAt(i)), 255], 4 * i);
    context.putImageData(image, 0, 0);
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `The fixed pattern of camera ${pattern.number}`);
    this.caption.replaceChildren(`camera ${pattern.number}: `, ...this.#told(pattern));
  }

  #told({ thresholds, hot, dead }) {
    const parts = [];
    if (thresholds) parts.push([`ON thresholds ${thresholds.map((number) => number.toPrecision(3)).join(" to ")}, light to dark`]);
    if (hot) parts.push([dot(COLOURS.hot), `${hot} hot`]);
    if (dead) parts.push([dot(COLOURS.dead), `${dead} dead`]);
    return parts.flatMap((part, i) => (i ? ["; ", ...part] : part));
  }
}

// Of a pixel: light for a low threshold and dark for a high one, or that of an odd pixel.
function colour(byte) {
  if (byte === HOT) return COLOURS.hot;
  if (byte === DEAD) return COLOURS.dead;
  const [light, dark] = isDark() ? [190, 40] : [250, 110];
  const grey = Math.round(light + ((dark - light) * byte) / LEVELS);
  return [grey, grey, grey];
}

function dot(channels) {
  const mark = make("span", { className: "dot" });
  mark.style.background = css(channels);
  return mark;
}
