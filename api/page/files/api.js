// Asks the API that served this page. The token is kept in this tab alone.

const KEY = "trimtab.token";
const base = new URL("trimtab/v1/", document.baseURI);

/** Why a request was not answered; `status` is 0 if nothing came back. */
export class Refused extends Error {
  constructor(status, reason, next = "") {
    super(reason);
    this.status = status;
    this.next = next;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
  clear: () => sessionStorage.removeItem(KEY),
};

/** The path of a cluster; each further part is encoded. */
export const clusterPath = (cluster, ...parts) =>
  ["clusters", cluster, ...parts].map(encodeURIComponent).join("/");

/** The answer itself, for streams. */
export async function open(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(new URL(path, base), { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the API does not answer");
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** GET a path's JSON. Members of `query` that are null are left out, lists are repeated. */
export async function get(path, query = {}, signal = undefined) {
  return (await open(withQuery(path, query), { signal })).json();
}

/** POST `body` as JSON. */
export async function post(path, body, query = {}) {
  const options = {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Trimtab-Reason": "from the web page" },
    body: body === undefined ? undefined : JSON.stringify(body),
  };
  return (await open(withQuery(path, query), options)).json();
}

function withQuery(path, query) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) asked.append(name, each);
    }
  }
  return asked.size ? `${path}?${asked}` : path;
}

async function refusal(answer) {
  try {
    const { reason, next } = await answer.json();
    return new Refused(answer.status, reason ?? answer.statusText, next);
  } catch {
    return new Refused(answer.status, answer.statusText || `status ${answer.status}`);
  }
}
