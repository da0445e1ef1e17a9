// The events as points in (x, y, t), on WebGL2; the box, the axes and the current step are drawn over them.

import { eventColours, isDark, style } from "./colours.js";
import { make } from "./dom.js";
import { pen } from "./draw.js";

const DEPTH = 1.7; // of the box along t, where its larger side in space is 1
const WIDE = 1.35; // width by height of a place that the box fills
const FAR = 3.2; // from the eye to the middle of the box
const FIRST_LOOK = { yaw: -0.95, pitch: 0.3, zoom: 1 };

const VERTEX = `#version 300 es
layout(location = 0) in uint event;
layout(location = 1) in float time; // in steps
uniform mat4 view;
uniform vec2 size;   // of the sensor
uniform float steps, depth, now, dot_size;
uniform vec3 on, off, ground;
flat out vec3 colour;
void main() {
  uint place = event >> 2u, width = uint(size.x);
  vec2 pixel = vec2(float(place % width), float(place / width)) + 0.5;
  vec2 spot = (pixel - size / 2.0) / max(size.x, size.y);
  gl_Position = view * vec4(spot.x, -spot.y, depth * (0.5 - (time + 0.5) / steps), 1.0);
  bool current = ceil(time) == now;
  colour = (event & 2u) != 0u ? on : off;
  if (!current) colour = mix(colour, ground, time > now ? 0.72 : 0.3);
  gl_PointSize = clamp(dot_size / gl_Position.w, 1.5, 14.0) * (current ? 1.5 : 1.0);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 colour;
out vec4 result;
void main() {
  if (distance(gl_PointCoord, vec2(0.5)) > 0.5) discard;
  result = vec4(colour, 1.0);
}`;

// What draws the points: one for all clouds of the page, because a browser keeps only a few such contexts.
class Renderer {
  constructor() {
    this.canvas = make("canvas");
    this.gl = this.canvas.getContext("webgl2", { antialias: true, alpha: false });
    if (this.gl) this.#prepare();
    else this.missing = "This browser has no WebGL2, which the point cloud needs. Everything else works without it.";
    this.canvas.addEventListener("webglcontextlost", () => {
      this.missing = "The graphics card has lost the point cloud; load the page again.";
    });
  }

  #prepare() {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      this.missing = `The point cloud does not work on this graphics card: ${gl.getProgramInfoLog(program)}`;
      return;
    }
    gl.useProgram(program);
    gl.enable(gl.DEPTH_TEST);
    this.place = (name) => gl.getUniformLocation(program, name);
  }

  // The events of a recording where the graphics card can read them; in the room of those that are replaced.
  load(recording, replaced) {
    const gl = this.gl, points = replaced ?? { array: gl.createVertexArray(), buffers: [gl.createBuffer(), gl.createBuffer()] };
    gl.bindVertexArray(points.array);
    [recording.packed, recording.times].forEach((data, i) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, points.buffers[i]);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(i);
      if (i === 0) gl.vertexAttribIPointer(i, 1, gl.UNSIGNED_INT, 0, 0);
      else gl.vertexAttribPointer(i, 1, gl.FLOAT, false, 0, 0);
    });
    return Object.assign(points, { recording });
  }

  // Draws the points as seen through `view` into the corner of a canvas, from which they are copied to (0, 0) of `context`.
  draw(context, { array, recording }, step, view, zoom) {
    const gl = this.gl, { width, height } = context.canvas;
    if (this.canvas.width < width) this.canvas.width = width;
    if (this.canvas.height < height) this.canvas.height = height;
    gl.bindVertexArray(array);
    gl.viewport(0, 0, width, height);
    this.#colour();
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix4fv(this.place("view"), false, view);
    gl.uniform2f(this.place("size"), recording.width, recording.height);
    const pixel = (Math.min(height, width) * zoom) / Math.max(recording.width, recording.height);
    const numbers = { steps: recording.steps, depth: DEPTH, now: step, dot_size: pixel * FAR * 0.75 };
    for (const [name, number] of Object.entries(numbers)) gl.uniform1f(this.place(name), number);
    gl.drawArrays(gl.POINTS, 0, recording.events);
    context.drawImage(this.canvas, 0, this.canvas.height - height, width, height, 0, 0, width, height);
  }

  #colour() {
    const gl = this.gl, { backdrop, on, off } = eventColours(), ground = isDark() ? backdrop : [255, 255, 255];
    for (const [name, colour] of Object.entries({ on, off, ground })) {
      gl.uniform3f(this.place(name), ...colour.map((channel) => channel / 255));
    }
    gl.clearColor(...ground.map((channel) => channel / 255), 1);
  }
}

let renderer = null; // made with the first cloud

export class Cloud {
  constructor(look, redraw) {
    this.look = look; // shared by clouds side by side
    renderer ??= new Renderer();
    this.canvas = make("canvas");
    this.message = make("p", { className: "missing", hidden: true });
    this.element = make("div", { className: "cloud" });
    this.element.append(this.canvas, this.message);
    this.points = null;
    this.#turn(redraw);
  }

  // How large the box is that is drawn in a place.
  picture(_, width, height) {
    return [Math.min(width, height * WIDE), Math.min(height, width / WIDE)];
  }

