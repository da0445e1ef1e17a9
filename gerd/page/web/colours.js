// The colours of what is drawn: the palette that the server sends, made lighter on a dark page; and which of the two it is.

const root = document.documentElement;
const system = window.matchMedia("(prefers-color-scheme: dark)");
const DARK = [21, 23, 26]; // behind the events
const WHITE = [255, 255, 255];
const KEPT = "gerd-theme";

let palette = { backdrop: WHITE, on: WHITE, off: WHITE, both: WHITE, actors: ["#888888"] };

export const css = ([red, green, blue], alpha = 1) => `rgba(${red}, ${green}, ${blue}, ${alpha})`;
export const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
export const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

const mixed = (colour, other, share) => colour.map((channel, i) => Math.round(channel + (other[i] - channel) * share));
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// A colour that can be seen on a dark ground: as much white in it as it lacks.
function lit(colour, wanted = 0.54) {
  const lightness = (0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]) / 255;
  return mixed(colour, WHITE, Math.max(0, (wanted - lightness) / (1 - lightness)));
}

// Red, green and blue of backdrop, on, off and both.
export function eventColours() {
  const { backdrop, on, off, both } = palette;
  if (!isDark()) return { backdrop, on, off, both };
  return { backdrop: DARK, on: lit(on), off: lit(off), both: lit(both, 0.8) };
}

export function actorColour(actor) {
  const colour = palette.actors[actor % palette.actors.length];
  return isDark() ? css(lit(channels(colour))) : colour;
}

// Takes the palette, and keeps the page and whoever wants to know of it (`changed`) at the light or dark that is chosen:
// the system's, or the one that the button has been set to.
export function dress(colours, button, changed) {
  palette = colours;
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  const apply = () => {
    for (const [name, colour] of Object.entries(eventColours())) root.style.setProperty(`--${name}`, css(colour));
    button.title = isDark() ? "Make the page light" : "Make the page dark";
    changed();
  };
  button.addEventListener("click", () => {
    const dark = !isDark();
    if (dark === system.matches) delete root.dataset.theme;
    else root.dataset.theme = dark ? "dark" : "light";
    remember(root.dataset.theme);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

function remembered() {
  try {
    return localStorage.getItem(KEPT);
  } catch { // a browser that keeps nothing
    return null;
  }
}

function remember(theme) {
  try {
    if (theme) localStorage.setItem(KEPT, theme);
    else localStorage.removeItem(KEPT);
  } catch { // it is chosen anew the next time
  }
}
