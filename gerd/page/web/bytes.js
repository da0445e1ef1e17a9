// Bytes as text of the characters that an address may have, and packed or unpacked by the browser's own deflate.

export function toText(bytes) {
  let characters = "";
  for (let at = 0; at < bytes.length; at += 8192) characters += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(characters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromText(text) {
  const characters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}

export async function packed(bytes, format) {
  return collected(new Blob([bytes]).stream().pipeThrough(new CompressionStream(format)), Infinity);
}

// The bytes that were packed; an error if there are more than `most`, of which no more are unpacked.
export async function unpacked(bytes, format, most = Infinity) {
  return collected(new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format)), most);
}

async function collected(stream, most) {
  const reader = stream.getReader(), parts = [];
  let size = 0;
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new RangeError(`there are more than ${most} bytes`);
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
