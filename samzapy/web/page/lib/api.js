// The public interface: this page is a client of it and of nothing else.

import { events, patched } from "./frames.js";
import { at_driver, told } from "./now.js";

const KEY = "samzapy token";
const AGAIN_MS = 1000, STALE_MS = 2500, LOOK_MS = 500, HIDDEN_MS = 30000, TYPING_MS = 300; // looked at every half second: said after 3 s, and closed after 31 s, at most

/** Take the token out of the address, keep it for this tab only. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + "#/");
  }
  return sessionStorage.getItem(KEY) || "";
}

const token = takeToken();
const headers = token ? { Authorization: `Bearer ${token}` } : {};
let job = "", called = "", looked = "";
const LOOKS = /^samzapy (status|top|lag|ui|debug [a-z]+|dlq (list|show)|checkpoint show)$/; // these change nothing

/** A refusal, in the words of the interface. */
export class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail || problem.title || `status ${status}`);
    this.remedy = problem.remedy || "";
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { ...headers, ...options.headers }, credentials: "omit", cache: "no-store" });
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(content, answer.status);
  return content;
}

/** What this token may do, and which job this is. */
export async function me() {
  const found = await ask("/v1/me");
  job = `/v1/jobs/${encodeURIComponent(found.job)}/${encodeURIComponent(found.id)}`;
  called = found.called;
  looked = found.called_to_look;
  return found;
}

/** A text whose commands name this job's file, where it is known, in place of JOB.yaml. */
export function named(text) {
  if (!called || !text.includes("JOB.yaml")) return text;
  return text.replace(/\b(samzapy(?: [a-z]+){1,3}) JOB\.yaml/g, (_, command) => `${command} ${LOOKS.test(command) ? looked : called}`);
}

/** The jobs of the cluster. */
export const jobs = () => ask("/v1/jobs");

export const get = (path) => ask(job + path);
export const post = (path, body) => ask(job + path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

/** Asks once. Returns what ends that: an answer that comes after it is not taken, since another question was asked meanwhile. */
export function once(path, take, refuse) {
  let is_over = false;
  get(path).then((found) => is_over || take(found), (refused) => is_over || refuse(refused));
  return () => void (is_over = true);
}

/** Calls `ask` now, and again and again while the tab is seen. Returns what ends that. */
export function every(ms, ask) {
  ask();
  const timer = setInterval(() => document.visibilityState === "hidden" || ask(), ms);
  return () => clearInterval(timer);
}

/**
 * Live frames, one stream, again whenever it ends; closed while the tab is hidden for long. `show(state, news)` is called with each frame,
 * `tell({since, why})` with the time of the last frame when they stop coming, null when they come again. `why`: a refusal's own words; "": nobody
 * answers. Returns {look(view), close()}.
 */
export function live(view, show, tell) {
  let state = {}, last = Date.now(), cut = new AbortController(), is_over = false, hidden_since = null;
  let wanted = view, typing = null, moved = 0, why = "", wake = () => {};
  const say = () => tell({ since: at_driver(last), why });
  const stale = setInterval(() => {
    if (Date.now() - Math.max(last, moved) > STALE_MS) say(); // after another look, the driver has that long once more
    const hidden = document.visibilityState === "hidden";
    hidden_since = hidden ? hidden_since ?? Date.now() : null;
    if (hidden && Date.now() - hidden_since >= HIDDEN_MS) cut.abort();
  }, LOOK_MS);

  async function read() {
    const query = new URLSearchParams(view).toString();
    const answer = await fetch(`${job}/stream?${query}`, { headers, credentials: "omit", cache: "no-store", signal: cut.signal });
    if (!answer.ok) throw new Refused(await answer.json().catch(() => ({})), answer.status);
    state = {};
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", found; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      [found, rest] = events(rest + value);
      for (const [event, data] of found) {
        if (event !== "frame") continue;
        const frame = JSON.parse(data);
        state = patched(state, frame);
        last = Date.now();
        why = "";
        told(frame.now_ms);
        tell(null);
        show(state, frame.news || []);
      }
    }
  }

  const pause = () => new Promise((later) => {
    const timer = setTimeout(later, AGAIN_MS);
    wake = () => (clearTimeout(timer), later());
  });

  async function keep() {
    while (!is_over) {
      const began = Date.now(), before = last, looked = moved;
      if (cut.signal.aborted) cut = new AbortController();
      try {
        if (document.visibilityState !== "hidden" || hidden_since === null) await read();
      } catch (error) {
        if (error instanceof Refused && (error.status === 401 || error.status === 403)) return show(null, [], error);
        if (!cut.signal.aborted) {
          why = error instanceof Refused ? [error.message, error.remedy.replace(/\.$/, "")].filter(Boolean).join(". ") : "";
          if (why || last === before) say(); // known at once
        }
      }
      if (moved === looked && Date.now() - began < AGAIN_MS) await pause();
    }
  }
  keep();
  return {
    look(other) {
      if (JSON.stringify(other) === JSON.stringify(wanted)) return;
      wanted = other;
      clearTimeout(typing);
      typing = setTimeout(() => {
        if (JSON.stringify(wanted) === JSON.stringify(view)) return;
        view = wanted;
        moved = Date.now();
        cut.abort();
        wake();
      }, TYPING_MS);
    },
    close() {
      is_over = true;
      clearTimeout(typing);
      clearInterval(stale);
      cut.abort();
      wake();
    },
  };
}
