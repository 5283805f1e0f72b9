// Paints only what can be seen: of hundreds of rows a screen shows some thirty.

const NEAR = "200px"; // So much beyond the edges counts as seen, so that scrolling finds it painted.

const painters = new WeakMap();
const near = new Set();
const watcher = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) {
      if (!isIntersecting) near.delete(target);
      else {
        near.add(target);
        painters.get(target)();
      }
    }
  },
  { rootMargin: NEAR },
);

/** Call `paint` now if `row` can be seen, else once it can be, unless a newer one replaces it. */
export function paintWhenSeen(row, paint) {
  if (!painters.has(row)) watcher.observe(row);
  painters.set(row, paint);
  if (near.has(row)) paint();
}
