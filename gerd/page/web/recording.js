// A recording from its bytes, as gerd/page/answers.py describes them.

export function unpack(buffer) {
  const bytes = new Uint8Array(buffer);
  const length = new DataView(buffer).getUint32(4, true);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== "GERD") throw new Error("these are not the bytes of a recording");
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  let at = 8 + length;
  const take = (Type, count) => {
    const part = new Type(buffer, at, count);
    at += part.byteLength;
    return part;
  };
  const recording = {
    ...head,
    offsets: take(Uint32Array, head.steps + 1),
    packed: take(Uint32Array, head.events),
    times: take(Float32Array, head.timing === "exact" ? head.events : 0),
    truth: take(Float32Array, head.steps * head.actors.length * 18),
  };
  if (head.timing === "step") recording.times = timesOfSteps(recording);
  recording.counts = counts(recording);
  return recording;
}

// In step timing, the time of each event is its step.
function timesOfSteps({ steps, offsets, events }) {
  const times = new Float32Array(events);
  for (let step = 0; step < steps; step++) times.fill(step, offsets[step], offsets[step + 1]);
  return times;
}

// ON, OFF and background events of each step.
function counts({ steps, offsets, packed }) {
  const on = new Uint32Array(steps), off = new Uint32Array(steps), background = new Uint32Array(steps);
  for (let step = 0; step < steps; step++) {
    for (let i = offsets[step]; i < offsets[step + 1]; i++) {
      if (packed[i] & 2) on[step]++;
      else off[step]++;
      background[step] += packed[i] & 1;
    }
  }
  return { on, off, background };
}

// A number of the ground truth: order 0 for T's parameters, 1 for velocities, 2 for accelerations.
export function truth(recording, step, actor, order, parameter) {
  return recording.truth[((step * recording.actors.length + actor) * 3 + order) * 6 + parameter];
}

// T of an actor at a step, as [a, b, c, d, x, y] of a canvas: x' = a·x + c·y + x, y' = b·x + d·y + y.
export function matrix(recording, step, actor) {
  const [x, y, scaleX, scaleY, rotation, shear] = [0, 1, 2, 3, 4, 5].map((k) => truth(recording, step, actor, 0, k));
  const cos = Math.cos(rotation), sin = Math.sin(rotation);
  return [cos * scaleX, sin * scaleX, (cos * shear - sin) * scaleY, (sin * shear + cos) * scaleY, x, y];
}

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// A field's path as short as it is still clear: actors.0.scale.start is 0.scale.start.
export const brief = (path) => path.replace(/^actors\./, "");

export function labelled(labels) {
  const parts = Object.entries(labels).map(([path, value]) => `${brief(path)}=${JSON.stringify(value)}`);
  return parts.join(", ");
}
