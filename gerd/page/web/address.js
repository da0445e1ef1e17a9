// The state of the page in its address, behind the #: what a reload keeps and a link shows again.
//
// A state is plain data: each name has a string, or a list of them. What stands behind the # is not sent to the server;
// the text of a config that comes from there is asked for like one that was typed, and the server trusts neither.

import { fromText, packed, toText, unpacked } from "./bytes.js";

const QUIET = 150; // milliseconds without a change, after which the address is written
const LONGEST_TEXT = 2 ** 22; // bytes of a config, as the server has it
const LONGEST_ADDRESS = 2 ** 19; // characters; browsers take a little more
const FORMAT = "deflate-raw";

export class Address {
  // `state()` promises the whole state; `told(tooLong)` hears when it begins or ceases to be too long for an address.
  constructor(state, told) {
    Object.assign(this, { state, told, tooLong: false });
    window.addEventListener("hashchange", () => location.reload()); // another link in the same tab
  }

  // Something has changed; writes when it has been quiet for a while.
  changed() {
    clearTimeout(this.due);
    this.due = setTimeout(() => this.write(), QUIET);
  }

  async write() {
    const hash = fragment(await this.state());
    const tooLong = hash.length > LONGEST_ADDRESS;
    if (tooLong !== this.tooLong) this.told(tooLong);
    this.tooLong = tooLong;
    if (!tooLong && hash !== location.hash) history.replaceState(null, "", page() + hash);
  }

  // The address of what is shown, with the text that the page may have taken from the server's file.
  async link(text) {
    return page() + fragment({ ...(await this.state()), text: text && (await packText(text)) });
  }
}

const page = () => location.href.split("#")[0];

function fragment(state) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== null && each !== undefined) parts.append(name, each);
  }
  const text = parts.toString();
  return text && `#${text}`;
}

export function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1)), state = Object.create(null); // names are a stranger's, too
  for (const [name, value] of parts) (state[name] ??= []).push(value);
  return state;
}

// A whole number of a state, or `otherwise`.
export function whole(state, name, otherwise) {
  const text = state[name]?.[0];
  return /^\d{1,10}$/.test(text) ? Number(text) : otherwise;
}

// A config's text in as few characters as an address needs for it, and back.
export async function packText(text) {
  return toText(await packed(new TextEncoder().encode(text), FORMAT));
}

export async function unpackText(characters) {
  return new TextDecoder("utf-8", { fatal: true }).decode(await unpacked(fromText(characters), FORMAT, LONGEST_TEXT));
}
