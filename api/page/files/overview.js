// The cluster's figures and findings: range against target, hit counters, mode, what is wrong.

import { byId, el, say } from "./dom.js";
import { number, percent, points, some, span, spaced, time, word } from "./format.js";

/** Show an overview (GET clusters/CLUSTER/overview). */
export function showOverview(overview) {
  showFindings(overview);
  const figures = [
    range(overview),
    ...hits(overview),
    figure("Brokers", number(overview.summary.brokers), domains(overview)),
    figure("Bundles", number(overview.summary.bundles), served(overview)),
    figure("Mode", word(overview.mode), waits(overview)),
    figure("Strategy", overview.strategy, overview.placement && word(overview.placement)),
    figure("Last round", did(overview), `every ${span(overview.thresholds.intervalSeconds)}`),
  ];
  byId("figures").replaceChildren(...figures);
}

function showFindings({ findings }) {
  const list = byId("findings");
  const told = findings.map((each) => JSON.stringify(each)).join();
  if (list.dataset.told === told) return; // Screen readers hear only what is new.
  list.dataset.told = told;
  list.replaceChildren(
    ...findings.map((each) =>
      el(`li.${each.grade}`, {},
        el("strong", {}, each.grade === "act" ? "Act" : "Look"),
        el("span", {}, each.what),
        each.next && el("code", {}, each.next))),
  );
}

function figure(name, value, note = "", extra = null, kind = "") {
  return el(`div${kind && `.${kind}`}`, {},
    el("dt", {}, name), el("dd", {}, el("b", {}, value), extra, note && el("small", {}, note)));
}

function range({ summary, thresholds }) {
  const within = summary.usage_range <= thresholds.target;
  const gauge = el("span.gauge", {
    "aria-hidden": "true",
    css: {
      "--low": summary.usage_min ?? 0,
      "--high": summary.usage_max ?? 0,
      "--mean": summary.usage_mean ?? 0,
      "--limit": Math.min(1, thresholds.overloaded),
    },
  }, el("i.band"), el("i.mean"), el("i.full"));
  const note = `${percent(summary.usage_min)} to ${percent(summary.usage_max)}; ` +
    `target ${points(thresholds.target)}${within ? ", reached" : ""}`;
  return figure("Range of usage", points(summary.usage_range), note, gauge, "range");
}

function hits({ hits: counters, strategy }) {
  const named = Object.entries(counters);
  if (!named.length) return [figure("Hits", "none", `${strategy} counts none`)];
  return named.map(([name, { count, limit }]) =>
    figure(`Hits: ${spaced(name)}`, `${number(count)} of ${number(limit)}`,
      count >= limit ? "acts" : `acts in ${some(limit - count, "more round")}`, pips(count, limit)));
}

function pips(count, limit) {
  if (limit > 20) return null;
  return el("span.pips", { "aria-hidden": "true" },
    ...Array.from({ length: limit }, (_, place) => el(place < count ? "i.on" : "i")));
}

const domains = ({ failureDomains }) =>
  failureDomains ? `in ${some(failureDomains, "failure domain")}` : "no failure domains";

function served({ unserved, unservedSince }) {
  if (!unserved) return "all served";
  return `${number(unserved)} without a broker since ${time(unservedSince)}`;
}

function waits({ waiting, held, doubt }) {
  if (doubt !== "stable") return `ownership is ${word(doubt)}`;
  if (waiting.length) return `${some(waiting.length, "plan")} for a person`;
  return held ? `${some(held, "change")} held back` : "nothing waits";
}

function did({ headline, skipped }) {
  const said = headline.split(": ").at(-1);
  return word(said || skipped || "nothing to do");
}

/** Say how fresh the shown round is. */
export function showPulse(state, overview) {
  const pulse = byId("pulse");
  if (!overview) return say(pulse, state === "live" ? "no round yet" : "connecting");
  const age = span((Date.now() - overview.at) / 1000);
  return say(pulse, state === "live"
    ? `live, round ${overview.round}, ${age} ago`
    : `round ${overview.round} of ${time(overview.at)}`);
}
