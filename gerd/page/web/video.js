// One step of a recording on a canvas: events as pixels, and over them the outlines from the ground truth.

import { actorColour, pen } from "./draw.js";
import { matrix } from "./recording.js";

export class Video {
  constructor(colours) {
    this.colours = colours;
    this.canvas = document.createElement("canvas");
    this.element = document.createElement("div");
    this.element.className = "video";
    this.element.append(this.canvas);
    this.pixels = document.createElement("canvas"); // one pixel for each of the sensor's
  }

  show(recording, step, { outlines }) {
    const { context, width, height, ratio } = pen(this.canvas);
    const room = Math.min((width * ratio - 2) / recording.width, (height * ratio - 2) / recording.height);
    const zoom = (room >= 1 ? Math.floor(room) : room) / ratio; // whole pixels stay sharp
    const left = Math.round(((width - recording.width * zoom) / 2) * ratio) / ratio;
    const top = Math.round(((height - recording.height * zoom) / 2) * ratio) / ratio;
    this.#paint(recording, step);
    context.imageSmoothingEnabled = room < 1;
    context.drawImage(this.pixels, left, top, recording.width * zoom, recording.height * zoom);
    context.save();
    context.beginPath();
    context.rect(left, top, recording.width * zoom, recording.height * zoom);
    context.clip();
    if (outlines) recording.actors.forEach((_, actor) => this.#outline(context, recording, step, actor, left, top, zoom));
    context.restore();
    context.strokeStyle = "#0003";
    context.lineWidth = 1 / ratio;
    const edge = 0.5 / ratio;
    context.strokeRect(left - edge, top - edge, recording.width * zoom + 2 * edge, recording.height * zoom + 2 * edge);
    this.frame = { left, top, zoom };
  }

  #paint({ width, height, offsets, packed }, step) {
    const context = this.pixels.getContext("2d");
    if (this.image?.width !== width || this.image?.height !== height) {
      Object.assign(this.pixels, { width, height });
      this.image = context.createImageData(width, height);
    }
    const rgba = ["backdrop", "off", "on", "both"].flatMap((name) => [...this.colours[name], 255]);
    const [backdrop, off, on, both] = new Uint32Array(new Uint8Array(rgba).buffer);
    const pixels = new Uint32Array(this.image.data.buffer).fill(backdrop);
    for (let i = offsets[step]; i < offsets[step + 1]; i++) {
      const place = packed[i] >>> 2; // noise may add the other polarity to a pixel
      pixels[place] = pixels[place] !== backdrop ? both : packed[i] & 2 ? on : off;
    }
    context.putImageData(this.image, 0, 0);
  }

  #outline(context, recording, step, actor, left, top, zoom) {
    const { rings, wraps } = recording.actors[actor];
    if (!rings) return; // it is absent
    const [a, b, c, d, x, y] = matrix(recording, step, actor);
    const copies = wraps ? [-1, 0, 1] : [0];
    context.lineWidth = 1.5;
    context.strokeStyle = actorColour(actor);
    for (const right of copies) for (const down of copies) {
      context.save();
      context.translate(left + (x + right * recording.width) * zoom, top + (y + down * recording.height) * zoom);
      context.transform(a * zoom, b * zoom, c * zoom, d * zoom, 0, 0);
      context.beginPath();
      if (!rings.length) context.arc(0, 0, 0.5, 0, 2 * Math.PI);
      for (const ring of rings) {
        ring.forEach(([u, v], i) => (i ? context.lineTo(u, v) : context.moveTo(u, v)));
        context.closePath();
      }
      context.restore(); // the path is made in the unit frame, the line drawn in the page's
      context.stroke();
    }
  }
}
