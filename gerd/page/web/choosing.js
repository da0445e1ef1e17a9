// What a config and a dataset have in common for the one who chooses: members to choose from, and what is shown in words.

import { showText } from "./editor.js";

const element = (id) => document.getElementById(id);

// The members of a family to choose from and to compare with; each has a name and a value.
export function offer(members, chosen, other) {
  element("family").hidden = members.length < 2;
  const options = members.map(([name, value]) => new Option(name, value, false, value === chosen));
  element("member").replaceChildren(...options);
  const others = members.filter(([, value]) => value !== chosen);
  element("other").replaceChildren(new Option("nothing", ""), ...others.map(([name, value]) => new Option(name, value, false, value === other)));
}

// The text of a recording's config, the Python that makes the recording from it, and the command that makes a dataset.
export function describe({ text, recipe, command, digest }) {
  showText(text);
  element("recipe").textContent = recipe;
  element("command").textContent = command;
  document.body.dataset.digest = digest;
}
