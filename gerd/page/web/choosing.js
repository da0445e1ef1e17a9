// What a config and a dataset have in common for the one who chooses: members to choose from, and what is shown in words.

import { element } from "./dom.js";
import { showText } from "./editor.js";

// The members of a family to choose from and to compare with; each has a name and a value.
export function offer(members, chosen, other) {
  element("family").hidden = members.length < 2;
  const options = members.map(([name, value]) => new Option(name, value, false, value === chosen));
  element("member").replaceChildren(...options);
  const others = members.filter(([, value]) => value !== chosen);
  element("other").replaceChildren(new Option("nothing", ""), ...others.map(([name, value]) => new Option(name, value, false, value === other)));
}

// `choose` is told the member and the one to compare it with, or null, when either is chosen.
export function onChoice(choose) {
  const number = (id) => (element(id).value === "" ? null : Number(element(id).value));
  for (const id of ["member", "other"]) element(id).addEventListener("change", () => choose(number("member"), number("other")));
}

// The text of a recording's config, the Python that makes the recording from it, and the command that makes a dataset.
export function describe({ text, recipe, command, digest }) {
  showText(text);
  element("recipe").textContent = recipe;
  element("command").textContent = command;
  document.body.dataset.digest = digest;
}
