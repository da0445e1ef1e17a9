// The recordings of a dataset as a table: sorted, filtered, and only the rows on the screen are in the page.

import { make } from "./dom.js";
import { brief } from "./recording.js";

const ROW = 24; // height, in units of the page
const SPARE = 8; // rows kept above and below those that are seen
const MOST_NAMED = 12; // values of a column in a message
const CONDITION = /^(.+?)(<=|>=|!=|=|<|>)(.*)$/;

export class Table {
  constructor(element, { columns }, open, changed) {
    Object.assign(this, { columns, open, shown: new Set() });
    this.names = new Map(columns.flatMap((column) => [column.name, brief(column.name)].map((name) => [name, column])));
    this.count = columns[0].values.length;
    this.order = { column: null, down: false };
    this.filter = make("input", { type: "search", id: "filter", spellcheck: false, placeholder: "filter: index<10 events>=500" });
    this.classes = make("select", { id: "class", title: "Only recordings with an actor of this class" });
    this.told = make("p", { className: "faint", id: "rows" });
    this.head = make("div", { className: "head" });
    this.body = make("div", { className: "body" });
    this.scroller = make("div", { className: "table", tabIndex: 0 });
    this.scroller.append(this.head, this.body);
    element.classList.add("with-table");
    const conditions = make("div", { className: "conditions" });
    conditions.append(this.filter, this.classes);
    element.append(conditions, this.told, this.scroller);
    this.#offerClasses();
    for (const condition of [this.filter, this.classes]) condition.addEventListener("input", () => {
      this.arrange();
      changed();
    });
    this.scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.#widths();
    this.arrange();
  }

  #widths() {
    const wide = this.columns.map(({ name, values }) => {
      const longest = values.slice(0, 200).reduce((most, value) => Math.max(most, shown(value).length), brief(name).length + 2);
      return `${Math.max(5, Math.min(13, longest)) + 2}ch`;
    });
    this.scroller.style.setProperty("--columns", `5ch ${wide.join(" ")}`);
  }

  // The classes in the columns of classes, each with the number of its recordings.
  #offerClasses() {
    this.named = this.columns.filter((column) => column.class).map(({ values }) => values);
    const counts = new Map();
    for (let row = 0; row < this.count; row++) {
      for (const name of new Set(this.named.map((values) => values[row]))) if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    this.classes.hidden = counts.size < 2;
    this.classes.append(new Option("any class", ""), ...[...counts].sort().map(([name, count]) => new Option(`${name} (${count})`, name)));
  }

  // What an address keeps of the table.
  state() {
    return { filter: this.filter.value || null, class: this.classes.value || null };
  }

  restore({ filter, class: chosen }) {
    this.filter.value = filter?.[0] ?? "";
    this.classes.value = [...this.classes.options].some(({ value }) => value === chosen?.[0]) ? chosen[0] : "";
    this.arrange();
  }

  // Which rows to show, and in which order.
  arrange() {
    const words = this.filter.value.trim().split(/\s+/).filter(Boolean);
    let wrong = "";
    const tests = words.map((word) => {
      const [, name, sign, wanted] = CONDITION.exec(word) ?? [];
      if (!name) return (row) => this.columns.some(({ values }) => shown(values[row]).includes(word));
      const column = this.names.get(name);
      wrong ||= column ? misread(column, name, sign, wanted) : `there is no column ${name}; there are ${[...this.names.keys()].join(", ")}`;
      return (row) => column && holds(column.values[row], sign, wanted);
    });
    const wanted = this.classes.value;
    if (wanted) tests.push((row) => this.named.some((values) => values[row] === wanted));
    this.rows = [...Array(this.count).keys()].filter((row) => tests.every((test) => test(row)));
    const values = this.order.column?.values;
    if (values) this.rows.sort((a, b) => compared(values[a], values[b]) * (this.order.down ? -1 : 1) || a - b);
    this.told.textContent = wrong || `${this.rows.length} of ${this.count} · click: play, shift-click: compare`;
    this.told.classList.toggle("wrong", Boolean(wrong));
    this.#titles();
    this.draw();
  }

  #titles() {
    const titles = this.columns.map((column) => {
      const mark = column === this.order.column ? (this.order.down ? " ↓" : " ↑") : "";
      const title = make("button", { textContent: brief(column.name) + mark, title: `Sort by ${column.name}` });
      title.classList.toggle("swept", column.swept);
      title.addEventListener("click", () => {
        this.order = { column, down: this.order.column === column && !this.order.down };
        this.arrange();
      });
      return title;
    });
    this.head.replaceChildren(make("span", { textContent: "#" }), ...titles);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const last = Math.min(this.rows.length, Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / ROW) + SPARE);
    this.body.style.height = `${this.rows.length * ROW}px`;
    this.body.replaceChildren(...this.rows.slice(first, last).map((row, i) => this.#row(row, first + i)));
  }

  #row(row, place) {
    const line = make("div", { className: "row" });
    line.dataset.row = row;
    line.style.top = `${place * ROW}px`;
    line.classList.toggle("chosen", row === this.chosen);
    line.classList.toggle("other", row !== this.chosen && this.shown.has(row));
    line.append(make("span", { textContent: row }), ...this.columns.map(({ values, swept }) =>
      make("span", { textContent: shown(values[row]), className: swept ? "swept" : "" })));
    line.addEventListener("click", (event) => this.open(row, event.shiftKey));
    return line;
  }

  // Marks the chosen row, and the others that are shown beside it.
  mark(chosen, shown) {
    Object.assign(this, { chosen, shown: new Set(shown) });
    const place = this.rows.indexOf(chosen) * ROW;
    const { scrollTop, clientHeight } = this.scroller;
    if (place >= 0 && (place < scrollTop || place + 2 * ROW > scrollTop + clientHeight)) {
      this.scroller.scrollTop = place - clientHeight / 3;
    }
    this.draw();
  }

  // The row after the chosen one in the table, or before it.
  neighbour(way) {
    const place = this.rows.indexOf(this.chosen);
    return this.rows[Math.max(0, Math.min(this.rows.length - 1, place + way))];
  }
}

const shown = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
  return shown(a).localeCompare(shown(b));
}

// What is wrong with a condition on a column, or nothing; one that is still being typed is not wrong.
function misread({ values }, name, sign, wanted) {
  const there = values.filter((value) => value !== null && value !== undefined);
  if (wanted === "" || !there.length) return "";
  if (there.every((value) => typeof value === "number")) return Number.isNaN(Number(wanted)) ? `${name} is a number, which ${wanted} is not` : "";
  const known = [...new Set(there.map(shown))];
  return sign === "=" && known.length <= MOST_NAMED && !known.includes(wanted) ? `no recording has ${name}=${wanted}; there are ${known.sort().join(", ")}` : "";
}

function holds(value, sign, wanted) {
  const number = Number(wanted);
  const [a, b] = typeof value === "number" && wanted !== "" && !Number.isNaN(number) ? [value, number] : [shown(value), wanted];
  const signs = { "=": a === b, "!=": a !== b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b };
  return signs[sign];
}
