// The sweep of a field, as the form shows it: a button that begins one, and a slider over the members with the values.

import { make } from "./dom.js";
import { PRECISION } from "./ranges.js";
import { yaml } from "./values.js";

const NOT_SWEPT = ["seed", "sweep", "functions", "camera.like"]; // members share their randomness

export const canBeSwept = (path) => !NOT_SWEPT.includes(path);

// A button beside a field that is not swept; `start` begins its sweep.
export function sweepButton(path, start) {
  const title = `Sweep ${path}: several values, and a member for each`;
  const button = make("button", { className: "sweep", textContent: "⇉", title });
  button.setAttribute("aria-label", title);
  button.addEventListener("click", start);
  return button;
}

// Values to begin a sweep with, and the place of the one that the field has; they can be edited then.
export function proposed(schema, value, scale) {
  const values = schema.enum ?? (typeof value === "number" ? numbers(schema, value, scale) : [value]);
  return { values, place: Math.max(0, values.indexOf(value)) };
}

function numbers(schema, value, { low, high, number }) {
  const { type, minimum, exclusiveMinimum, maximum } = [schema, ...(schema.oneOf ?? [])].find((part) => /number|integer/.test(part.type)) ?? {};
  const whole = type === "integer";
  const around = value !== 0 ? [value / 2, value, value * 2] : low < 0 ? [low / 4, 0, high / 4] : [0, number(PRECISION / 4, whole), number(PRECISION / 2, whole)];
  const written = around.map((each) => (whole ? Math.round(each) : Number(each.toPrecision(6))));
  const allowed = (each) => each >= (minimum ?? -Infinity) && each > (exclusiveMinimum ?? -Infinity) && each <= (maximum ?? Infinity);
  return [...new Set(written.map((each, i) => (around[i] === value ? value : each)))].filter(allowed);
}

// Where a member stands on a swept path, whose places are members of the family; the last path's are the nearest.
export class Sweep {
  constructor(sweep, path) {
    const paths = Object.keys(sweep);
    Object.assign(this, { path, values: sweep[path], count: sweep[path].length });
    this.stride = paths.slice(paths.indexOf(path) + 1).reduce((product, later) => product * sweep[later].length, 1);
    this.rest = Object.fromEntries(Object.entries(sweep).filter(([other]) => other !== path));
  }

  place(member) {
    return Math.floor(member / this.stride) % this.count;
  }

  // The member with another value on this path, or that of the sweep without the path.
  moved(member, place) {
    return member + (place - this.place(member)) * this.stride;
  }

  without(member) {
    return Math.floor(member / (this.stride * this.count)) * this.stride + (member % this.stride);
  }
}

// The slider over the values of a swept path, their list as text, and a button that ends the sweep.
export function sweepSlider(sweep, on) {
  const { path, count } = sweep;
  const box = make("div", { className: "member" });
  const slider = make("input", { type: "range", min: 0, max: count - 1, step: 1 });
  const told = make("output"), stop = make("button", { className: "stop", textContent: "✕", title: `Sweep ${path} no longer` });
  const list = make("input", { className: "list", type: "text", spellcheck: false, autocomplete: "off", title: `The values that ${path} has, one for each member` });
  slider.dataset.sweep = path;
  list.dataset.values = path;
  slider.setAttribute("aria-label", `the member by its ${path}`);
  list.setAttribute("aria-label", list.title);
  stop.setAttribute("aria-label", stop.title);
  const tag = make("span", { className: "tag", textContent: "swept", title: `The sweep gives ${path} ${count} values: choose the member that is shown` });
  box.append(tag, slider, told, stop, list);
  slider.addEventListener("input", () => on.choose(Number(slider.value)));
  list.addEventListener("change", () => on.change(list.value));
  stop.addEventListener("click", () => on.stop());
  box.show = (member, typed) => {
    const place = sweep.place(member);
    if (!slider.matches(":active")) slider.value = place;
    told.textContent = `${place + 1} of ${count}`;
    if (list !== document.activeElement) list.value = typed ?? yaml(sweep.values);
  };
  return box;
}
