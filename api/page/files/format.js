// Numbers with their units, and times, as the page shows them.

const count = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const shortClock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

export const absent = "–";

/** A fraction in percent: 41.2 %. */
export const percent = (fraction) =>
  fraction === null || fraction === undefined ? absent : `${(100 * fraction).toFixed(1)} %`;

/** A difference of fractions: 41.2 points. */
export const points = (fraction) =>
  fraction === null || fraction === undefined ? absent : `${(100 * fraction).toFixed(1)} points`;

/** 12,000 */
export const number = (value) =>
  value === null || value === undefined ? absent : count.format(value);

/** 1 broker, 12 brokers */
export const some = (value, noun, nouns = `${noun}s`) =>
  `${number(value)} ${value === 1 ? noun : nouns}`;

/** Bytes a second. */
export function rate(bytes) {
  const units = ["B/s", "kB/s", "MB/s", "GB/s"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(value < 10 && unit ? 1 : 0)} ${units[unit]}`;
}

/** A time span in its two largest units: 3 s, 2 min, 1 h 5 min. */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.round(whole / 60)} min`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours} h ${Math.round((whole % 3600) / 60)} min`;
  return `${Math.round(hours / 24)} days`;
}

/** The time of day of an instant (epoch ms). */
export const time = (ms) => clock.format(ms);
export const shortTime = (ms) => shortClock.format(ms);

/** A word of the API for people: "least-predicted-usage" is "least predicted usage". */
export const word = (text) => String(text).replaceAll("-", " ").replaceAll("_", " ");

/** A name in camel case for people: "bandwidthIn" is "bandwidth in". */
export const spaced = (name) => word(name.replace(/([A-Z])/g, " $1").toLowerCase());
