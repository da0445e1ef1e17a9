// The page: asks for recordings, gives them to the player, and offers what can be changed or chosen.

import { css } from "./draw.js";
import { Form } from "./form.js";
import { Player } from "./player.js";
import { labelled, unpack } from "./recording.js";
import { Table } from "./table.js";

const element = (id) => document.getElementById(id);
const saved = element("saved") && JSON.parse(element("saved").textContent); // where the page is one file

const MOST_MEMBERS = 500; // of a family that can be chosen by name

class Refused extends Error {
  constructor({ message, problems = [] }) {
    super(message);
    this.problems = problems;
  }
}

async function asked(question, signal) {
  if (saved) return unpack(await inflated(saved.packed[question.position]));
  let response;
  try {
    response = await fetch("api/recording", { method: "POST", body: JSON.stringify(question), signal });
  } catch {
    const replaced = "waiting for the newest change";
    throw new Refused({ message: signal?.aborted ? replaced : "gerd view does not answer; has it been stopped?" });
  }
  if (!response.ok) throw new Refused(await response.json().catch(() => ({ message: `gerd view has failed (${response.status}); its terminal says why` })));
  return unpack(await response.arrayBuffer());
}

async function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

const PATIENCE = 1000; // milliseconds after which a newer question ends the one that is being answered

// One question at a time; of those asked meanwhile only the last is put.
class Line {
  constructor(work) {
    this.work = work;
  }

  async call() {
    this.again = true;
    if (this.busy) {
      this.ending ??= setTimeout(() => this.controller.abort(), PATIENCE);
      return;
    }
    this.busy = true;
    const slow = setTimeout(() => (element("waiting").hidden = false), 300);
    try {
      while (this.again) {
        this.again = false;
        this.controller = new AbortController();
        await this.work(this.controller.signal);
        clearTimeout(this.ending);
        this.ending = undefined;
      }
    } finally {
      this.busy = false;
      clearTimeout(slow);
      element("waiting").hidden = true;
    }
  }
}

function complain(message) {
  element("error").textContent = message;
  element("error").hidden = !message;
  element("stage").classList.toggle("stale", Boolean(message));
}

function told(recording, name, member) {
  const swept = Object.keys(member).length ? `, **${python(member)}` : "";
  element("recipe").textContent = `config = gerd.load("${name}")\ngerd.simulate(config, ${recording.index}${swept}).digest\n# ${recording.digest}`;
  document.body.dataset.digest = recording.digest;
}

const python = (data) => JSON.stringify(data).replace(/\b(true|false|null)\b/g, (word) => ({ true: "True", false: "False", null: "None" })[word]);

// A config: its form and its text, and a draw of it.
class Editing {
  constructor(start, player) {
    Object.assign(this, { player, name: start.name, text: start.text, index: 0, member: 0, other: null });
    this.pending = new Map(); // path → YAML, not yet in the text
    this.form = new Form(element("choose"), start.schema, (path, value) => this.change(path, value));
    this.line = new Line((signal) => this.ask(signal));
    element("draws").hidden = false;
    element("previous").addEventListener("click", () => this.move(-1));
    element("next").addEventListener("click", () => this.move(1));
    element("index").addEventListener("change", (event) => this.draw(Math.round(Number(event.target.value))));
    element("member").addEventListener("change", (event) => this.choose(Number(event.target.value), this.other));
    element("other").addEventListener("change", (event) => this.choose(this.member, event.target.value === "" ? null : Number(event.target.value)));
    element("text").addEventListener("input", (event) => this.rewrite(event.target.value));
    for (const button of element("on-change").querySelectorAll("button")) {
      button.addEventListener("click", () => {
        for (const each of element("on-change").querySelectorAll("button")) each.setAttribute("aria-checked", each === button);
        this.takesNext = button.dataset.draw === "next";
      });
    }
    this.line.call();
  }

  change(path, value) {
    if (value === null) this.pending.delete(path);
    else this.pending.set(path, value);
    if (this.takesNext) this.index++;
    this.line.call();
  }

  rewrite(text) {
    this.text = text;
    this.pending.clear();
    this.line.call();
  }

  move(way) {
    this.draw(this.index + way);
  }

  draw(index) {
    this.index = Math.max(0, Math.min(2 ** 32 - 1, index || 0));
    element("index").value = this.index;
    this.line.call();
  }

  choose(member, other) {
    Object.assign(this, { member, other });
    this.line.call();
  }

