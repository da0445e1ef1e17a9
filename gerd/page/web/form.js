// A form made from the config's JSON schema and its values: what the schema has, the form has.
//
// Every field is a text box that takes YAML, in all forms that the config allows; the numbers in its value have
// sliders, too. A change is given to `change(path, yaml)`, with null where it is taken back.

import { actorColour } from "./draw.js";

const MOST_SLIDERS = 6; // of one field; a polygon is edited as text
const PRECISION = 400; // places of a slider

// Where the schema's range is wide, the part of it that is of use; by the end of the path.
const USUAL = [
  [/translation\.start$/, ({ width, height }, i) => [0, i === 1 ? height : width]],
  [/translation\.(velocity|acceleration)$/, () => [-4, 4]],
  [/translation\.margin$/, ({ width, height }) => [0, Math.min(width, height) / 2 - 1]],
  [/scale\.(start|limits)$/, ({ width, height }) => [1, Math.min(width, height)]],
  [/scale\.velocity$/, () => [-2, 2]],
  [/rotation\.start$/, () => [0, 360]],
  [/rotation\.velocity$/, () => [-20, 20]],
  [/shear\.(start|limits)$/, () => [-1, 1]],
  [/shear\.velocity$/, () => [-0.1, 0.1]],
  [/acceleration$/, () => [-1, 1]],
  [/intensity$/, () => [-2, 2]],
  [/time_scale$/, () => [0.1, 4]],
  [/threshold$/, () => [0.05, 2]],
];

export class Form {
  constructor(element, schema, change) {
    Object.assign(this, { element, schema, change });
    this.fields = new Map(); // path → {row, show(value)}
    this.ranges = new Map(); // path of a number → [low, high]; kept, so that a slider does not jump under the hand
    this.outline = "";
  }

