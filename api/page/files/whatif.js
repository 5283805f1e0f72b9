// Tries another fleet: brokers added or removed, before and after; and how many the load takes.

import { clusterPath, get, post } from "./api.js";
import { byId, el, say } from "./dom.js";
import { number, percent, points, some, time } from "./format.js";

/** Wire the form; `cluster()` names the present one. */
export function wireWhatIf(cluster) {
  const outlook = byId("outlook");
  const ask = async (asked) => {
    say(outlook, "trying it on the present load");
    try {
      outlook.replaceChildren(...(await asked()));
    } catch (error) {
      say(outlook, error.message);
    }
  };
  byId("what-if-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const remove = byId("remove").value.split(/[\s,]+/).filter(Boolean);
    const change = { add: Number(byId("add").value), remove };
    ask(async () => tell(await post(clusterPath(cluster(), "what-if"), change)));
  });
  byId("advise").addEventListener("click", () =>
    ask(async () => {
      const advice = await get(clusterPath(cluster(), "advise"));
      const { peak, wanted, brokers, threshold } = advice;
      return [
        el("p", {}, el("b", {}, some(wanted, "broker")),
          ` would carry the largest load of 7 days (${time(peak.at)}, ` +
          `${peak.load.toFixed(1)} full brokers) below ${percent(threshold)} with one lost; ` +
          `there are ${number(brokers)}.`),
        ...tell(advice.whatIf),
      ];
    }),
  );
}

/** The brokers that the form suggests. */
export function suggest(names) {
  byId("known").replaceChildren(...names.map((value) => el("option", { value })));
}

function tell({ before, after, moves, rounds, left, problems }) {
  return [
    el("div.pair", {}, spread("before", before), spread("after", after)),
    el("p", {}, `${some(moves, "move")} in ${some(rounds, "round")}. Nothing is changed.`),
    ...Object.entries(left).map(([broker, many]) =>
      el("p", {}, `${broker} would still have ${some(many, "bundle")}.`)),
    ...problems.map((problem) => el("p", {}, problem)),
  ];
}

function spread(said, { brokers, usage_min, usage_mean, usage_max, usage_range }) {
  return el("span.compare.spread", {
    css: { "--from": usage_min, "--to": Math.min(1, usage_max), "--mean": usage_mean },
  },
    el("small", {}, `${said}, ${some(brokers, "broker")}`),
    el("i", { "aria-hidden": "true" }),
    el("b", {}, `${percent(usage_min)} to ${percent(usage_max)}`),
    el("small", {}, `range ${points(usage_range)}`));
}
