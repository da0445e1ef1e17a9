// What can be taken away from the page: files that the browser saves, and texts that it copies.

import { askedFor, Refused, saved, waitingFor } from "./asking.js";
import { style } from "./colours.js";
import { element, make } from "./dom.js";

const FASTEST_GIF = 50; // pictures per second

// `page` has start, player, chooser and address.
export function prepareSaving(page) {
  const stem = page.start.name.replace(/\.ya?ml$/i, ""), { player, chooser } = page;
  const file = (ending) => {
    const { index, member, labels } = player.recording, isSwept = Object.keys(labels).length > 0 && member !== null;
    return `${stem}-index${index}${isSwept ? `-member${member}` : ""}.${ending}`;
  };
  const yaml = () => download(`${stem}.yaml`, new Blob([element("text").value], { type: "application/yaml" }));
  const actions = {
    save: yaml,
    "save-png": async () => download(file("png"), await picture(player)),
    "save-gif": async () => download(file("gif"), await video(player, chooser)),
    "save-html": async () => download(file("html"), new Blob([await askedFor("html", { recordings: chooser.questions })])),
    copy: () => copy(element("text").value),
    "copy-recipe": () => copy(element("recipe").textContent),
    "copy-command": () => copy(element("command").textContent),
    "copy-link": async () => copy(await page.address.link(page.start.kind === "config" && element("text").value)),
  };
  for (const [id, act] of Object.entries(actions)) {
    element(id).addEventListener("click", async () => {
      element("takeaway").open = false;
      try {
        await waitingFor(act());
        say(id.startsWith("save") ? "saved" : "copied");
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        say(error.message, 15_000);
      }
    });
  }
  for (const id of ["save-gif", "save-html"]) element(id).hidden = Boolean(saved); // they are made by the server
  element("copy-link").hidden = Boolean(saved);
  document.addEventListener("click", (event) => {
    if (!element("takeaway").contains(event.target)) element("takeaway").open = false;
  });
}

function say(text, milliseconds = 2500) {
  element("told").textContent = text;
  setTimeout(() => element("told").textContent === text && (element("told").textContent = ""), milliseconds);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // an older browser, or a page that is not served by this machine
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function download(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

async function video(player, chooser) {
  const question = {
    recordings: chooser.questions,
    fps: Math.min(player.speed, FASTEST_GIF),
    outlines: element("outlines").checked,
    brightness: player.panes.includes("brightness"),
  };
  return new Blob([await askedFor("gif", question)], { type: "image/gif" });
}

// The pictures of the stage as they are, with the words above them.
function picture(player) {
  player.draw(); // now, because the cloud's pixels are there only until the next frame
  const box = element("views").getBoundingClientRect(), ratio = window.devicePixelRatio || 1, margin = 8;
  const canvas = make("canvas", { width: (box.width + 2 * margin) * ratio, height: (box.height + 2 * margin) * ratio });
  const context = canvas.getContext("2d");
  context.fillStyle = style("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(ratio, 0, 0, ratio, (margin - box.left) * ratio, (margin - box.top) * ratio);
  for (const part of element("views").querySelectorAll("canvas")) {
    const { left, top, width, height } = part.getBoundingClientRect();
    context.drawImage(part, left, top, width, height);
  }
  context.textBaseline = "top";
  for (const words of element("views").querySelectorAll("figcaption span:not(:has(span))")) {
    const { font, color } = getComputedStyle(words), { left, top } = words.getBoundingClientRect();
    Object.assign(context, { font, fillStyle: color });
    context.fillText(words.textContent, left, top);
  }
  return new Promise((done) => canvas.toBlob(done));
}
