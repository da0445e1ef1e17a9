// What a config and a dataset have in common for the one who chooses: members to choose from, and what is shown in words.

import { element } from "./dom.js";
import { showText } from "./editor.js";

const MOST_EVENTS = 2 ** 24; // of all recordings beside each other

export const MOST_SHOWN = 100; // recordings beside each other

// The members of a family to choose from and to compare with; each has a name and a value. `other` is a value, "all" or
// null.
export function offer(members, chosen, other) {
  element("family").hidden = members.length < 2;
  const options = members.map(([name, value]) => new Option(name, value, false, value === chosen));
  element("member").replaceChildren(...options);
  const all = members.length > MOST_SHOWN ? `${MOST_SHOWN} of ${members.length} members` : `all ${members.length} members`;
  const others = [["nothing", ""], [all, "all"], ...members.filter(([, value]) => value !== chosen)];
  element("other").replaceChildren(...others.map(([name, value]) => new Option(name, value, false, value === (other ?? ""))));
}

// `choose` is told the member and what to compare it with, as `offer` has it, when either is chosen.
export function onChoice(choose) {
  const number = (text) => (text === "" ? null : text === "all" ? text : Number(text));
  const told = () => choose(number(element("member").value), number(element("other").value));
  for (const id of ["member", "other"]) element(id).addEventListener("change", told);
}

// Those that are shown together with the one that is chosen: all of a family, or as many as can be, in its order.
export function together(family, chosen) {
  const first = Math.floor(Math.max(0, family.indexOf(chosen)) / MOST_SHOWN) * MOST_SHOWN;
  return family.slice(first, first + MOST_SHOWN);
}

// Asks for all recordings, one after the other; of so many events that a browser could not hold them, for the first.
export async function askedAll(questions, ask) {
  const recordings = [];
  let events = 0;
  for (const question of questions) {
    recordings.push(await ask(question));
    events += recordings.at(-1).events;
    if (events > MOST_EVENTS) break;
  }
  return recordings;
}

// The text of a recording's config, the Python that makes the recording from it, and the command that makes a dataset.
export function describe({ text, recipe, command, digest }) {
  showText(text);
  element("recipe").textContent = recipe;
  element("command").textContent = command;
  document.body.dataset.digest = digest;
}
