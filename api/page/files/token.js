// Who asks: the token's dialog, and the role that decides which buttons there are.

import { get, token } from "./api.js";
import { byId, say } from "./dom.js";

const CHANGING = new Set(["operator", "admin"]);

/** Asks for a token where the API wants one; `changed()` is called with each new caller. */
export function makeCaller(changed) {
  let caller = null;
  const dialog = byId("token-dialog");
  const who = byId("who");

  const askFor = (why) => {
    say(byId("token-said"), why);
    if (!dialog.open) dialog.showModal();
  };
  who.addEventListener("click", () => askFor("Another token takes the place of this one."));
  byId("token-form").addEventListener("submit", () => {
    token.set(byId("token").value.trim());
    byId("token").value = "";
    read();
  });

  async function read() {
    try {
      caller = await get("caller");
    } catch (error) {
      if (error.status !== 401) throw error;
      const given = token.get();
      token.clear();
      askFor(given ? "That token is not in force." : "Ask the people who run trimtab for one.");
      return false;
    }
    who.hidden = !caller.tokens;
    say(who, `${caller.name}, ${caller.role}`);
    changed();
    return true;
  }

  return { read, askFor, mayChange: () => CHANGING.has(caller?.role) };
}