  #turn(redraw) {
    let last = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      this.look.yaw += (event.clientX - last[0]) * 0.008;
      this.look.pitch = within(-1.55, this.look.pitch + (event.clientY - last[1]) * 0.008, 1.55);
      last = [event.clientX, event.clientY];
      redraw();
    });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (last = null));
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.look.zoom = within(0.4, this.look.zoom * Math.exp(-event.deltaY * 0.001), 6);
      redraw();
    }, { passive: false });
    this.canvas.addEventListener("dblclick", () => {
      Object.assign(this.look, FIRST_LOOK);
      redraw();
    });
  }

  show(recording, step) {
    this.message.textContent = renderer.missing ?? "";
    this.message.hidden = !renderer.missing;
    if (renderer.missing) return;
    const { context, width, height } = pen(this.canvas), view = projection(this.look, width / height);
    if (this.points?.recording !== recording) this.points = renderer.load(recording, this.points);
    context.save();
    context.resetTransform();
    renderer.draw(context, this.points, step, view, this.look.zoom);
    context.restore();
    this.#frame(context, recording, step, view, { width, height });
  }

  #frame(context, recording, step, view, { width, height }) {
    const side = Math.max(recording.width, recording.height);
    const [w, h, d] = [recording.width / side / 2, recording.height / side / 2, DEPTH / 2];
    const spot = (x, y, z) => project(view, [x, y, z], width, height);
    const draw = (...points) => {
      context.beginPath();
      for (const point of points) context.lineTo(...point); // the first only moves there
      context.stroke();
    };
    const face = (z) => [spot(-w, h, z), spot(w, h, z), spot(w, -h, z), spot(-w, -h, z), spot(-w, h, z)];
    context.strokeStyle = "#8888887a";
    for (const z of [d, -d]) draw(...face(z));
    for (const [x, y] of [[-w, h], [w, h], [w, -h], [-w, -h]]) draw(spot(x, y, d), spot(x, y, -d));
    context.strokeStyle = style("--accent");
    context.fillStyle = "#3f8fcb18";
    draw(...face(DEPTH * (0.5 - (step + 0.5) / recording.steps)));
    context.fill();
    this.#labels(context, recording, spot, [w, h, d]);
  }

  // The axes' names, each at the edge of the box where it hides nothing.
  #labels(context, recording, spot, [w, h, d]) {
    context.fillStyle = style("--faint");
    context.textAlign = "center";
    context.textBaseline = "middle";
    const lowest = (...points) => points.reduce((best, point) => (spot(...point)[1] > spot(...best)[1] ? point : best));
    const leftmost = (...points) => points.reduce((best, point) => (spot(...point)[0] < spot(...best)[0] ? point : best));
    const gap = 0.1, away = (number) => number + Math.sign(number) * gap;
    const [side] = lowest([-w, -h, 0], [w, -h, 0], [-w, h, 0], [w, h, 0]);
    const under = (x, z) => lowest([x, -h, z], [x, h, z])[1];
    const front = lowest([0, -h, d], [0, -h, -d])[2];
    const [cornerX, , cornerZ] = leftmost(...[-w, w].flatMap((x) => [[x, 0, d], [x, 0, -d]]));
    const write = (text, ...point) => context.fillText(text, ...spot(...point));
    write("x", 0, away(under(0, front)), front);
    write("y", away(cornerX), 0, away(cornerZ));
    write("t", away(side), under(side, 0), 0);
    write(String(recording.first), away(side), under(side, d), d * 0.93);
    write(String(recording.first + recording.steps - 1), away(side), under(side, -d), -d * 0.93);
  }
}

// From where one looks: as at first, or as the words of `toString` say.
export function firstLook(words = "") {
  const look = { ...FIRST_LOOK, toString: () => [look.yaw, look.pitch, look.zoom].map((number) => number.toFixed(2)).join(",") };
  const [yaw, pitch, zoom] = words.split(",").map(Number);
  if (/^(-?\d{1,4}\.\d\d,?){3}$/.test(words)) Object.assign(look, { yaw, pitch: within(-1.55, pitch, 1.55), zoom: within(0.4, zoom, 6) });
  return look;
}

const within = (low, number, high) => Math.max(low, Math.min(high, number));

// From the box to the screen, by columns: turned about y, then about x, moved away, seen in perspective.
function projection({ yaw, pitch, zoom }, aspect) {
  const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  const focus = 3.1 * zoom * Math.min(1, aspect / WIDE), near = 0.1, far = 20;
  const [p, q] = [-(far + near) / (far - near), (-2 * far * near) / (far - near)];
  const column = (x, y, z, move) => [(focus / aspect) * x, focus * y, p * (z - move) + (move ? q : 0), -(z - move)];
  return new Float32Array([
    ...column(cy, sp * sy, -cp * sy, 0),
    ...column(0, cp, sp, 0),
    ...column(sy, -sp * cy, cp * cy, 0),
    ...column(0, 0, 0, FAR),
  ]);
}

function project(view, [x, y, z], width, height) {
  const row = (i) => view[i] * x + view[4 + i] * y + view[8 + i] * z + view[12 + i];
  return [(0.5 + row(0) / row(3) / 2) * width, (0.5 - row(1) / row(3) / 2) * height];
}
