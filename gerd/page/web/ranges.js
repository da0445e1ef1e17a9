// Which numbers a slider covers, and where on it a number lies.

export const PRECISION = 400; // places of a slider

// Where the schema's range is wide, the part of it that is of use; by the end of the path.
const USUAL = [
  [/translation\.start$/, ({ width, height }, i) => [0, i === 1 ? height : width]],
  [/translation\.(velocity|acceleration)$/, () => [-4, 4]],
  [/translation\.margin$/, ({ width, height }) => [0, Math.min(width, height) / 2 - 1]],
  [/scale\.(start|limits)$/, ({ width, height }) => [1, Math.min(width, height)]],
  [/scale\.velocity$/, () => [-2, 2]],
  [/rotation\.start$/, () => [0, 360]],
  [/rotation\.velocity$/, () => [-20, 20]],
  [/shear\.(start|limits)$/, () => [-1, 1]],
  [/shear\.velocity$/, () => [-0.1, 0.1]],
  [/acceleration$/, () => [-1, 1]],
  [/intensity$/, () => [-2, 2]],
  [/time_scale$/, () => [0.1, 4]],
  [/threshold$/, () => [0.05, 2]],
];

// The ranges of all numbers by their paths; they are kept, so that a slider does not jump under the hand.
export class Ranges {
  #kept = new Map(); // path of a number → [low, high]

  // The scale of the number `keys` below a field's path, the i-th in it; probabilities are spread out near 0.
  scale(schema, path, keys, i, number, sensor) {
    const key = [path, ...keys].join(".");
    const allowed = [schema, ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].find((part) => /number|integer/.test(part.type)) ?? {};
    const bound = [allowed.minimum ?? allowed.exclusiveMinimum ?? -Infinity, allowed.maximum ?? Infinity];
    let [low, high] = this.#kept.get(key) ?? usual(path, i, sensor, bound, number, keys);
    if (number < low) low = number;
    if (number > high) high = number;
    this.#kept.set(key, [low, high]);
    const power = low === 0 && high === 1 ? 3 : 1;
    const digits = Math.max(0, Math.ceil(-Math.log10((high - low) / PRECISION)) + (power > 1 ? 1 : 0));
    return {
      low, high,
      place: (value) => PRECISION * ((value - low) / (high - low || 1)) ** (1 / power),
      number: (place, whole) => {
        const value = low + (high - low) * (place / PRECISION) ** power;
        return whole ? Math.round(value) : Math.max(low, Math.min(high, Number(value.toFixed(digits))));
      },
    };
  }
}

// The part of a number's range that its slider covers.
function usual(path, i, sensor, [least, most], number, keys) {
  if (keys.includes("normal") && keys.at(-1) === 1) return [0, Math.max(4 * Math.abs(number), 0.1)];
  if (keys.includes("factor") && path !== "time_scale") return [0.8, 1.2]; // of growth
  if (keys.includes("rotate")) return [-180, 180];
  if (keys.includes("period") || keys.includes("duration")) return [1, Math.max(60, 2 * number)];
  if (keys.includes("phase")) return [0, 360];
  const known = USUAL.find(([end]) => end.test(path));
  const reach = 4 * Math.max(Math.abs(number), 1);
  const [low, high] = known ? known[1](sensor, i) : most - least <= 100 ? [least, most] : [least >= 0 ? least : -reach, reach];
  return [Math.max(low, least), Math.min(high, most)];
}

// What a number in a value is called.
export function nickname(keys) {
  const key = keys.at(-1), pairs = { uniform: ["low", "high"], normal: ["mean", "standard deviation"] };
  if (typeof key !== "number") return key ?? "";
  return pairs[keys.at(-2)]?.[key] ?? (keys.length === 1 ? "xy"[key] : String(key));
}
