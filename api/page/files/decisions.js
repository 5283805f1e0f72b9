// The decisions of the last rounds, the newest first; each opens its explanation.

import { clusterPath, get } from "./api.js";
import { byId, el, reconcile, say } from "./dom.js";
import { time, word } from "./format.js";

const SHOWN = 60;

/** The panel; `openWhy(subject, round)` explains one. */
export function makeDecisions(openWhy) {
  let cluster = "";
  const refusals = byId("refusals");
  refusals.addEventListener("change", () => refresh());

  async function refresh() {
    const asked = { limit: SHOWN, refusals: refusals.checked };
    const found = await get(clusterPath(cluster, "decisions"), asked);
    reconcile(byId("feed"), found, keyOf, make, () => {});
    say(byId("feed-note"), found.length ? "" : "The last rounds changed nothing.");
  }

  function make(each) {
    return el(`li.${each.decision}`, {},
      el("button", { type: "button", onclick: () => openWhy(each.bundle, each.round) },
        el("span.when", {}, time(each.at)),
        el("span.kind", {}, each.decision),
        el("span.what", {}, each.bundle),
        el("span.way", {}, way(each)),
        el("span.why", {}, each.why || word(each.reason ?? each.rule))));
  }

  return {
    async show(name) {
      if (name !== cluster) byId("feed").replaceChildren();
      cluster = name;
      await refresh();
    },
  };
}

/** Where it goes: from broker to broker, or at which one. */
function way(each) {
  if (each.neighbour) return `with ${each.neighbour} at ${each.broker}`;
  if (each.decision === "repair") return each.broker ? `to ${each.broker}` : "released";
  if (each.broker) return `at ${each.broker}`;
  return each.destination ? `${each.source} → ${each.destination}` : `at ${each.source}`;
}

const keyOf = (each) => [each.round, each.at, each.decision, each.bundle].join(" ");
