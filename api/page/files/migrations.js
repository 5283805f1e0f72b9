// Topics that go to another cluster: how far each migration is, and where each namespace stands.

import { clusterPath, get } from "./api.js";
import { byId, el } from "./dom.js";
import { number, some, time, word } from "./format.js";

const SHOWN = 5;
const LOOK_MS = 2000; // As often as the job counts; rounds are much further apart.
const MOVING = ["running", "rolling-back"];
const STATES = ["migrated", "draining", "terminated", "replicating", "active"];

export function makeMigrations() {
  let cluster = "";
  let told = "";
  let timer = 0;

  async function refresh() {
    clearTimeout(timer);
    const name = cluster;
    const found = (await get(clusterPath(name, "migrations"))).slice(0, SHOWN);
    if (name !== cluster) return;
    byId("migrations").hidden = !found.length;
    const now = JSON.stringify(found);
    if (now !== told) {
      told = now;
      const open = new Set(openOnes());
      const focused = document.activeElement.closest("#migration-list [data-id]")?.dataset.id;
      byId("migration-list").replaceChildren(...found.map((each) => card(each, open)));
      // Cards are made again every two seconds: a person at the keyboard stays where they were.
      if (focused) summaryOf(focused)?.focus({ preventScroll: true });
    }
    if (found.some((each) => MOVING.includes(each.migration.state))) {
      // A failed look is told by what follows the events, and the next round looks again.
      timer = setTimeout(() => refresh().catch(() => {}), LOOK_MS);
    }
  }

  return {
    async show(name) {
      cluster = name;
      await refresh();
    },
  };
}

/** The migrations whose namespaces are being read. */
const openOnes = () =>
  [...byId("migration-list").querySelectorAll("details[open]")].map((each) => each.dataset.id);

const summaryOf = (id) =>
  byId("migration-list").querySelector(`[data-id="${CSS.escape(id)}"] summary`);

function card({ migration, total, left, namespaces, ends, bundles, lost }, open) {
  const topics = left + total.migrated;
  const names = Object.keys(namespaces).sort();
  return el(`li.plan.${migration.state}`, {},
    el("p.bar", {}, el("strong", {}, migration.id), el("span.state", {}, word(migration.state)),
      el("span.gap"), el("small", {}, `${time(migration.at)}${migration.by && ` by ${migration.by}`}`)),
    el("p", {}, `${migration.scope} → ${migration.target.serviceUrl || migration.target.serviceUrlTls}`),
    shares(total, topics),
    el("small", {}, said(total)),
    el("p", {}, [
      `${number(total.migrated)} of ${some(topics, "topic")} gone`,
      `wave ${migration.wave + 1} of ${migration.waves.length + 1}`,
      `${some(total.backlog, "message")} left on blue`,
      total.began ? `${number(total.began)} began on green` : "",
      total.stays > total.began ? `${number(total.stays - total.began)} stay there` : "",
      end(migration, ends),
    ].filter(Boolean).join(", ")),
    why(migration, lost) && el("p", {}, why(migration, lost)),
    bundles.length > 0 && el("p", {}, `It waits for ${bundles.map(waited).join(", ")}`),
    names.length > 0 && el("details", { "data-id": migration.id, open: open.has(migration.id) },
      el("summary", {}, some(names.length, "namespace")),
      el("ul.shares", {}, ...names.map((name) => namespace(name, namespaces[name])))));
}

/** What it waits for, or why it was paused or rolled back, or that records of `lost` topics are lost. */
function why({ state, stopped, why: text }, lost) {
  if (stopped) return `Paused by its gate: ${text}`;
  if (state === "paused") return `Paused by a person${text && `: ${text}`}`;
  if (state === "running" && text) return `The next wave waits: ${text}`;
  if (lost) return text[0].toUpperCase() + text.slice(1);
  return text && `Rolled back: ${text}`;
}

/** A bundle whose topics take no step, and why. */
const waited = ({ bundle, cause, owner }) =>
  `${bundle} (${[word(cause), owner].filter(Boolean).join(", ")})`;

function end(migration, ends) {
  if (migration.ended) return `ended ${time(migration.ended)}`;
  return ends === null ? "" : `the last leaves about ${time(ends)}`;
}

function namespace(name, counts) {
  const topics = STATES.reduce((sum, state) => sum + counts[state], 0);
  return el("li", {}, el("span", {}, name), shares(counts, topics),
    el("small", {}, `${number(counts.migrated)} of ${number(topics)}, ` +
      `${some(counts.backlog, "message")} left`));
}

/** The topics by state, those that are gone first. */
function said(counts) {
  const parts = STATES.filter((state) => counts[state]);
  return parts.map((state) => `${number(counts[state])} ${word(state)}`).join(", ") ||
    "no topic is named yet";
}

/** The same as one bar. */
function shares(counts, topics) {
  return el("span.stack", { role: "img", "aria-label": said(counts), title: said(counts) },
    ...STATES.filter((state) => counts[state]).map((state) =>
      el(`i.${state}`, { css: { "--share": counts[state] / topics } })));
}
