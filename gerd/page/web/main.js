// The page: what there is to change or choose, the player that shows it, and the address that keeps both.

import { Address, readAddress } from "./address.js";
import { complain, Refused, started } from "./asking.js";
import { Browsing } from "./browsing.js";
import { dress } from "./colours.js";
import { element } from "./dom.js";
import { Editing } from "./editing.js";
import { Player } from "./player.js";
import { prepareSaving } from "./saving.js";

function tabs(chosen, changed) {
  const all = [...document.querySelectorAll("[role=tab]")];
  const open = (tab) => {
    for (const each of all) {
      each.setAttribute("aria-selected", each === tab);
      element(each.getAttribute("aria-controls")).hidden = each !== tab;
    }
    changed();
  };
  for (const tab of all) tab.addEventListener("click", () => open(tab));
  const first = all.find((tab) => tab.getAttribute("aria-controls") === chosen);
  if (first) open(first);
}

const openTab = () => document.querySelector("[role=tab][aria-selected=true]").getAttribute("aria-controls");

function keyboard(player, chooser) {
  const keys = {
    " ": () => player.toggle(),
    ArrowLeft: (event) => player.go(player.step - (event.shiftKey ? 10 : 1)),
    ArrowRight: (event) => player.go(player.step + (event.shiftKey ? 10 : 1)),
    Home: () => player.go(0),
    End: () => player.go(player.steps - 1),
    ArrowUp: () => chooser.move(-1),
    ArrowDown: () => chooser.move(1),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select") && event.target.id !== "scrub";
    const pressing = event.key === " " && event.target.matches("button, summary");
    if (typing || pressing || event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key](event);
  });
  document.addEventListener("click", (event) => {
    const clicked = event.target.closest("button, summary, [type=checkbox]");
    if (clicked && event.detail > 0) clicked.blur(); // so that the space bar plays after a click, too
  });
}

async function begin() {
  const start = await started();
  const editing = start.kind === "config";
  element("name").textContent = start.name;
  document.title = `${start.name} · GERD`;
  document.body.classList.add(start.kind);
  element("tab-choose").textContent = editing ? "Values" : "Recordings";
  const state = readAddress(), page = { start };
  page.address = new Address(async () => ({
    ...(await page.chooser.state()),
    ...page.player.state(),
    tab: openTab() === "choose" ? null : openTab(),
  }), (tooLong) => {
    element("notice").textContent = tooLong ? "The text is too long for the address: save it, because a reload would lose the changes." : "";
  });
  dress(start.colours, element("theme"), () => {
    page.player?.redraw();
    page.chooser?.form?.colour();
  });
  const changed = () => page.chooser && page.address.changed();
  page.player = new Player(state, changed, (k) => page.chooser.pick(k));
  page.chooser = editing ? new Editing(start, page.player, state, changed) : new Browsing(start, page.player, state, changed);
  tabs(state.tab?.[0], changed);
  keyboard(page.player, page.chooser);
  prepareSaving(page);
}

begin().catch((error) => {
  complain(error instanceof Refused ? error.message : `The page does not work: ${error.message}`);
  if (!(error instanceof Refused)) throw error;
});
