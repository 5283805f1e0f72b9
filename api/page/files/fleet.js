// The rows of the fleet: a broker's (or failure domain's) past, present, resources and bundles.
//
// One line a broker, read from left to right: its usage in the last rounds, the newest one laid
// out to scale between the fleet's range, target and limit, what each resource adds, what it owns.

import { clusterPath, get } from "./api.js";
import { byId, el, reconcile, say, setCss } from "./dom.js";
import { absent, number, percent, points, shortTime, some, time, word } from "./format.js";
import { colourOf, drawStrip } from "./heat.js";
import { paintWhenSeen } from "./seen.js";

const PAGE = 50;
const RESOURCES = [
  ["cpu", "cpu"],
  ["directMemory", "direct mem"],
  ["bandwidthIn", "net in"],
  ["bandwidthOut", "net out"],
];
const RESOURCE_TRIES = 6;
const RESOURCE_WAIT_MS = 700;

/**
 * The panel. `openBroker(row)` shows more of a broker, `findOther(text)` looks for what is none.
 */
export function makeFleet(openBroker, findOther) {
  let cluster = "";
  let by = "auto"; // What the reader asked for; the answer says what it is.
  let domain = null;
  let match = "";
  let limit = PAGE;
  let shown = null;
  let overview = null;
  let resources = {};
  let asking = 0;

  const rows = byId("rows");
  const search = byId("search");
  let typed = 0;
  search.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => {
      match = search.value.trim();
      limit = PAGE;
      refresh();
    }, 200);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !match) return;
    event.preventDefault(); // The same key would press the first button of what opens.
    findOther(match);
  });
  byId("more").addEventListener("click", () => {
    limit = Math.min(200, limit + PAGE);
    refresh();
  });
  rows.addEventListener("keydown", moveFocus);

  async function refresh() {
    if (!cluster) return;
    const mine = ++asking;
    const query = { by, domain, match: match || null, limit };
    const found = await get(clusterPath(cluster, "heat-map"), query);
    if (mine !== asking) return; // A newer question is under way.
    shown = found;
    draw();
    await readResources(mine);
  }

  /** The first answers may lack brokers: the API begins to follow their reports. */
  async function readResources(mine) {
    if (shown.by !== "broker" || !shown.rows.length) return;
    const broker = shown.rows.map((row) => row.broker);
    for (let tried = 0; tried < RESOURCE_TRIES && mine === asking; tried += 1) {
      const found = await get(clusterPath(cluster, "resources"), { broker });
      if (mine !== asking) return;
      resources = found;
      for (const row of rows.children) drawParts(partsOf(row), found[row.dataset.key]);
      if (Object.keys(found).length >= broker.length) return;
      await new Promise((resolve) => setTimeout(resolve, RESOURCE_WAIT_MS));
    }
  }

  function draw() {
    if (!shown || !overview) return;
    const domains = shown.by === "domain";
    // A page that has all of them keeps its order while usage changes.
    const sorted = shown.next || domains ? shown.rows : [...shown.rows].sort(byName);
    byId("fleet").classList.toggle("by-domain", domains);
    drawAxis(domains);
    drawCrumbs();
    drawGrouping();
    reconcile(rows, sorted, nameOf, makeRow, domains ? updateDomain : updateBroker);
    const what = domains ? "failure domain" : "broker";
    const whole = some(shown.total, what);
    say(byId("fleet-title"), domains ? "Failure domains" : "Brokers");
    const part = shown.next ? `the busiest ${number(shown.rows.length)} of ${whole}` : whole;
    say(byId("fleet-note"), shown.total ? part : nothing());
    const most = limit >= 200;
    byId("more").hidden = !shown.next || most;
    if (shown.next && most) say(byId("fleet-note"), `${part}; search for others`);
  }

  function nothing() {
    return match
      ? `No broker has “${match}” in its name. Enter looks for a bundle or namespace of this name.`
      : "No broker in the newest round.";
  }

  function drawAxis(domains) {
    const { summary, thresholds } = overview;
    const mean = summary.usage_mean ?? null;
    const half = thresholds.target / 2;
    setCss(byId("fleet"), {
      "--low": summary.usage_min ?? 0,
      "--high": summary.usage_max ?? 0,
      "--mean": mean ?? 0,
      "--aim-low": mean === null ? 0 : Math.max(0, mean - half),
      "--aim-high": mean === null ? 0 : Math.min(1, mean + half),
      "--limit": Math.min(1, thresholds.overloaded),
    });
    const [first, last] = [shown.rounds[0], shown.rounds.at(-1)];
    byId("axis").replaceChildren(
      el("span.name", {}, domains ? "domain" : "broker"),
      el("span.past", {}, ...(first ? [el("span", {}, shortTime(first.at)),
        el("span", {}, `${shown.rounds.length} rounds`), el("span", {}, shortTime(last.at))] : [])),
      el("span.now", {},
        el("span.at.edge", { css: { "--at": 0 } }, "0"),
        mean !== null && el("span.at.aim", { css: { "--at": mean } },
          `target ±${(100 * half).toFixed(1)}`),
        el("span.at.limit", { css: { "--at": Math.min(1, thresholds.overloaded) } },
          `full ${Math.round(100 * thresholds.overloaded)} %`)),
      el("span.usage", {}, domains ? "busiest" : "usage"),
      ...(domains
        ? [el("span.wide", {}, "lowest to busiest broker, mean")]
        : RESOURCES.map(([, said]) => el("span.part", {}, said))),
      el("span.own", {}, domains ? "brokers" : "bundles"),
    );
  }

  function drawCrumbs() {
    const here = domain === null ? [] : [domain || "no failure domain"];
    byId("crumbs").replaceChildren(
      ...(here.length
        ? [el("button.quiet", { type: "button", onclick: () => zoom(null) }, "All"),
           el("span", { "aria-current": "true" }, ` › ${here[0]}`)]
        : []),
    );
  }

  function drawGrouping() {
    const box = byId("grouping");
    box.hidden = !overview.failureDomains || domain !== null;
    if (box.childElementCount) {
      for (const each of box.children) each.setAttribute("aria-pressed", each.value === shown.by);
      return;
    }
    for (const [value, said] of [["domain", "Domains"], ["broker", "Brokers"]]) {
      const choose = () => {
        by = value;
        limit = PAGE;
        refresh();
      };
      box.append(el("button", { type: "button", value, onclick: choose,
        "aria-pressed": String(value === shown.by) }, said));
    }
  }

  function zoom(name) {
    domain = name;
    by = name === null ? "auto" : "broker";
    limit = PAGE;
    search.value = match = "";
    refresh().then(() => byId("rows").querySelector("button")?.focus());
  }

  function makeRow() {
    const row = el("li.line", {},
      el("button.name", { type: "button" }),
      el("span.past", {}, el("i", { role: "img" })),
      el("span.now", { "aria-hidden": "true" }, el("i.band"), el("i.aim"), el("i.full"), el("b")),
      el("span.usage"),
      el("span.parts"),
      el("span.own"));
    const strip = row.querySelector(".past i");
    strip.addEventListener("pointermove", (event) => readOut(row, strip, event));
    strip.addEventListener("pointerleave", () => say(byId("readout"), "\u00a0"));
    return row;
  }

  function readOut(row, strip, event) {
    const at = Math.floor((event.offsetX / strip.clientWidth) * shown.rounds.length);
    const round = shown.rounds[at];
    if (!round) return;
    const changes = round.changes ? `, ${some(round.changes, "change")}` : "";
    say(byId("readout"), `${row.dataset.key || "no failure domain"} · ${time(round.at)} · ` +
      `${percent(row.history[at])} · round ${round.round}${changes}`);
  }

  function updateBroker(row, broker) {
    const [button, , , usage, parts, own] = row.children;
    const said = broker.state === "serving" ? "" : word(broker.state);
    fill(button, broker.broker, said);
    button.setAttribute("aria-label",
      `${broker.broker}, ${said || "serving"}, usage ${percent(broker.usage)}, ` +
      some(broker.bundles, "bundle"));
    button.onclick = () => openBroker(broker);
    drawUsage(row, broker.history, "usage", [0, broker.usage, null, broker.usage]);
    say(usage, percent(broker.usage));
    drawParts(parts, resources[broker.broker]);
    say(own, number(broker.bundles));
    own.title = some(broker.bundles, "bundle");
  }

  function updateDomain(row, each) {
    const [button, , , usage, parts, own] = row.children;
    const bad = Object.entries(each.states).filter(([state]) => state !== "serving")
      .map(([state, many]) => `${many} ${word(state)}`).join(", ");
    fill(button, each.name || "no failure domain", bad);
    button.setAttribute("aria-label",
      `${each.name || "no failure domain"}, ${some(each.brokers, "broker")}, ` +
      `busiest ${percent(each.usage)}${bad && `, ${bad}`}; shows its brokers`);
    button.onclick = () => zoom(each.name);
    drawUsage(row, each.history, "usage of its busiest broker",
      [each.lowest ?? 0, each.usage, each.mean, each.usage]);
    say(usage, percent(each.usage));
    parts.replaceChildren(el("span.wide", {},
      `${percent(each.lowest)} to ${percent(each.usage)}, mean ${percent(each.mean)}`));
    say(own, number(each.brokers));
    own.title = some(each.brokers, "broker");
  }

  function fill(button, name, badge) {
    if (button.title === name && button.dataset.badge === badge) return;
    button.title = name;
    button.dataset.badge = badge;
    button.replaceChildren(el("span", {}, name), badge ? el("em", {}, badge) : "");
  }

  /** The cells of the last rounds, and the bar of the newest one. */
  function drawUsage(row, history, what, bar) {
    row.history = history;
    const strip = row.querySelector(".past i");
    paintWhenSeen(row, () => {
      drawStrip(strip, history, overview.thresholds.overloaded);
      drawNow(row.querySelector(".now"), ...bar);
    });
    const seen = history.filter((each) => each !== null);
    strip.setAttribute("aria-label", seen.length
      ? `${what} in the last ${some(history.length, "round")}: ` +
        `${percent(Math.min(...seen))} to ${percent(Math.max(...seen))}, now ${percent(seen.at(-1))}`
      : `${what}: not known`);
  }

  function drawNow(now, from, to, mean, colour) {
    const bar = now.querySelector("b");
    setCss(bar, {
      "--from": from,
      "--to": Math.min(1, to ?? 0),
      "--colour": colourOf(colour, overview.thresholds.overloaded),
    });
    bar.hidden = to === null;
    setCss(now, { "--own-mean": mean });
    now.classList.toggle("spread", mean !== null);
  }

  function drawParts(parts, found) {
    const highest = found ? Math.max(...RESOURCES.map(([name]) => found[name])) : null;
    if (parts.childElementCount !== RESOURCES.length) {
      parts.replaceChildren(...RESOURCES.map(() => el("span.part")));
    }
    RESOURCES.forEach(([name, said], place) => {
      const cell = parts.children[place];
      const value = found?.[name] ?? null;
      cell.classList.toggle("decides", value !== null && value === highest && value > 0);
      cell.title = value === null ? `${said}: no report yet` : `${said} ${percent(value)}`;
      setCss(cell, { "--to": Math.min(1, value ?? 0) });
      if (!cell.childElementCount) cell.append(el("small", { "aria-hidden": "true" }, said), el("span"));
      say(cell.lastElementChild, value === null ? absent : String(Math.round(100 * value)));
      cell.lastElementChild.classList.toggle("known", value !== null);
    });
  }

  return {
    /** Show this cluster, by what its overview says. */
    async show(name, newOverview) {
      if (name !== cluster) {
        [cluster, by, domain, limit, resources, shown] = [name, "auto", null, PAGE, {}, null];
        byId("grouping").replaceChildren();
      }
      overview = newOverview;
      await refresh();
    },
    draw,
    /** Brokers that are shown, for the what-if form's suggestions. */
    names: () => (shown?.by === "broker" ? shown.rows.map((row) => row.broker) : []),
    describeRange: () => overview && points(overview.summary.usage_range),
  };
}

const collator = new Intl.Collator("en", { numeric: true });
const partsOf = (row) => row.querySelector(".parts");
const nameOf = (row) => row.broker ?? row.name;
const byName = (one, other) => collator.compare(nameOf(one), nameOf(other));

/** Arrow keys go from row to row. */
function moveFocus(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const row = event.target.closest("li")?.[step];
  if (!row) return;
  event.preventDefault();
  row.querySelector("button").focus();
}
