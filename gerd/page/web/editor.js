// The text of a config with the numbers of its lines beside it.

import { element, make } from "./dom.js";

export function showText(text) {
  if (element("text").value !== text) element("text").value = text;
  number();
}

// Marks the lines at which something is wrong.
export function markLines(lines) {
  [...element("lines").children].forEach((line, i) => line.classList.toggle("wrong", lines.includes(i + 1)));
}

function number() {
  const count = element("text").value.split("\n").length, lines = element("lines");
  while (lines.children.length > count) lines.lastChild.remove();
  for (let line = lines.children.length + 1; line <= count; line++) {
    lines.append(make("div", { textContent: line }));
  }
  scroll();
}

const scroll = () => (element("lines").scrollTop = element("text").scrollTop);

// `changed` gets the text whenever it is edited.
export function prepareEditor(changed) {
  element("text").addEventListener("scroll", scroll);
  element("text").addEventListener("input", () => {
    markLines([]);
    number();
    changed(element("text").value);
  });
}
