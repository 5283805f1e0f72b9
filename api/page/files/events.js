// Follows the API's server-sent events, and connects again whenever they end or fall silent.
//
// EventSource cannot send a token, so the stream is read with fetch.

import { open } from "./api.js";

const SILENT_MS = 10_000; // The API says something every three seconds.
const WAITS_MS = [500, 1000, 2000, 4000];

/**
 * Follow `path` until `stop()` of the returned object. `heard(name, data)` gets each event, and
 * "beat" for each sign of life between them; `lost(error)` is called whenever the connection is gone.
 */
export function follow(path, heard, lost) {
  let stopped = false;
  let current = null;

  const run = async () => {
    let failures = 0;
    while (!stopped) {
      current = new AbortController();
      try {
        await readOnce(path, current, (name, data) => {
          failures = 0;
          heard(name, data);
        });
      } catch (error) {
        if (!stopped) lost(error);
        if (error.status === 401 || error.status === 403) return;
      }
      if (failures) await pause(WAITS_MS[Math.min(failures, WAITS_MS.length) - 1]);
      failures += 1;
    }
  };
  run();
  return {
    stop() {
      stopped = true;
      current?.abort();
    },
  };
}

async function readOnce(path, controller, heard) {
  let timer = setTimeout(() => controller.abort(), SILENT_MS);
  try {
    const answer = await open(path, { signal: controller.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => controller.abort(), SILENT_MS);
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const each of events) tell(each, heard);
    }
  } finally {
    clearTimeout(timer);
  }
}

function tell(event, heard) {
  const fields = Object.fromEntries(
    event.split("\n").map((line) => {
      const at = line.indexOf(": ");
      return [line.slice(0, at), line.slice(at + 2)];
    }),
  );
  if (fields.data) heard(fields.event, JSON.parse(fields.data));
  else heard("beat", null);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
