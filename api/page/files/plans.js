// Plans that wait for a person, and those of the last day: before, after, and the verbs.

import { clusterPath, get, post } from "./api.js";
import { byId, el, say } from "./dom.js";
import { absent, number, points, rate, some, span, time, word } from "./format.js";

const SHOWN = 10;
const WAIT_S = 10;
const VERBS = { approve: "Approve", reject: "Reject", cancel: "Cancel", undo: "Undo" };

/** The panel; `mayChange()` says whether the caller's role lets them answer plans. */
export function makePlans(mayChange) {
  let cluster = "";
  let told = "";

  async function refresh() {
    const found = (await get(clusterPath(cluster, "plans"))).slice(0, SHOWN);
    const now = JSON.stringify([found, mayChange()]);
    if (now === told) return; // What is being read, or asked for, stays as it is.
    told = now;
    byId("plan-list").replaceChildren(...found.map(card));
    say(byId("plans-note"), found.length ? "" : "No plan in the last day: nothing waits for a person.");
  }

  function card(plan) {
    const { effect } = plan;
    const about = `${some(plan.steps, "step")}, ${some(effect.handovers, "hand-over")}` +
      ` of ${rate(effect.load)}, about ${span(effect.seconds)}`;
    const steps = el("details", {}, el("summary", {}, "Steps"));
    steps.addEventListener("toggle", () => steps.open && showSteps(steps, plan.id), { once: true });
    return el(`li.plan.${plan.state}`, {},
      el("p.bar", {}, el("strong", {}, plan.id), el("span.state", {}, plan.state),
        el("span.gap"), el("small", {}, `${time(plan.at)}, ${plan.origin}`)),
      el("p", {}, about),
      effect.before !== null && compare(effect.before, effect.after),
      plan.by && el("p", {}, el("small", {}, `by ${plan.by}`)),
      steps,
      answers(plan));
  }

  /** The verbs that the plan allows; each is asked for twice, as it changes a fleet. */
  function answers(plan) {
    const box = el("p.answers");
    const ask = () => box.replaceChildren(...plan.verbs.map((verb) =>
      el(verb === "approve" ? "button.main" : "button", { type: "button",
        "aria-label": `${VERBS[verb]} ${plan.id}`, onclick: () => confirm(verb) }, VERBS[verb])));
    const confirm = (verb) => {
      const sure = el("button.main", { type: "button", onclick: () => carryOut(verb) },
        `${VERBS[verb]}: ${some(plan.effect.handovers, "hand-over")}`);
      box.replaceChildren(sure, el("button", { type: "button", onclick: ask }, "No"));
      sure.focus();
    };
    const carryOut = async (verb) => {
      box.replaceChildren(el("span", {}, "asking the job"));
      try {
        const path = clusterPath(cluster, "plans", plan.id, verb);
        const change = await post(path, undefined, { wait: WAIT_S });
        say(byId("plans-said"), `${change.what}: ${change.state}`);
      } catch (error) {
        say(byId("plans-said"), error.message);
      }
      told = "";
      refresh();
    };
    if (mayChange()) ask();
    else if (plan.verbs.length) box.append(el("small", {}, "An operator's token may answer it."));
    return box;
  }

  async function showSteps(details, id) {
    const { steps } = await get(clusterPath(cluster, "plans", id));
    details.append(el("ol", {}, ...steps.slice(0, 100).map((step) =>
      el("li", {}, `${step.kind} ${step.bundle} `,
        step.destination ? `${step.source} → ${step.destination}` : step.source,
        el("small", {}, ` ${[step.state, step.rule && word(step.rule)].filter(Boolean).join(", ")}`)))),
      steps.length > 100 ? el("p", {}, `and ${number(steps.length - 100)} more`) : "");
  }

  return {
    async show(name) {
      cluster = name;
      await refresh();
    },
  };
}

/** Two bars on one scale. */
function compare(before, after) {
  const bar = (said, value) =>
    el("span.compare", { css: { "--to": Math.min(1, value ?? 0) } },
      el("small", {}, said), el("i", { "aria-hidden": "true" }),
      el("b", {}, value === null ? absent : points(value)));
  return el("div.pair", {}, el("span", {}, "Range of usage"), bar("before", before), bar("after", after));
}
