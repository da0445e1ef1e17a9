// A config: its form and its text, and a recording of it.

import { packText, unpackText, whole } from "./address.js";
import { asked, complain, Line, Refused } from "./asking.js";
import { askedAll, describe, offer, onChoice, together } from "./choosing.js";
import { element } from "./dom.js";
import { markLines, prepareEditor, showText } from "./editor.js";
import { Form } from "./form.js";
import { labelled } from "./recording.js";

const LARGEST_INDEX = 2 ** 32 - 1;

export class Editing {
  constructor(start, player, state, changed) {
    Object.assign(this, { player, changed, file: start.text, text: start.text });
    this.index = Math.min(whole(state, "index", 0), LARGEST_INDEX);
    this.member = whole(state, "member", 0);
    this.other = state.all?.[0] === "on" ? "all" : whole(state, "other", null); // a member, or all of them
    this.count = 1; // of members, as far as is known
    const sets = (state.set ?? []).filter((set) => set.includes("="));
    this.pending = new Map(sets.map((set) => set.split(/=(.*)/s).slice(0, 2))); // path → YAML, not yet in the text
    this.actors = null; // "add", or the number of the one to take away
    this.form = new Form(element("choose"), start.schema, {
      change: (path, value) => this.change(path, value),
      undo: (path) => this.undo(path),
      sweep: (path, values, member) => this.sweep(path, values, member),
      choose: (member) => this.choose(member, this.other),
      add: () => this.changeActors("add"),
      remove: (actor) => this.changeActors(actor),
    });
    this.line = new Line((signal) => this.ask(signal));
    this.#listen(state);
    this.#begin(state);
  }

