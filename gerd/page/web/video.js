// One step of a recording on a canvas: events or brightness as pixels, and over them the outlines of the ground truth.

import { actorColour, eventColours } from "./colours.js";
import { make } from "./dom.js";
import { pen } from "./draw.js";
import { matrix } from "./recording.js";

const FINEST = 8; // fine pixels in one, a side, where brightness is drawn
const FULL = 0.85; // of the room that is used, at which a picture of whole pixels is large enough
const MOST_FINE = 2 ** 21; // of them in a picture

// A pane with a picture of one pixel for each of the sensor's, enlarged. `paint(context, recording, step)` makes it.
class Pane {
  constructor(name, paint) {
    this.paint = paint;
    this.canvas = make("canvas");
    this.pixels = make("canvas");
    this.element = make("div", { className: name });
    this.element.append(this.canvas);
  }

  // How large a picture is in a place of this width and height, in units of the page.
  picture(sensor, width, height) {
    const zoom = zoomOf(sensor, width, height, window.devicePixelRatio || 1);
    return [sensor.width * zoom, sensor.height * zoom];
  }

  show(recording, step, { outlines }) {
    const { context, width, height, ratio } = pen(this.canvas);
    const zoom = zoomOf(recording, width, height, ratio);
    const left = Math.round(((width - recording.width * zoom) / 2) * ratio) / ratio;
    const top = Math.round(((height - recording.height * zoom) / 2) * ratio) / ratio;
    if (this.pixels.width !== recording.width || this.pixels.height !== recording.height) {
      Object.assign(this.pixels, { width: recording.width, height: recording.height });
    }
    this.paint(this.pixels.getContext("2d", { willReadFrequently: true }), recording, step);
    enlarge(context, this.pixels, left, top, zoom, ratio);
    context.save();
    context.beginPath();
    context.rect(left, top, recording.width * zoom, recording.height * zoom);
    context.clip();
    context.translate(left, top);
    if (outlines) drawOutlines(context, recording, step, zoom);
    context.restore();
    context.strokeStyle = "#8886";
    context.lineWidth = 1 / ratio;
    const edge = 0.5 / ratio;
    context.strokeRect(left - edge, top - edge, recording.width * zoom + 2 * edge, recording.height * zoom + 2 * edge);
  }
}

// Units of the page for a pixel of the sensor: whole pixels of the screen, because these stay sharp, unless much of the
// room would be left over.
function zoomOf(sensor, width, height, ratio) {
  const room = Math.max(0, Math.min((width * ratio - 2) / sensor.width, (height * ratio - 2) / sensor.height));
  return (Math.floor(room) >= FULL * room ? Math.floor(room) : room) / ratio;
}

// Draws a picture in a size that may be no multiple of its own: enlarged to whole pixels first, and then made smaller, so
// that all of its pixels are of one size, and only their edges are soft.
function enlarge(context, pixels, left, top, zoom, ratio) {
  const whole = Math.ceil(zoom * ratio - 1e-9), [width, height] = [pixels.width * zoom, pixels.height * zoom];
  const isExact = Math.abs(whole - zoom * ratio) < 1e-9;
  context.imageSmoothingEnabled = zoom * ratio < 1;
  if (isExact || zoom * ratio < 1) {
    context.drawImage(pixels, left, top, width, height);
    return;
  }
  Object.assign(large.canvas, { width: pixels.width * whole, height: pixels.height * whole });
  large.imageSmoothingEnabled = false;
  large.drawImage(pixels, 0, 0, large.canvas.width, large.canvas.height);
  context.imageSmoothingEnabled = true;
  context.drawImage(large.canvas, left, top, width, height);
}

const large = make("canvas").getContext("2d");

export const eventPane = () => new Pane("video", paintEvents);
export const brightnessPane = () => new Pane("brightness", paintBrightness);

function paintEvents(context, { width, height, offsets, packed }, step) {
  const image = context.createImageData(width, height), colours = eventColours();
  const rgba = ["backdrop", "off", "on", "both"].flatMap((name) => [...colours[name], 255]);
  const [backdrop, off, on, both] = new Uint32Array(new Uint8Array(rgba).buffer);
  const pixels = new Uint32Array(image.data.buffer).fill(backdrop);
  for (let i = offsets[step]; i < offsets[step + 1]; i++) {
    const place = packed[i] >>> 2, colour = packed[i] & 2 ? on : off;
    pixels[place] = pixels[place] === backdrop || pixels[place] === colour ? colour : both; // noise may add the other polarity
  }
  context.putImageData(image, 0, 0);
}

const fine = make("canvas").getContext("2d", { willReadFrequently: true });

// What the sensor sees before any noise, from the farthest actor to the nearest; the background has brightness 0.
// It is drawn in finer pixels, which are then halved until they are the sensor's: edges that meet in a pixel come out right.
function paintBrightness(context, recording, step) {
  const { width, height, intensities, actors } = recording;
  const low = Math.min(0, ...intensities), high = Math.max(1, ...intensities);
  const grey = (brightness) => {
    const level = (255 * (brightness - low)) / (high - low);
    return `rgb(${level}, ${level}, ${level})`;
  };
  let zoom = FINEST;
  while (zoom > 1 && width * height * zoom ** 2 > MOST_FINE) zoom /= 2;
  Object.assign(fine.canvas, { width: width * zoom, height: height * zoom });
  fine.fillStyle = grey(0);
  fine.fillRect(0, 0, width * zoom, height * zoom);
  actors.forEach((_, actor) => {
    fine.fillStyle = grey(intensities[actor]);
    trace(fine, recording, step, actor, zoom, () => fine.fill("evenodd"));
  });
  for (; zoom > 1; zoom /= 2) {
    fine.drawImage(fine.canvas, 0, 0, width * zoom, height * zoom, 0, 0, (width * zoom) / 2, (height * zoom) / 2);
  }
  context.drawImage(fine.canvas, 0, 0, width, height, 0, 0, width, height);
}

function drawOutlines(context, recording, step, zoom) {
  context.lineWidth = 1.5;
  recording.actors.forEach((_, actor) => {
    context.strokeStyle = actorColour(actor);
    trace(context, recording, step, actor, zoom, () => context.stroke());
  });
}

// Makes the path of an actor's outline, `zoom` units for a pixel, and calls `then`; once for each copy on a torus.
function trace(context, recording, step, actor, zoom, then) {
  const { rings, wraps } = recording.actors[actor];
  if (!rings) return; // it is absent
  const [a, b, c, d, x, y] = matrix(recording, step, actor);
  const copies = wraps ? [-1, 0, 1] : [0];
  for (const right of copies) for (const down of copies) {
    context.save();
    context.translate((x + right * recording.width) * zoom, (y + down * recording.height) * zoom);
    context.transform(a * zoom, b * zoom, c * zoom, d * zoom, 0, 0);
    context.beginPath();
    if (!rings.length) context.arc(0, 0, 0.5, 0, 2 * Math.PI);
    for (const ring of rings) {
      const [first, ...others] = ring;
      context.moveTo(...first);
      for (const point of others) context.lineTo(...point);
      context.closePath();
    }
    context.restore(); // the path is made in the unit frame, the line drawn in the page's
    then();
  }
}
