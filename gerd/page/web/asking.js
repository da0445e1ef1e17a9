// Questions to the server, one at a time, and what is wrong with them; a page in one file has the answers with it.

import { fromText, unpacked } from "./bytes.js";
import { element } from "./dom.js";
import { unpack } from "./recording.js";

export const saved = element("saved") && JSON.parse(element("saved").textContent); // where the page is one file

const TOKEN = "gerd-token"; // the name under which the browser keeps it, for this address and port only

const PATIENCE = 1000; // milliseconds after which a newer question ends the one that is being answered

export class Refused extends Error {
  constructor({ message, problems = [] }) {
    super(message);
    this.problems = problems;
  }
}

// What the server wants to know from whoever asks. It comes in the address that `gerd view` prints, and is kept by the
// browser, so that links, which do not have it, and other tabs work as well; then it is taken out of the address.
function token() {
  const here = new URL(location.href), given = here.searchParams.get("token");
  try {
    if (given !== null) localStorage.setItem(TOKEN, given);
    here.searchParams.delete("token");
    if (given !== null) history.replaceState(null, "", here);
    return given ?? localStorage.getItem(TOKEN) ?? "";
  } catch { // a browser that keeps nothing: the address does
    return given ?? "";
  }
}

const known = saved ? "" : token();

// What a page needs to begin with.
export async function started() {
  return saved ?? (await answered("start")).json();
}

// The answer as bytes; `what` is recording, gif or html.
export async function askedFor(what, question, signal) {
  return (await answered(what, { method: "POST", body: JSON.stringify(question), signal })).arrayBuffer();
}

async function answered(what, options = {}) {
  const { signal } = options;
  let response;
  try {
    response = await fetch(`api/${what}`, { ...options, headers: { Authorization: `Bearer ${known}` } });
  } catch {
    const replaced = "waiting for the newest change";
    throw new Refused({ message: signal?.aborted ? replaced : "gerd view does not answer; has it been stopped?" });
  }
  if (!response.ok) throw new Refused(await response.json().catch(() => ({ message: `gerd view has failed (${response.status}); its terminal says why` })));
  return response;
}

export async function asked(question, signal) {
  if (!saved) return unpack(await askedFor("recording", question, signal));
  return unpack((await unpacked(fromText(saved.packed[question.row]), "deflate")).buffer);
}

// Shows that something is being worked at, if it takes long.
export async function waitingFor(promise) {
  const say = (text) => Object.assign(element("waiting"), { textContent: text, hidden: false });
  const slow = setTimeout(say, 300, "working …");
  const slower = setTimeout(say, 6000, "working … (what is used for the first time may have to be compiled: a minute, once)");
  try {
    return await promise;
  } finally {
    clearTimeout(slow);
    clearTimeout(slower);
    element("waiting").hidden = true;
  }
}

// One question at a time; of those asked meanwhile only the last is put.
export class Line {
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
    try {
      await waitingFor(this.#all());
    } finally {
      this.busy = false;
    }
  }

  async #all() {
    while (this.again) {
      this.again = false;
      this.controller = new AbortController();
      await this.work(this.controller.signal);
      clearTimeout(this.ending);
      this.ending = undefined;
    }
  }
}

// What is wrong, above the fields; while it is said, what is shown is not what was asked for.
export function complain(message) {
  element("error").textContent = message;
  element("error").hidden = !message;
  element("stage").classList.toggle("stale", Boolean(message));
  element("described").hidden = Boolean(message);
}