  #listen(state) {
    element("draws").hidden = element("timing").hidden = false;
    element("previous").addEventListener("click", () => this.move(-1));
    element("next").addEventListener("click", () => this.move(1));
    element("index").addEventListener("change", (event) => this.draw(Math.round(Number(event.target.value))));
    onChoice((member, other) => this.choose(member, other));
    element("revert").addEventListener("click", () => this.rewrite(this.file));
    prepareEditor((text) => this.rewrite(text));
    for (const button of element("timing").querySelectorAll("button")) {
      button.addEventListener("click", () => this.change("timing", button.dataset.timing));
    }
    const onChange = [...element("on-change").querySelectorAll("button")];
    const take = (which) => {
      for (const each of onChange) each.setAttribute("aria-checked", each.dataset.draw === which);
      this.takesNext = which === "next";
    };
    for (const button of onChange) {
      button.addEventListener("click", () => {
        take(button.dataset.draw);
        this.changed();
      });
    }
    take(state.change?.[0] === "next" ? "next" : "same");
  }

  // With the text of the address, where it has one.
  async #begin(state) {
    try {
      if (state.text) this.text = await unpackText(state.text[0]);
    } catch {
      element("notice").textContent = "The address holds a text that cannot be read; this is the file.";
    }
    showText(this.text);
    this.line.call();
  }

  get isEdited() {
    return this.text !== this.file || this.pending.size > 0;
  }

  async state() {
    return {
      index: this.index || null,
      member: this.member || null,
      other: this.other === "all" ? null : this.other,
      all: this.other === "all" ? "on" : null,
      change: this.takesNext ? "next" : null,
      set: [...this.pending].map(([path, value]) => `${path}=${value}`),
      text: this.text === this.file ? null : await packText(this.text),
    };
  }

  // What is asked for of all members that are shown.
  get #wanted() {
    const overrides = [...this.pending].map(([path, value]) => `${path}=${value}`);
    return { text: this.text, overrides, index: this.index, actors: this.actors };
  }

  get questions() {
    return shown(this.count, this.member, this.other).map((member) => ({ ...this.#wanted, member }));
  }

  change(path, value) {
    this.pending.set(path, value);
    if (this.takesNext) this.index++;
    this.#again();
  }

  undo(path) {
    this.pending.delete(path);
    this.pending.delete(`sweep.${path}`);
    this.#again();
  }

  // What is swept changes, and with it the numbers of the members.
  sweep(path, values, member) {
    this.pending.set(path, values);
    this.member = member;
    this.#again();
  }

  // The form waits for the answer, because the other actors may have other numbers then.
  changeActors(what) {
    this.pending.clear();
    this.actors = what;
    element("choose").inert = true;
    this.#again();
  }

  rewrite(text) {
    this.text = text;
    this.pending.clear();
    element("notice").textContent = "";
    element("described").hidden = true; // until it is shown
    showText(text);
    this.#again();
  }

  move(way) {
    this.draw(this.index + way);
  }

  draw(index) {
    this.index = Math.max(0, Math.min(LARGEST_INDEX, index || 0));
    element("index").value = this.index;
    this.#again();
  }

  choose(member, other) {
    Object.assign(this, { member, other });
    this.#again();
  }

  #again() {
    element("edited").hidden = !this.isEdited;
    this.changed();
    this.line.call();
  }

  // The k-th of those that are shown has been chosen.
  pick(k) {
    this.choose(shown(this.count, this.member, this.other)[k], this.other);
  }

  // The member that is described is asked for first, because only its answer says which others there are.
  async ask(signal) {
    const sent = new Map(this.pending), { text, actors, member, other } = this, wanted = this.#wanted;
    const question = (each) => asked({ ...wanted, member: each }, signal);
    try {
      const described = await question(member), members = shown(described.member_count, described.member, other);
      const recordings = await askedAll(members, (each) => (each === described.member ? described : question(each)));
      if (this.text !== text) return; // typed on meanwhile
      this.count = described.member_count;
      if (this.actors === actors) this.actors = null;
      if (this.member === member) this.member = described.member; // the last one, where there are not so many
      for (const [path, value] of sent) if (this.pending.get(path) === value) this.pending.delete(path);
      const main = members.indexOf(described.member);
      if (main < recordings.length) this.show(recordings, main, other === "all" && recordings.length === members.length ? across(described) : []);
      else this.show([described], 0, []);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.actors = null;
      if (!document.body.dataset.digest) await this.#showLast(signal);
      this.#explain(error);
    } finally {
      element("choose").inert = false;
    }
  }

  // Where the address asks for what is wrong: the text without the changes, or else the file, so that there is a form.
  async #showLast(signal) {
    for (const text of [this.text, this.file]) {
      try {
        const { index, member } = this;
        const recording = await asked({ text, overrides: [], index, member, actors: null }, signal);
        this.#present([recording], 0, []);
        showText(this.text);
        return;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
    }
  }

  #explain(error) {
    element("edited").hidden = !this.isEdited;
    const homeless = this.form.complain(error.problems, this.pending);
    const rest = homeless.map(({ path, line, message }) => [line && `line ${line}`, path, message].filter(Boolean).join(": "));
    const fields = error.problems.length - homeless.length;
    if (!error.problems.length) rest.push(error.message);
    else if (fields) rest.unshift(`Not shown: ${fields} ${fields === 1 ? "value is" : "values are"} not allowed.`);
    markLines(error.problems.map(({ line }) => line));
    element("undescribed").hidden = this.text === this.shown;
    complain(rest.join("\n"));
  }

  show(recordings, main, across) {
    this.text = recordings[main].text;
    complain("");
    element("undescribed").hidden = true;
    markLines([]);
    this.form.complain([]);
    this.#present(recordings, main, across);
    element("edited").hidden = !this.isEdited;
    this.changed();
  }

  #present(recordings, main, across) {
    const { text, members, member, timing, sweep } = recordings[main];
    this.shown = text;
    this.form.show(recordings[main], this.pending);
    for (const button of element("timing").querySelectorAll("button")) {
      button.setAttribute("aria-checked", button.dataset.timing === timing);
      button.disabled = "timing" in sweep;
    }
    if (document.activeElement !== element("index")) element("index").value = this.index; // it may be being typed
    offer(members.map((labels, k) => [`${k}: ${labelled(labels)}`, k]), member, this.other);
    this.player.show(recordings, main, across);
    describe(recordings[main]);
  }
}

// The members that are shown, of so many.
function shown(count, member, other) {
  if (other === "all") return together([...Array(Math.max(count, member + 1)).keys()], member);
  return other === null || other === member || other >= count ? [member] : [member, other];
}

// How many members lie beside each other: as many as the path that is swept last has values.
function across({ sweep, member_count }) {
  const last = Object.values(sweep).map((values) => values.length).filter((count) => count > 1).at(-1);
  return last < member_count ? [last] : [];
}