  // Shows the values of a config; builds the form anew only if it has other parts than before. Fields that have been
  // changed since, the pending ones, stay as they are.
  show(values, pending) {
    this.values = values;
    const outline = JSON.stringify(this.#parts(this.schema, values, ""));
    if (outline !== this.outline) {
      this.outline = outline;
      this.#build();
    }
    for (const [path, field] of this.fields) if (!pending.has(path)) field.show(at(values, path));
    this.element.querySelectorAll("[data-actor]").forEach((title) => {
      const number = Number(title.dataset.actor);
      const dot = make("span", { className: "dot" });
      dot.style.background = actorColour(number); // as its curves and its outline
      title.replaceChildren(dot, `actor ${number}: ${named(values.actors[number].shape)}`);
    });
  }

  // Shows what is wrong, each message at the field whose path begins it; gives back the messages of no field.
  complain(problems) {
    for (const { row, message } of this.fields.values()) {
      row.classList.remove("wrong");
      message.textContent = "";
    }
    const homeless = [];
    let first = null;
    for (const problem of problems) {
      let path = problem.path;
      while (path && !this.fields.has(path)) path = path.split(".").slice(0, -1).join(".");
      const field = this.fields.get(path);
      if (!field) {
        homeless.push(problem);
        continue;
      }
      field.row.classList.add("wrong");
      first ??= field.row;
      const below = problem.path.slice(path.length + 1);
      field.message.textContent += `${field.message.textContent && "\n"}${below && `${below}: `}${problem.message}`;
      for (let box = field.row.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    }
    first?.scrollIntoView({ block: "nearest" });
    return homeless;
  }

  #resolved(schema) {
    while (schema.$ref) schema = { ...this.schema.$defs[schema.$ref.split("/").pop()], ...schema, $ref: undefined };
    return schema;
  }

  #parts(schema, value, path) {
    schema = this.#resolved(schema);
    if (schema.properties) {
      return Object.entries(schema.properties).map(([name, part]) => [name, this.#parts(part, value?.[name], `${path}.${name}`)]);
    }
    if (schema.items?.$ref) return value.map((part, i) => this.#parts(schema.items, part, `${path}.${i}`));
    return "field";
  }

  #build() {
    this.fields.clear();
    this.element.replaceChildren();
    const { properties } = this.#resolved(this.schema);
    const single = [], sections = [];
    for (const [name, part] of Object.entries(properties)) {
      const schema = this.#resolved(part);
      if (schema.items?.$ref) {
        const actors = this.values[name].map((value, i) => this.#section(schema.items, value, `${name}.${i}`, i));
        sections.unshift(...actors); // what moves comes first
      } else if (schema.properties) sections.push(this.#section(part, this.values[name], name, null));
      else single.push(this.#field(schema, name, name));
    }
    const general = section("recording", "What belongs to no part", true);
    general.append(...single);
    this.element.append(...sections, general);
  }

  #section(part, value, path, actor) {
    const schema = this.#resolved(part);
    const name = path.split(".").pop();
    const open = actor !== null || !same(value, part.default); // what is at its default is folded away
    const box = section(actor === null ? name : "", schema.description, open);
    if (actor !== null) Object.assign(box.firstChild.dataset, { actor }), box.classList.add("actor");
    for (const [key, inner] of Object.entries(schema.properties)) {
      const below = this.#resolved(inner);
      const here = `${path}.${key}`;
      box.append(below.properties && !below.oneOf ? this.#section(inner, value[key], here, null) : this.#field(below, here, key));
    }
    return box;
  }

  #field(schema, path, name) {
    const row = make("div", { className: "field" });
    row.dataset.path = path;
    const label = make("label", { textContent: name.replaceAll("_", " "), title: described(schema, path) });
    const input = schema.enum ? choice(schema.enum) : make("input", { type: "text", spellcheck: false, autocomplete: "off" });
    input.id = `field-${path}`;
    label.htmlFor = input.id;
    const sliders = make("div", { className: "sliders" });
    const message = make("p", { className: "message" });
    const undo = make("button", { className: "undo", textContent: "undo", title: "Take the change back" });
    row.append(label, sliders, input, message, undo);
    input.addEventListener("change", () => this.change(path, input.value));
    undo.addEventListener("click", () => this.change(path, null));
    this.fields.set(path, { row, message, show: (value) => this.#show(row, input, sliders, schema, path, value ?? schema.default) });
    return row;
  }

  #show(row, input, sliders, schema, path, value) {
    if (!row.classList.contains("wrong") && input !== document.activeElement) input.value = yaml(value);
    const numbers = schema.enum ? [] : leaves(value);
    const shown = numbers.length <= MOST_SLIDERS ? numbers : [];
    const kind = JSON.stringify(shown.map(([keys]) => keys));
    row.classList.toggle("wide", shown.length !== 1 || typeof value !== "number");
    if (sliders.dataset.kind !== kind) {
      sliders.dataset.kind = kind;
      sliders.replaceChildren(...shown.map(([keys], i) => this.#slider(input, schema, path, keys, i)));
    }
    shown.forEach(([, number], i) => sliders.children[i].show(number, value));
  }

  #slider(input, schema, path, keys, i) {
    const slider = make("input", { type: "range", min: 0, max: PRECISION, step: "any" });
    slider.setAttribute("aria-label", [path, ...keys].join("."));
    slider.dataset.path = [path, ...keys].join(".");
    let scale, whole;
    slider.show = (number, value) => {
      whole = [schema, ...(schema.oneOf ?? [])].some((part) => part.type === "integer");
      scale = this.#scale(schema, path, keys, i, number);
      slider.held = value;
      if (slider !== document.activeElement || !slider.matches(":active")) slider.value = scale.place(number);
      slider.title = [nickname(keys), `${yaml(scale.low)} to ${yaml(scale.high)}`].filter(Boolean).join(": ");
    };
    slider.addEventListener("input", () => {
      const number = scale.number(Number(slider.value), whole);
      slider.held = put(slider.held, keys, number);
      input.value = yaml(slider.held);
      this.change(path, input.value);
    });
    return slider;
  }

  // Where a number lies on its slider and back; probabilities are spread out near 0.
  #scale(schema, path, keys, i, number) {
    const key = [path, ...keys].join(".");
    const allowed = [schema, ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].find((part) => /number|integer/.test(part.type)) ?? {};
    const bound = [allowed.minimum ?? allowed.exclusiveMinimum ?? -Infinity, allowed.maximum ?? Infinity];
    let [low, high] = this.ranges.get(key) ?? usual(path, i, this.values.sensor, bound, number, keys);
    if (number < low) low = number;
    if (number > high) high = number;
    this.ranges.set(key, [low, high]);
    const power = low === 0 && high === 1 ? 3 : 1;
    const digits = Math.max(0, Math.ceil(-Math.log10((high - low) / PRECISION)) + (power > 1 ? 1 : 0));
    return {
      low, high,
      place: (value) => PRECISION * ((value - low) / (high - low || 1)) ** (1 / power),
      number: (place, whole) => {
        const value = low + (high - low) * (place / PRECISION) ** power;
        return whole ? Math.round(value) : Math.max(low, Math.min(high, Number(value.toFixed(digits))));
      },
    };
  }
}

// The part of a number's range that its slider covers.
function usual(path, i, sensor, [least, most], number, keys) {
  if (keys.includes("normal") && keys.at(-1) === 1) return [0, Math.max(4 * Math.abs(number), 0.1)];
  if (keys.includes("factor") && path !== "time_scale") return [0.8, 1.2]; // of growth
  if (keys.includes("rotate")) return [-180, 180];
  if (keys.includes("period") || keys.includes("duration")) return [1, Math.max(60, 2 * number)];
  if (keys.includes("phase")) return [0, 360];
  const known = USUAL.find(([end]) => end.test(path));
  const reach = 4 * Math.max(Math.abs(number), 1);
  const [low, high] = known ? known[1](sensor, i) : most - least <= 100 ? [least, most] : [least >= 0 ? least : -reach, reach];
  return [Math.max(low, least), Math.min(high, most)];
}

// What a number in a value is called.
function nickname(keys) {
  const key = keys.at(-1), pairs = { uniform: ["low", "high"], normal: ["mean", "standard deviation"] };
  if (typeof key !== "number") return key ?? "";
  return pairs[keys.at(-2)]?.[key] ?? (keys.length === 1 ? "xy"[key] : String(key));
}

const make = (tag, parts) => Object.assign(document.createElement(tag), parts);

function section(title, description, open) {
  const box = make("details", { open });
  box.append(make("summary", { textContent: title, title: description ?? "" }));
  return box;
}

function choice(words) {
  const select = make("select", {});
  select.append(...words.map((word) => new Option(word, word)));
  return select;
}

function described(schema, path) {
  const lines = [path, schema.description ?? ""];
  if (schema.minimum !== undefined && schema.maximum !== undefined) lines.push(`from ${schema.minimum} to ${schema.maximum}`);
  return lines.filter(Boolean).join("\n");
}

function named(shape) {
  return typeof shape === "string" ? shape : Object.keys(shape)[0] === "text" ? `“${shape.text}”` : Object.keys(shape)[0];
}

function same(a, b) {
  if (a === b || a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  return Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((key) => same(a[key], b[key]));
}

// What a config holds at a path.
const at = (values, path) => path.split(".").reduce((node, key) => node?.[key], values);

// The numbers in a value with the keys that lead to them.
function leaves(value, keys = []) {
  if (typeof value === "number") return [[keys, value]];
  if (value === null || typeof value !== "object") return [];
  const children = Array.isArray(value) ? value.map((part, i) => [i, part]) : Object.entries(value);
  return children.flatMap(([key, part]) => leaves(part, [...keys, key]));
}

// A value with one number in it replaced.
function put(value, [key, ...rest], number) {
  if (key === undefined) return number;
  if (Array.isArray(value)) return value.map((part, i) => (i === key ? put(part, rest, number) : part));
  return { ...value, [key]: put(value[key], rest, number) };
}

// Plain data as YAML on one line.
export function yaml(value) {
  if (Array.isArray(value)) return `[${value.map(yaml).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, part]) => `${yaml(key)}: ${yaml(part)}`).join(", ")}}`;
  }
  if (typeof value === "string" && /^[A-Za-z_][\w.]*$/.test(value) && !/^(true|false|null)$/i.test(value)) return value;
  return JSON.stringify(value);
}
