// Recordings that exist: a table to choose from.

import { whole } from "./address.js";
import { asked, complain, Line, Refused } from "./asking.js";
import { describe, offer, onChoice } from "./choosing.js";
import { element } from "./dom.js";
import { labelled } from "./recording.js";
import { Table } from "./table.js";

export class Browsing {
  constructor(start, player, state, changed) {
    Object.assign(this, { player, changed, name: start.name, mostOffered: start.most_offered });
    this.columns = new Map(start.columns.map((column) => [column.name, column.values]));
    this.swept = start.columns.filter((column) => column.swept).map((column) => column.name);
    this.table = new Table(element("choose"), start.columns, (row, compare) => this.open(compare ? this.row : row, compare ? row : null));
    this.line = new Line((signal) => this.ask(signal));
    this.row = this.#row(whole(state, "index", 0), whole(state, "member", 0)) ?? 0;
    this.other = this.#row(whole(state, "other_index", null), whole(state, "other_member", 0)) ?? null;
    this.table.filter.value = state.filter?.[0] ?? "";
    this.table.filter.addEventListener("input", changed);
    this.table.arrange();
    element("text").readOnly = true;
    onChoice((row, other) => this.open(row, other));
    this.line.call();
  }

  // A recording is named by its index and its member, which is its place in the family.
  state() {
    const [index, member] = this.#name(this.row || null), [other_index, other_member] = this.#name(this.other);
    return { index, member, other_index, other_member, filter: this.table.filter.value || null };
  }

  #name(row) {
    if (row === null) return [null, null];
    const index = this.columns.get("index")[row];
    return [index, this.#family(index).indexOf(row)];
  }

  #row(index, member) {
    return this.#family(index)[member];
  }

  #family(index) {
    return this.columns.get("index").flatMap((each, row) => (each === index ? [row] : []));
  }

  get questions() {
    return [this.row, this.other].filter((each) => each !== null).map((row) => ({ row }));
  }

  move(way) {
    this.open(this.table.neighbour(way), null);
  }

  open(row, other) {
    Object.assign(this, { row, other: other === row ? null : other });
    this.changed();
    this.line.call();
  }

  async ask(signal) {
    const { row, other } = this;
    this.table.mark(row, other);
    try {
      const recordings = await Promise.all(this.questions.map((question) => asked(question, signal)));
      complain("");
      this.player.show(recordings);
      describe(recordings[0]);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      complain(error.message);
    }
    const family = this.#family(this.columns.get("index")[row]);
    const name = (each) => labelled(Object.fromEntries(this.swept.map((path) => [path, this.columns.get(path)[each]])));
    const members = family.slice(0, this.mostOffered).map((each, k) => [`${k}: ${name(each)}`, each]);
    if (other !== null && !family.includes(other)) members.push([`row ${other}`, other]);
    offer(members, row, other);
  }
}
