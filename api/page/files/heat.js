// Draws the heat map's strips: one a row, a cell for each round.

const STEPS = 64;
let palette = [];
let full = "";
let empty = "";

/** Read the colours of the present theme; to be called after it has changed. */
export function readColours() {
  const low = channels("--heat-low");
  const mid = channels("--heat-mid");
  const high = channels("--heat-high");
  palette = Array.from({ length: STEPS }, (_, step) => {
    const at = step / (STEPS - 1);
    const [from, to, part] = at < 0.5 ? [low, mid, at * 2] : [mid, high, at * 2 - 1];
    return `rgb(${from.map((each, row) => Math.round(each + (to[row] - each) * part)).join(" ")})`;
  });
  full = `rgb(${channels("--full").join(" ")})`;
  empty = `rgb(${channels("--panel").join(" ")})`;
}

/** The colour of a usage (fraction); above `limit` a broker counts as full. */
export function colourOf(usage, limit) {
  if (usage === null || usage === undefined) return empty;
  if (usage > limit) return full;
  return palette[Math.max(0, Math.min(STEPS - 1, Math.round(usage * (STEPS - 1))))];
}

/**
 * Draw the usages (fractions, null where a round did not see the broker) as the cells of `strip`, the
 * oldest first. A background and no canvas: hundreds of layers cost more to put together than this.
 */
export function drawStrip(strip, usages, limit) {
  const step = 100 / Math.max(1, usages.length);
  const cells = usages.map((usage, column) =>
    `${colourOf(usage, limit)} ${column * step}% ${(column + 1) * step}%`);
  strip.style.backgroundImage = cells.length ? `linear-gradient(to right, ${cells.join()})` : "";
}

/** The red, green and blue of a custom property, whatever notation it has. */
function channels(name) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  brush.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
