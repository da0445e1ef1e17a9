// The words above a picture: which recording it is, its shapes in their colours, and its events.

import { actorColour } from "./colours.js";
import { make } from "./dom.js";
import { brief as shortened, labelled, sum } from "./recording.js";

// Units of the page: widths with room for the totals, without any for the whole name, and without any for numbers.
const ROOMY = 560, COMPACT = 390, NARROW = 280;
const MOST_NAMED = 8; // shapes

// `many` says that there are several recordings of little room, and `classes` that they show different shapes.
export function captioned(recording, step, width, { many, classes }) {
  const part = (textContent, className) => make("span", { textContent, className });
  const { on, off, background } = recording.counts;
  const what = part(named(recording, width, many), "what");
  what.title = recording.name;
  const numbers = [part(`${on[step]} ON`, "on"), part(`${off[step]} OFF`, "off")];
  const totals = part(`of ${sum(on)} ON, ${sum(off)} OFF, ${sum(background)} noise`, "faint");
  return [what, ...(classes ? shapes(recording) : []), ...(width < NARROW ? [] : numbers), ...(width < ROOMY ? [] : [totals])];
}

// The recording's name, or as much of it as tells it from the others where there is little room.
function named({ labels, name }, width, many) {
  const values = Object.values(labels);
  if (!values.length || (!many && width >= COMPACT)) return name;
  return many ? values.map(brief).join(" · ") : labelled(labels);
}

// What the values above the pictures of a family are those of.
export function heading([{ labels }]) {
  return Object.keys(labels).map(shortened).join(" · ");
}

const brief = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : typeof value === "string" ? value : JSON.stringify(value));

// The class of each actor that is in the recording.
function shapes({ shapes }) {
  const present = shapes.map((name, actor) => [name, actor]).filter(([name]) => name !== null);
  const words = present.slice(0, MOST_NAMED).map(([name, actor]) => {
    const word = make("span", { className: "shape", textContent: name });
    word.style.color = actorColour(actor);
    return word;
  });
  if (present.length > MOST_NAMED) words.push(make("span", { className: "faint more", textContent: `and ${present.length - MOST_NAMED} more` }));
  const box = make("span", { className: "shapes", title: present.map(([name, actor]) => `actor ${actor}: ${name}`).join("\n") });
  box.append(...words);
  return words.length ? [box] : [];
}
