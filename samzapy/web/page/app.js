// The page: which view, the live frames, and what is kept beside them.

import { render } from "./vendor/preact.js";
import { useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import { every, get, live, me, once } from "./lib/api.js";
import { clock, seconds } from "./lib/format.js";
import { kept } from "./lib/kept.js";
import { now } from "./lib/now.js";
import { Remedy, State, html } from "./lib/parts.js";
import { Actions } from "./views/actions.js";
import { Config } from "./views/config.js";
import { Errors } from "./views/errors.js";
import { Inside } from "./views/inside.js";
import { Overview } from "./views/overview.js";
import { Runs } from "./views/runs.js";
import { Tasks } from "./views/tasks.js";
import { Timeline } from "./views/timeline.js";
import { Topics } from "./views/topics.js";

const VIEWS = { "": "Overview", tasks: "Tasks", timeline: "Timeline", errors: "Errors", inside: "Inside", topics: "Topics", config: "Config", runs: "Runs" };

/** The view and its parameters, as the address has them: #/tasks?sort=-lag. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: path in VIEWS ? path : "", view: Object.fromEntries(new URLSearchParams(query || "")) };
}

const go = (name, view) => history.replaceState(null, "", `#/${name}${Object.keys(view).length ? "?" + new URLSearchParams(view) : ""}`);

function useTheme() {
  const [theme, setTheme] = useState(sessionStorage.getItem("samzapy theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  document.documentElement.dataset.theme = theme;
  return [theme, () => {
    const other = theme === "dark" ? "light" : "dark";
    sessionStorage.setItem("samzapy theme", other);
    setTheme(other);
  }];
}

function Locked({ error }) {
  return html`<main><section class="card"><h2>A token is needed</h2><p>${error ? error.message + "." : "This page shows a running job to those who have its token."}</p>
    <p>Where the job was started, type <code>samzapy ui JOB.yaml</code>: it prints the address with a token, and opens it.</p></section></main>`;
}

/** State and news as they come, with the history that was before. */
function useLive(view, is_on) {
  const [state, setState] = useState(null), [stale, setStale] = useState(null), [error, setError] = useState(null), [events, setEvents] = useState([]), [series, setSeries] = useState([]);
  const stream = useRef(null);
  useEffect(() => {
    if (!is_on) return;
    const beside = kept(get, (events, series) => (setEvents(events), setSeries(series)));
    stream.current = live(view, (next, news, refused) => {
      if (refused) return setError(refused);
      setState(next);
      beside.take(next, news);
    }, setStale);
    return () => stream.current.close();
  }, [is_on]);
  useEffect(() => stream.current?.look(view), [JSON.stringify(view)]);
  useEffect(() => { // what is wider than its place is scrolled by keyboard too
    for (const place of document.querySelectorAll(".scroll, .graph")) place.scrollWidth > place.clientWidth + 1 ? (place.tabIndex = 0) : place.removeAttribute("tabindex");
  });
  return { state, stale, error, events, series };
}

function App() {
  const [theme, turn] = useTheme(), [at, setAt] = useState(place()), [known, setKnown] = useState(null), [graph, setGraph] = useState(null), [commits, setCommits] = useState([]);
  const view = useMemo(() => (at.name === "tasks" ? { sort: "-lag", ...at.view } : { sort: "-lag" }), [at]);
  const { state, stale, error, events, series } = useLive(view, known && known.may !== "anyone");
  useEffect(() => {
    me().then(setKnown, (refused) => setKnown({ may: "anyone", error: refused }));
    const moved = () => setAt(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    if (known && known.may !== "anyone") return once("/graph", setGraph, () => {});
  }, [known, state?.job.run_id]);
  useEffect(() => {
    if (at.name !== "timeline" || !state) return;
    return every(2000, () => get("/commits").then((found) => setCommits(found.items), () => {}));
  }, [at.name, !!state]);
  useEffect(() => {
    if (!state) return;
    document.title = stale ? `stale since ${clock(stale.since)} – ${state.job.job}` : `${state.job.state === "RUNNING" ? "" : state.job.state + " – "}${state.job.job}-${state.job.id}`;
  }, [state?.job.state, stale?.since]);
  useEffect(() => void document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [at.name, known]);
  const look = (more) => {
    const next = { ...at.view, ...more };
    for (const name of Object.keys(next)) if (next[name] === "" || next[name] === 0) delete next[name];
    go(at.name, next);
    setAt(place());
  };
  if (known === null) return null;
  const since = state && [...events].reverse().find((e) => e.kind === "job" && e.what === "state"); // hints are of the job too
  const refused = error || known.error || (known.may === "anyone" ? {} : null);
  return html`<div class=${stale ? "is-stale" : ""}>
    <header class="top"><div class="in">
      <div class="bar"><span class="brand"><svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="currentColor" /><path d="M6 21c5 0 5-10 10-10s5 10 10 10" fill="none" stroke="var(--card)" stroke-width="3.4" stroke-linecap="round" /></svg><b>samzapy</b></span>
        <h1>${known.job ? `${known.job}-${known.id}` : ""}</h1>
        ${state && html`<span aria-live="polite"><${State} of=${state.job.state} /></span>${since && !state.job.is_still && html`<span class="soft">for ${seconds((now() - since.at_ms) / 1000)}</span>`}`}
        <span class="grow" />
        ${state && html`<span class="soft live">${stale ? "" : state.job.is_still ? "from Kafka" : "live"}</span>`}
        <button onClick=${turn} aria-label=${`switch to ${theme === "dark" ? "light" : "dark"} colours`}>${theme === "dark" ? "☀" : "☾"}</button>
        ${state && !state.job.is_still && html`<${Actions} may=${known.may} job=${state.job} containers=${state.containers} />`}
      </div>
      <nav aria-label="Views">${Object.entries(VIEWS).filter(([name]) => (name !== "inside" || !state?.job.is_still) && (name !== "topics" || known.data !== false)).map(([name, text]) => html`<a key=${name} href=${`#/${name}`} aria-current=${at.name === name ? "page" : undefined}>${text}${name === "errors" && state?.job.errors ? html`<span class="count">${state.job.errors > 999 ? "999+" : state.job.errors}</span>` : ""}</a>`)}</nav>
    </div></header>
    ${stale && html`<div class="stale" role="status">stale since ${clock(stale.since)}: ${stale.why || "the driver does not answer"}${state ? ". What is below is as it was then." : ""}</div>`}
    ${refused ? html`<${Locked} error=${refused.message ? refused : null} />` : !state ? html`<main><p class="soft">…</p></main>` : html`<main>
      ${state.job.reason && html`<section class=${`card hint ${state.job.state === "PAUSED" ? "look" : "act"}`}><div class="say"><${Remedy} text=${state.job.reason[0].toUpperCase() + state.job.reason.slice(1)} /></div></section>`}
      ${(state.job.notes || []).map((note) => html`<section class="card hint know"><div>${note}</div></section>`)}
      ${at.name === "" && html`<${Overview} state=${state} series=${series} graph=${graph} recent=${events} />`}
      ${at.name === "tasks" && html`<${Tasks} state=${state} view=${view} look=${look} />`}
      ${at.name === "timeline" && html`<${Timeline} events=${events} commits=${commits} series=${series} />`}
      ${at.name === "errors" && html`<${Errors} job=${state.job} may=${known.may} view=${at.view} look=${look} />`}
      ${at.name === "inside" && html`<${Inside} state=${state} may=${known.may} />`}
      ${at.name === "topics" && html`<${Topics} view=${at.view} look=${look} />`}
      ${at.name === "config" && html`<${Config} view=${at.view} look=${look} run_id=${state.job.run_id} />`}
      ${at.name === "runs" && html`<${Runs} view=${at.view} look=${look} job=${state.job} />`}
    </main>`}
  </div>`;
}

render(html`<${App} />`, document.getElementById("app"));
