// Names on the map: as long as there is room for, since nodes of one kind often differ at the end alone.

const SEPARATORS = "-._:/ ";

/** A function that tells how many pixels wide a text is in the font of an element. */
export function ruler(node) {
  const { fontSize, fontFamily } = getComputedStyle(node);
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${fontSize} ${fontFamily}`;
  return (text) => context.measureText(text).width;
}

/** The lines of a name in so many pixels: one, or two where it may wrap; cut off only where that is not enough. */
export function fitted(name, room, mayWrap, widthOf) {
  if (widthOf(name) <= room) return [name];
  return (mayWrap && wrapped(name, room, widthOf)) || [shortened(name, room, widthOf)];
}

/** Two lines that fit, broken after a separator as near to the middle as can be; null where there are none. */
function wrapped(name, room, widthOf) {
  const middle = name.length / 2;
  const breaks = [...name.slice(0, -1)].flatMap((character, at) => (SEPARATORS.includes(character) ? [at + 1] : []));
  breaks.sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle));
  const pairs = breaks.map((at) => [name.slice(0, at), name.slice(at)]);
  return pairs.find((pair) => pair.every((line) => widthOf(line) <= room)) ?? null;
}

/** A name without its middle, or without its front where little is left. The end stays the longest. */
function shortened(name, room, widthOf) {
  const characters = [...name];
  let shown = "…";
  for (let kept = 1; kept < characters.length; kept += 1) {
    const front = kept < 6 ? 0 : Math.floor(kept / 3);
    const label = `${characters.slice(0, front).join("")}…${characters.slice(front - kept).join("")}`;
    if (widthOf(label) > room) break;
    shown = label;
  }
  return shown;
}
