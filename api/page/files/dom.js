// Makes and replaces elements. Whatever is shown becomes a text node: a name never becomes markup.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * An element: `el("li.row", {title: "…", onclick}, "text", child)`. Members of `given` that begin
 * with "on" are listeners, `css` sets custom properties, all others are attributes; null leaves one out.
 */
export function el(what, given = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "css") setCss(made, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

/** Set custom properties, such as `{"--at": 0.4}`. */
export function setCss(element, values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined) element.style.removeProperty(name);
    else element.style.setProperty(name, String(value));
  }
}

/** Set text only where it differs, so that screen readers hear changes alone. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Let `list` have one child for each item in their order: children are kept by key, so focus and
 * scrolling stay where they are. `make(item)` makes a child, `update(child, item)` fills it.
 */
export function reconcile(list, items, keyOf, make, update) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let place = list.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = known.get(key);
    known.delete(key);
    if (!child) {
      child = make(item);
      child.dataset.key = key;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else list.insertBefore(child, place);
  }
  for (const gone of known.values()) gone.remove();
}
