// The page: follows the API's events, and has each panel read again when there is a new round.

import { clusterPath, get } from "./api.js";
import { makeDecisions } from "./decisions.js";
import { byId, el, say } from "./dom.js";
import { makeDrawer } from "./drawer.js";
import { follow } from "./events.js";
import { makeFleet } from "./fleet.js";
import { time } from "./format.js";
import { readColours } from "./heat.js";
import { makeMigrations } from "./migrations.js";
import { showOverview, showPulse } from "./overview.js";
import { makePlans } from "./plans.js";
import { wireTheme } from "./theme.js";
import { makeCaller } from "./token.js";
import { suggest, wireWhatIf } from "./whatif.js";

const RETRY_MS = 1000;

let clusters = {}; // By name: what the newest event says.
let cluster = "";
let overview = null;
let link = "starting"; // live, late (the job is silent) or away.
let heardAt = 0; // When the API was last known to be well, by the clock here.
let stream = null;
let reading = false;
let again = false;

const drawer = makeDrawer(() => cluster);
const fleet = makeFleet((row) => drawer.openBroker(row), findOther);
const decisions = makeDecisions((subject, round) => drawer.openWhy(subject, round));
const migrations = makeMigrations();
const caller = makeCaller(() => connect());
const plans = makePlans(caller.mayChange);

/** What the search names if it is no broker: a bundle, or a namespace. */
function findOther(text) {
  const parts = text.split("/").length;
  if (parts === 3) drawer.openBundle(text);
  else if (parts === 2) drawer.openNamespace(text);
}

function connect() {
  stream?.stop();
  stream = follow("events", heard, (error) => {
    if (error.status === 401) caller.askFor("The token is no longer in force.");
    setLink("away", error.status ? error.message : "The API does not answer");
  });
  if (overview) refresh();
}

function heard(name, data) {
  if (name === "beat") {
    if (link === "live") heardAt = Date.now();
    return undefined;
  }
  if (name === "away") return setLink("away", data.reason);
  clusters = data;
  showClusters();
  const mine = clusters[cluster];
  if (!mine) {
    overview = null;
    return setLink("away", "No round of any cluster is recorded yet: does a job run?");
  }
  heardAt = Date.now();
  setLink(mine.late ? "late" : "live", mine.late ? "The job has decided no round" : "");
  return refresh();
}

function showClusters() {
  const names = Object.keys(clusters);
  const asked = new URLSearchParams(location.hash.slice(1)).get("cluster");
  if (!names.includes(cluster)) cluster = names.includes(asked) ? asked : (names[0] ?? "");
  const pick = byId("cluster");
  if ([...pick.options].map((each) => each.value).join() !== names.join()) {
    pick.replaceChildren(...names.map((value) => el("option", { value }, value)));
  }
  pick.value = cluster;
}

function setLink(now, why) {
  link = now;
  document.body.dataset.link = now;
  const away = byId("away");
  away.hidden = now === "live";
  if (now !== "live") {
    const since = now === "late" ? clusters[cluster].at : heardAt || Date.now();
    heardAt ||= since;
    const kept = overview ? ` What is below is round ${overview.round} of ${time(overview.at)}.` : "";
    say(away, `${why}, since ${time(since)}.${kept} It comes back by itself.`);
  }
  showPulse(link, overview);
}

/** Read all panels; while that is under way, one more time afterwards. */
async function refresh() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    do {
      again = false;
      await readAll(cluster);
    } while (again);
  } catch (error) {
    if (error.status) setLink("away", error.message);
    setTimeout(() => link !== "starting" && refresh(), RETRY_MS * 2);
  } finally {
    reading = false;
  }
}

async function readAll(name) {
  const found = await get(clusterPath(name, "overview"));
  if (name !== cluster) return;
  overview = found;
  showOverview(overview);
  showPulse(link, overview);
  if (link === "away") setLink(overview.late ? "late" : "live", "The job has decided no round");
  await Promise.all([
    fleet.show(name, overview),
    decisions.show(name),
    plans.show(name),
    migrations.show(name),
  ]);
  suggest(fleet.names());
}

byId("cluster").addEventListener("change", (event) => {
  cluster = event.target.value;
  history.replaceState(null, "", `#cluster=${encodeURIComponent(cluster)}`);
  heard("clusters", clusters);
});
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !typing && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    byId("search").focus();
  }
});
wireTheme(byId("theme"), () => {
  readColours();
  fleet.draw();
});
wireWhatIf(() => cluster);
setInterval(() => showPulse(link, overview), 1000);

/** The caller first: without a token in force no other request is answered. */
async function start() {
  try {
    await caller.read();
  } catch (error) {
    setLink("away", error.message);
    setTimeout(start, RETRY_MS);
  }
}
start();
