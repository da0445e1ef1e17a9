// Plain data: what a config holds at a path, the numbers in it, and YAML on one line.

export const at = (values, path) => path.split(".").reduce((node, key) => node?.[key], values);

export function same(a, b) {
  if (a === b || a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  return Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((key) => same(a[key], b[key]));
}

// The numbers in a value with the keys that lead to them.
export function leaves(value, keys = []) {
  if (typeof value === "number") return [[keys, value]];
  if (value === null || typeof value !== "object") return [];
  const children = Array.isArray(value) ? value.map((part, i) => [i, part]) : Object.entries(value);
  return children.flatMap(([key, part]) => leaves(part, [...keys, key]));
}

// A value with one number in it replaced.
export function put(value, [key, ...rest], number) {
  if (key === undefined) return number;
  if (Array.isArray(value)) return value.map((part, i) => (i === key ? put(part, rest, number) : part));
  return { ...value, [key]: put(value[key], rest, number) };
}

export function yaml(value) {
  if (Array.isArray(value)) return `[${value.map(yaml).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, part]) => `${yaml(key)}: ${yaml(part)}`).join(", ")}}`;
  }
  if (typeof value === "string" && /^[A-Za-z_][\w.]*$/.test(value) && !/^(true|false|null)$/i.test(value)) return value;
  return JSON.stringify(value);
}