  async ask(signal) {
    const sent = new Map(this.pending), text = this.text;
    const overrides = [...sent].map(([path, value]) => `${path}=${value}`);
    const question = (member) => ({ text, overrides, index: this.index, member });
    try {
      const recordings = [await asked(question(this.member), signal)];
      if (this.other !== null && this.other < recordings[0].members.length) recordings.push(await asked(question(this.other), signal));
      if (this.text !== text) return; // typed on meanwhile
      for (const [path, value] of sent) if (this.pending.get(path) === value) this.pending.delete(path);
      this.show(recordings);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const homeless = this.form.complain(error.problems);
      const rest = homeless.map(({ path, line, message }) => [line && `line ${line}`, path, message].filter(Boolean).join(": "));
      const fields = error.problems.length - homeless.length;
      if (!error.problems.length) rest.push(error.message);
      else if (fields) rest.unshift(`Not shown: ${fields} ${fields === 1 ? "value is" : "values are"} not allowed.`);
      complain(rest.join("\n"));
    }
  }

  show(recordings) {
    const [{ text, values, members, member }] = recordings;
    Object.assign(this, { text, member });
    complain("");
    this.form.complain([]);
    this.form.show(values, this.pending);
    if (element("text").value !== text) element("text").value = text;
    element("index").value = this.index;
    offer(members.map((labels, k) => [labelled(labels), k]), member, this.other);
    this.player.show(recordings);
    told(recordings[0], this.name, members[member] ?? {});
  }
}

// Recordings that exist: a table to choose from.
class Browsing {
  constructor(start, player) {
    Object.assign(this, { player, name: start.name, position: 0, other: null });
    this.columns = new Map(start.columns.map((column) => [column.name, column.values]));
    this.swept = start.columns.filter((column) => column.swept).map((column) => column.name);
    this.table = new Table(element("choose"), start.columns, (row, compare) => this.open(compare ? this.position : row, compare ? row : null));
    this.line = new Line((signal) => this.ask(signal));
    element("text").readOnly = true;
    element("member").addEventListener("change", (event) => this.open(Number(event.target.value), this.other));
    element("other").addEventListener("change", (event) => this.open(this.position, event.target.value === "" ? null : Number(event.target.value)));
    this.line.call();
  }

  move(way) {
    this.open(this.table.neighbour(way), null);
  }

  open(position, other) {
    Object.assign(this, { position, other: other === position ? null : other });
    this.line.call();
  }

  async ask(signal) {
    const { position, other } = this;
    this.table.mark(position, other);
    try {
      const recordings = await Promise.all([position, other].filter((each) => each !== null).map((each) => asked({ position: each }, signal)));
      complain("");
      this.player.show(recordings);
      element("text").value = recordings[0].text;
      told(recordings[0], `${this.name}.yaml`, recordings[0].labels);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      complain(error.message);
    }
    const indices = this.columns.get("index");
    const family = indices.flatMap((index, row) => (index === indices[position] ? [row] : []));
    const name = (row) => labelled(Object.fromEntries(this.swept.map((path) => [path, this.columns.get(path)[row]])));
    const members = family.slice(0, MOST_MEMBERS).map((row) => [name(row) || `recording ${row}`, row]);
    if (other !== null && !family.includes(other)) members.push([`recording ${other}`, other]);
    offer(members, position, other);
  }
}

// The members of a family to choose from and to compare with.
function offer(members, chosen, other) {
  element("family").hidden = members.length < 2;
  const options = members.map(([name, value]) => new Option(name, value, false, value === chosen));
  element("member").replaceChildren(...options);
  const others = members.filter(([, value]) => value !== chosen);
  element("other").replaceChildren(new Option("nothing", ""), ...others.map(([name, value]) => new Option(name, value, false, value === other)));
}

function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")];
  for (const tab of all) {
    tab.addEventListener("click", () => {
      for (const each of all) {
        each.setAttribute("aria-selected", each === tab);
        element(each.getAttribute("aria-controls")).hidden = each !== tab;
      }
    });
  }
}

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

function saving(name) {
  const say = (text) => {
    element("told").textContent = text;
    setTimeout(() => (element("told").textContent = ""), 2500);
  };
  element("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(element("text").value);
    } catch { // an older browser, or a page that is not served by this machine
      element("text").select();
      document.execCommand("copy");
    }
    say("copied");
  });
  element("save").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([element("text").value], { type: "application/yaml" }));
    Object.assign(document.createElement("a"), { href: address, download: name }).click();
    URL.revokeObjectURL(address);
    say("saved");
  });
}

async function begin() {
  const start = saved ?? (await (await fetch("api/start")).json());
  for (const [name, colour] of Object.entries(start.colours)) document.documentElement.style.setProperty(`--${name}`, css(colour));
  element("name").textContent = start.name;
  document.title = `${start.name} · GERD`;
  const player = new Player(start.colours);
  tabs();
  const editing = start.kind === "config";
  element("tab-choose").textContent = editing ? "Values" : "Recordings";
  document.body.classList.add(start.kind);
  keyboard(player, editing ? new Editing(start, player) : new Browsing(start, player));
  saving(editing ? start.name : `${start.name}.yaml`);
}

begin().catch((error) => {
  complain(`The page does not work: ${error.message}`);
  throw error;
});
