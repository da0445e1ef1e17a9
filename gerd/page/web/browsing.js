// Recordings that exist: a table to choose from.

import { whole } from "./address.js";
import { asked, complain, Line, Refused, saved } from "./asking.js";
import { askedAll, describe, MOST_SHOWN, offer, onChoice, together } from "./choosing.js";
import { element } from "./dom.js";
import { labelled } from "./recording.js";
import { Table } from "./table.js";

export class Browsing {
  constructor(start, player, state, changed) {
    Object.assign(this, { player, changed, name: start.name, mostOffered: start.most_offered });
    this.columns = new Map(start.columns.map((column) => [column.name, column.values]));
    this.swept = start.columns.filter((column) => column.swept).map((column) => column.name);
    this.table = new Table(element("choose"), start, (row, compare) => this.open(compare ? this.row : row, compare ? row : this.#all), changed);
    this.line = new Line((signal) => this.ask(signal));
    this.row = this.#row(whole(state, "index", 0), whole(state, "member", 0)) ?? 0;
    this.other = this.#row(whole(state, "other_index", null), whole(state, "other_member", 0)) ?? null;
    const all = state.all?.[0] ?? (this.#areTogether ? "on" : "off");
    if (this.other === null && all === "on") this.other = "all";
    this.table.restore(state);
    element("text").readOnly = true;
    onChoice((row, other) => this.open(row, other));
    this.line.call();
  }

  // A page in one file shows all its recordings, unless there are too many.
  get #areTogether() {
    return Boolean(saved) && this.table.count > 1 && this.table.count <= MOST_SHOWN;
  }

  get #all() {
    return this.other === "all" ? "all" : null;
  }

  // A recording is named by its index and its member, which is its place in the family.
  state() {
    const [index, member] = this.#name(this.row || null), [other_index, other_member] = this.#name(this.#all ? null : this.other);
    const all = Boolean(this.#all) === this.#areTogether ? null : this.#all ? "on" : "off";
    return { index, member, other_index, other_member, all, ...this.table.state() };
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

  // What is offered beside the chosen row: its family, and in a page in one file all there is.
  get #relatives() {
    return this.#areTogether ? [...Array(this.table.count).keys()] : this.#family(this.columns.get("index")[this.row]);
  }

  get rows() {
    if (this.#all) return together(this.#relatives, this.row);
    return [this.row, this.other].filter((each) => each !== null);
  }

  get questions() {
    return this.rows.map((row) => ({ row }));
  }

  // How many members lie beside each other: as many as the path that is swept last has values.
  get #across() {
    const rows = this.rows, counts = this.swept.map((path) => new Set(rows.map((row) => JSON.stringify(this.columns.get(path)[row]))).size);
    const last = counts.filter((count) => count > 1).at(-1);
    return this.#all && counts.reduce((product, count) => product * count, 1) === rows.length && last < rows.length ? [last] : [];
  }

  move(way) {
    this.open(this.table.neighbour(way), this.#all);
  }

  // The k-th of those that are shown has been chosen.
  pick(k) {
    this.open(this.rows[k], this.other);
  }

  open(row, other) {
    Object.assign(this, { row, other: other === row ? null : other });
    this.changed();
    this.line.call();
  }

  async ask(signal) {
    const { row, other, rows, questions } = this, across = this.#across;
    this.table.mark(row, rows);
    try {
      const recordings = await askedAll(questions, (question) => this.#asked(question, signal));
      complain("");
      const main = Math.min(rows.indexOf(row), recordings.length - 1);
      this.player.show(recordings, main, recordings.length === rows.length ? across : []);
      describe(recordings[main]);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      complain(error.message);
    }
    const family = this.#relatives;
    const name = (each) => labelled(Object.fromEntries(this.swept.map((path) => [path, this.columns.get(path)[each]])));
    const members = family.slice(0, this.mostOffered).map((each, k) => [`${k}: ${name(each) || `index ${this.columns.get("index")[each]}`}`, each]);
    for (const each of other === "all" || other === null ? [] : [other]) if (!family.includes(each)) members.push([`row ${each}`, each]);
    offer(members, row, other);
  }

  // Those that are shown already are not asked for again.
  async #asked(question, signal) {
    const kept = this.kept?.get(question.row) ?? (await asked(question, signal));
    const rows = new Set(this.rows);
    this.kept = new Map([...(this.kept ?? []), [question.row, kept]].filter(([row]) => rows.has(row)));
    return kept;
  }
}
