// The drawer: why a decision was taken, and what a broker, bundle or namespace is and owns.

import { clusterPath, get } from "./api.js";
import { byId, el, say } from "./dom.js";
import { absent, number, percent, points, some, spaced, time, word } from "./format.js";

const PAGE = 100;

/** The drawer; `cluster()` names the present one. */
export function makeDrawer(cluster) {
  const dialog = byId("drawer");
  const body = byId("drawer-body");
  let asking = 0;
  byId("drawer-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

  async function show(title, parts) {
    const mine = ++asking;
    say(byId("drawer-title"), title);
    body.replaceChildren(el("p.note", {}, "reading"));
    if (!dialog.open) dialog.showModal();
    for (const [place, part] of parts.entries()) {
      let made;
      try {
        made = await part();
      } catch (error) {
        made = [el("p.note", {}, error.message)];
      }
      if (mine !== asking) return;
      if (place === 0) body.replaceChildren();
      body.append(...made);
    }
  }

  /** Why a round did what it did, or without one the newest that explains it; then all of them. */
  const why = (subject, round) => async () => {
    const told = await get(clusterPath(cluster(), "history"), { subject });
    const wanted = round === null ? told[0] : told.find((each) => each.round === round);
    if (!wanted) return [el("p.note", {}, "No kept round explains it."), ...past(told)];
    const query = { subject, round: wanted.round };
    return [...explain(await get(clusterPath(cluster(), "why"), query)), ...past(told)];
  };

  const broker = (row) => [
    facts({
      state: word(row.state),
      usage: percent(row.usage),
      average: percent(row.average),
      bundles: number(row.bundles),
      "failure domain": row.domain ?? "none",
    }),
  ];

  /** Read from the load reports, which takes long in a large fleet: it comes last. */
  async function busiest(name) {
    const found = await get(clusterPath(cluster(), "brokers", name));
    if (!found.busiest.length) return [];
    return [el("h3", {}, "Busiest bundles, part of its traffic"),
      el("ol.names", {}, ...found.busiest.map((each) => item(each.bundle, percent(each.share))))];
  }

  /** The bundles that match, a page at a time. */
  function owned(title, query) {
    const list = el("ol.names");
    const more = el("button", { type: "button", hidden: true }, "More");
    const read = async (after) => {
      const page = await get(clusterPath(cluster(), "bundles"), { ...query, limit: PAGE, after });
      list.append(...page.bundles.map((each) => item(each.bundle,
        query.broker ? word(each.state) : `${each.owner || "nobody"}, ${word(each.state)}`)));
      more.hidden = !page.next;
      more.onclick = () => read(page.next);
    };
    return async () => {
      await read("");
      return [el("h3", {}, title), list, more];
    };
  }

  const item = (bundle, said) =>
    el("li", {}, el("button.quiet", { type: "button", onclick: () => openBundle(bundle) }, bundle),
      el("small", {}, said));

  async function record(name) {
    const [tenant, namespace, bundle] = name.split("/");
    const found = await get(clusterPath(cluster(), "bundles", tenant, namespace, bundle));
    return [facts({
      state: word(found.state),
      owner: found.owner || "nobody",
      "goes to": found.destination || null,
      since: time(found.since),
      "anti-affinity group": found.antiAffinityGroup,
    })];
  }

  const past = (told) => told.length < 2 ? [] : [el("h3", {}, "In the last rounds"),
    el("ol.past", {}, ...told.map((each) => el("li", {},
      el("small", {}, `${time(each.at)}, round ${each.round}: `), each.why)))];

  const openBundle = (name, round = null) =>
    show(name, [() => record(name), why(name, round)]);

  return {
    openBroker: (row) => show(row.broker, [() => broker(row), why(row.broker, null),
      owned("Owns", { broker: row.broker }), () => busiest(row.broker)]),
    openBundle,
    openWhy: (subject, round) => show(subject, [why(subject, round), () => record(subject)]),
    /** A namespace's bundles and their owners. */
    openNamespace: (name) => show(name, [owned("Bundles", { namespace: name })]),
  };
}

function explain({ explanation }) {
  const { usage = {}, figures = {}, options = [], nearest } = explanation;
  return [
    el("p.lead", {}, explanation.why),
    el("p.note", {}, `round ${explanation.round} at ${time(explanation.at)}: ` +
      `${word(explanation.verdict)}, ${word(explanation.rule)} (${explanation.strategy})`),
    ...(explanation.advice ? [el("p", {}, explanation.advice)] : []),
    ...(explanation.range ? [changes("Range", [["all brokers", explanation.range]], points)] : []),
    ...(Object.keys(usage).length
      ? [changes("Predicted usage", Object.entries(usage), percent)] : []),
    ...(options.length ? [el("h3", {}, "Where it could be"),
      el("ol.names", {}, ...options.map((each) => el(each.chosen ? "li.chosen" : "li", {},
        el("span", {}, each.broker),
        el("small", {}, [each.usage === undefined ? null : `${percent(each.usage)} with it`,
          each.chosen ? "chosen" : null, each.bar ? word(each.bar) : null]
          .filter(Boolean).join(", ")))))] : []),
    ...(nearest ? [el("p", {}, "With ", el("code", {}, `${nearest.setting} = ${nearest.then}`),
      ` instead of ${nearest.now}: ${nearest.soThat}`)] : []),
    ...(Object.keys(figures).length
      ? [el("details", {}, el("summary", {}, "Compared figures"),
          facts(Object.fromEntries(Object.entries(figures).map(([name, value]) =>
            [spaced(name), String(Number(value.toPrecision(4)))]))))] : []),
  ];
}

const changes = (title, rows, unit) =>
  el("table", {}, el("caption", {}, title),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span.unseen", {}, "what")),
      el("th", { scope: "col" }, "before"), el("th", { scope: "col" }, "after"))),
    el("tbody", {}, ...rows.map(([name, [before, after]]) => el("tr", {},
      el("th", { scope: "row" }, name), el("td", {}, unit(before)), el("td", {}, unit(after))))));

function facts(values) {
  return el("dl.facts", {}, ...Object.entries(values)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value || absent))));
}
