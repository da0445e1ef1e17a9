// A form made from the config's JSON schema and its values: what the schema has, the form has.
//
// Every field is a text box that takes YAML, in all forms that the config allows; the numbers in its value have
// sliders, too. A change is given to `on.change(path, yaml)`, and `on.undo(path)` takes it back. A field that is swept
// has a slider with a place for each of its values, and `on.choose(member)` is told which member that is; a change of
// what is swept is given to `on.sweep(path, yaml, member)`.

import { actorColour } from "./colours.js";
import { make } from "./dom.js";
import { Pattern } from "./pattern.js";
import { nickname, PRECISION, Ranges } from "./ranges.js";
import { canBeSwept, proposed, Sweep, sweepButton, sweepSlider } from "./sweeping.js";
import { at, leaves, put, same, yaml } from "./values.js";

const MOST_SLIDERS = 6; // of one field; a polygon is edited as text

export class Form {
  constructor(element, schema, on) {
    Object.assign(this, { element, schema, on, sweep: {}, member: 0 });
    this.fields = new Map(); // path → {row, input, message, show(value)}
    this.sweeps = new Map(); // swept path → its slider
    this.ranges = new Ranges();
    this.outline = "";
    this.pattern = new Pattern(); // of the camera, in its section
  }

  // Shows the values of a recording's config; builds the form anew only if it has other parts than before. Fields that
  // have been changed since, the pending ones, keep what was typed.
  show({ values, sweep, member, pattern }, pending) {
    Object.assign(this, { values, sweep, member });
    const swept = Object.entries(sweep).map(([path, list]) => [path, list.length]);
    const outline = JSON.stringify([swept, this.#parts(this.schema, values)]);
    if (outline !== this.outline) {
      this.outline = outline;
      this.#build();
    }
    for (const [path, field] of this.fields) {
      if (!pending.has(path)) field.show(at(values, path));
      else field.input.value = pending.get(path);
    }
    for (const [path, slider] of this.sweeps) slider.show(member, pending.get(`sweep.${path}`));
    this.pattern.show(pattern, values.sensor.width, values.sensor.height);
    this.colour();
  }

  // The actors' titles, each with the colour of its curves and its outline.
  colour() {
    this.element.querySelectorAll("[data-actor]").forEach((title) => {
      const number = Number(title.dataset.actor);
      const before = this.values.actors.slice(0, number).map(({ repeat }) => most(repeat));
      title.firstChild.style.background = actorColour(before.reduce((sum, count) => sum + count, 0));
      title.children[1].textContent = `actor ${number}: ${named(this.values.actors[number].shape)}`;
    });
  }

  // Shows what is wrong, each message at the field whose path begins it; gives back the messages of no field. What is
  // wrong with a swept path is shown at the swept field, unless the whole sweep has been typed: it is among the pending.
  complain(problems, pending = new Map()) {
    for (const { row, message } of this.fields.values()) {
      row.classList.remove("wrong");
      message.textContent = "";
    }
    const homeless = [];
    let first = null;
    for (const problem of problems) {
      const [path, rest] = this.#home(problem.path, pending);
      const field = this.fields.get(path);
      if (!field) {
        homeless.push(problem);
        continue;
      }
      field.row.classList.add("wrong");
      first ??= field.row;
      field.message.textContent += `${field.message.textContent && "\n"}${rest && `${rest}: `}${problem.message}`;
      for (let box = field.row.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    }
    requestAnimationFrame(() => first?.scrollIntoView({ block: "nearest" })); // when there is the room that there will be
    return homeless;
  }

  // The field that a path belongs to, and what of the path lies below it.
  #home(path, pending) {
    for (const begin of path.startsWith("sweep.") && !pending.has("sweep") ? [path.slice(6), path] : [path]) {
      const words = begin.split(".");
      for (let count = words.length; count > 0; count--) {
        const above = words.slice(0, count).join(".");
        if (this.fields.has(above)) return [above, words.slice(count).join(".")];
      }
    }
    return ["", path];
  }

  #resolved(schema) {
    const [name, whole, ...others] = schema.anyOf ?? [];
    if (name?.enum && whole?.$ref && !others.length) schema = { ...schema, $ref: whole.$ref }; // a part that may be written as a name alone
    while (schema.$ref) schema = { ...this.schema.$defs[schema.$ref.split("/").pop()], ...schema, $ref: undefined };
    return schema;
  }

  // The names of all parts, from which the form is built.
  #parts(schema, value) {
    schema = this.#resolved(schema);
    if (schema.properties) return Object.entries(schema.properties).map(([name, part]) => [name, this.#parts(part, value?.[name])]);
    if (isList(schema, value)) return value.map((part) => this.#parts(schema.items, part));
    return "field";
  }

  #build() {
    this.fields.clear();
    this.sweeps.clear();
    this.element.replaceChildren();
    const { properties } = this.#resolved(this.schema);
    const single = [], sections = [];
    for (const [name, part] of Object.entries(properties)) {
      const schema = this.#resolved(part);
      if (isList(schema, this.values[name])) {
        const actors = this.values[name].map((value, i) => this.#section(schema.items, value, `${name}.${i}`, i));
        sections.unshift(...actors, this.#adding()); // what moves comes first
      } else if (schema.properties) sections.push(this.#section(part, this.values[name], name, null));
      else single.push(this.#field(schema, name, name));
    }
    const general = section("recording", "What belongs to no part", true);
    general.append(...single);
    this.element.append(...sections, general);
  }

  #adding() {
    const button = make("button", { id: "add-actor", textContent: "+ add an actor", title: "A circle in front of all others, which moves" });
    button.addEventListener("click", () => this.on.add());
    return button;
  }

  #section(part, value, path, actor) {
    const schema = this.#resolved(part);
    const open = actor !== null || !same(value, part.default); // what is at its default is folded away
    const box = section(actor === null ? path.split(".").pop() : "", schema.description, open);
    if (actor !== null) this.#title(box, actor);
    for (const swept of Object.keys(this.sweep)) if (swept === path) box.append(this.#sweepSlider(swept));
    for (const [key, inner] of Object.entries(schema.properties)) {
      const below = this.#resolved(inner);
      const here = `${path}.${key}`;
      box.append(below.properties && !below.oneOf ? this.#section(inner, value[key], here, null) : this.#field(below, here, key));
    }
    if (path === "camera") box.append(this.pattern.element);
    return box;
  }

  #title(box, actor) {
    const remove = make("button", { className: "remove", textContent: "✕", title: `Remove actor ${actor}` });
    remove.setAttribute("aria-label", remove.title);
    remove.addEventListener("click", (event) => {
      event.preventDefault(); // the section is neither opened nor closed
      this.on.remove(actor);
    });
    box.classList.add("actor");
    box.firstChild.dataset.actor = actor;
    box.firstChild.replaceChildren(make("span", { className: "dot" }), make("span"), remove);
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
    input.addEventListener("change", () => this.on.change(path, input.value));
    undo.addEventListener("click", () => this.on.undo(path));
    const paths = Object.keys(this.sweep);
    const inside = paths.filter((swept) => `${swept}.`.startsWith(`${path}.`));
    input.disabled = inside.length > 0 || paths.some((swept) => path.startsWith(`${swept}.`));
    row.classList.toggle("swept", input.disabled);
    row.classList.toggle("wide", input.disabled);
    sliders.append(...inside.map((swept) => this.#sweepSlider(swept)));
    if (!input.disabled && canBeSwept(path)) row.append(sweepButton(path, () => this.#sweep(schema, path)));
    const show = input.disabled ? (value) => (input.value = yaml(value)) : (value) => this.#show(row, input, sliders, schema, path, value ?? schema.default);
    this.fields.set(path, { row, input, message, show });
    return row;
  }

  // A sweep of one path more, the last, whose values are the nearest members.
  #sweep(schema, path) {
    const value = at(this.values, path) ?? schema.default;
    const scale = this.ranges.scale(schema, path, [], 0, Number(value) || 0, this.values.sensor);
    const { values, place } = proposed(schema, value, scale);
    this.on.sweep(`sweep.${path}`, yaml(values), this.member * values.length + place);
  }

  #sweepSlider(path) {
    const sweep = new Sweep(this.sweep, path);
    const slider = sweepSlider(sweep, {
      choose: (place) => this.on.choose(sweep.moved(this.member, place)),
      change: (values) => this.on.sweep(`sweep.${path}`, values, this.member),
      stop: () => this.on.sweep("sweep", yaml(sweep.rest), sweep.without(this.member)),
    });
    this.sweeps.set(path, slider);
    return slider;
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
      scale = this.ranges.scale(schema, path, keys, i, number, this.values.sensor);
      slider.held = value;
      if (slider !== document.activeElement || !slider.matches(":active")) slider.value = scale.place(number);
      slider.title = [nickname(keys), `${yaml(scale.low)} to ${yaml(scale.high)}`].filter(Boolean).join(": ");
    };
    slider.addEventListener("input", () => {
      const number = scale.number(Number(slider.value), whole);
      slider.held = put(slider.held, keys, number);
      input.value = yaml(slider.held);
      this.on.change(path, input.value);
    });
    return slider;
  }
}

// Whether a value is a list of parts that have fields of their own.
const isList = (schema, value) => Boolean(schema.items?.$ref) && Array.isArray(value);

function section(title, description, open) {
  const box = make("details", { open });
  box.append(make("summary", { textContent: title, title: description ?? "" }));
  return box;
}

function choice(words) {
  const select = make("select");
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

// How many actors an entry stands for, at most.
const most = (repeat = 1) => (typeof repeat === "number" ? repeat : Math.max(...Object.values(repeat)[0]));
