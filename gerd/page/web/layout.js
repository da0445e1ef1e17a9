// Where pictures lie: the arrangement in which they are largest in the room that there is.

const SHARES = [0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8]; // of the room, for the first picture
const SMALLEST = 90; // units of the page: the longer side of a picture, where there are many

// How `count` boxes of some panes each fill a room of `width`×`height`. `room` has gap and caption (the height of the
// words above a box); `measure(pane, width, height)` is how large a pane's picture is in such a place: [width, height].
// Gives the boxes beside each other, the place of each pane in a box, and how high all of it is: {across, columns, rows,
// spots, high, cell}. Where boxes would be too small to see, they are as high as `cell` says, and the room is scrolled.
export function arranged(count, panes, { width, height, gap, caption }, measure, across = []) {
  const options = across.length ? across : Array.from({ length: count }, (_, i) => i + 1);
  const tried = options.map((abreast) => {
    const down = Math.ceil(count / abreast);
    const place = { width: (width - gap * (abreast - 1)) / abreast, height: (height - gap * (down - 1)) / down };
    const box = inside(panes, { ...place, height: place.height - caption }, gap, measure);
    return { ...box, across: abreast, cell: null, high: down * (box.high + caption) + gap * (down - 1) };
  });
  const best = tried.reduce((one, other) => (other.score > one.score ? other : one));
  if (count === 1 || best.smallest >= SMALLEST) return best;
  const abreast = Math.max(1, Math.floor((width + gap) / (panes.length * (SMALLEST + gap))));
  const wide = (width - gap * (Math.min(abreast, count) - 1)) / Math.min(abreast, count), high = wide / panes.length;
  const box = inside(panes, { width: wide, height: high }, gap, measure), cell = box.high + caption, down = Math.ceil(count / abreast);
  return { ...box, across: Math.min(abreast, count), cell, high: down * cell + gap * (down - 1) };
}

// The best way to lay panes into one box.
function inside(panes, { width, height }, gap, measure) {
  let best = { score: -1 };
  for (const { columns, rows, spots } of ways(panes.length)) {
    const [wide, high] = [width - gap * (columns.length - 1), height - gap * (rows.length - 1)];
    const total = (shares, first, count) => shares.slice(first, first + count).reduce((sum, share) => sum + share, 0);
    const sides = panes.map((pane, i) => {
      const [column, row, over, under] = spots[i];
      const w = (wide * total(columns, column, over)) / total(columns, 0, columns.length) + gap * (over - 1);
      const h = (high * total(rows, row, under)) / total(rows, 0, rows.length) + gap * (under - 1);
      return measure(pane, Math.max(w, 1), Math.max(h, 1));
    });
    const score = sides.reduce((sum, [w, h]) => sum + Math.sqrt(w * h), 0); // so that none is made tiny for the others
    if (score > best.score) best = { score, columns, rows, spots, sides };
  }
  const heights = best.sides.map(([, h]) => h), smallest = Math.min(...best.sides.map((side) => Math.max(...side)));
  return { ...best, smallest, high: best.rows.length > 1 ? height : Math.ceil(Math.max(...heights)) + 2 };
}

// The ways to lay `count` panes beside and below each other: shares of columns and rows, and of each pane the column
// and row at which it begins, and how many of them it covers.
function* ways(count) {
  const equal = (number) => Array(number).fill(1);
  for (let across = 1; across <= count; across++) {
    const down = Math.ceil(count / across);
    yield { columns: equal(across), rows: equal(down), spots: equal(count).map((_, i) => [i % across, Math.floor(i / across), 1, 1]) };
  }
  if (count < 3) return;
  for (const share of SHARES) { // the first one large, the others at its side or below it
    const [two, others] = [[share, 1 - share], equal(count - 1)];
    yield { columns: two, rows: others, spots: equal(count).map((_, i) => (i ? [1, i - 1, 1, 1] : [0, 0, 1, count - 1])) };
    yield { columns: others, rows: two, spots: equal(count).map((_, i) => (i ? [i - 1, 1, 1, 1] : [0, 0, count - 1, 1])) };
  }
}

const tracks = (shares) => shares.map((share) => `minmax(0, ${share}fr)`).join(" ");

// Lays the boxes and their panes out as `arranged` says.
export function lay(views, boxes, { across, cell, columns, rows, spots }) {
  views.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
  views.style.gridAutoRows = cell ? `${cell}px` : "minmax(0, 1fr)";
  for (const row of boxes) {
    row.style.gridTemplateColumns = tracks(columns);
    row.style.gridTemplateRows = tracks(rows);
    [...row.children].forEach((pane, i) => {
      const [column, line, over, under] = spots[i];
      pane.style.gridArea = `${line + 1} / ${column + 1} / span ${under} / span ${over}`;
    });
  }
}
