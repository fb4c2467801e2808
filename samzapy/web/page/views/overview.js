// The overview: what is wrong, the numbers, the graph, containers, the last events.

import { Graph } from "../lib/graph.js";
import { cells, clock, number, percent, rate, seconds, short, trend, when } from "../lib/format.js";
import { Loop, Remedy, Restored, Shape, Spark, Where, html } from "../lib/parts.js";
import { Program } from "../lib/program.js";
import { Jobs } from "./jobs.js";
import { LastRun } from "./still.js";
import { EventList } from "./timeline.js";

const MANY_COMMITS = 256; // so many are kept
const SEE = { "stuck-hook": "inside", "interpreter-held": "timeline", flapping: "timeline", "dead-letters": "errors", "hot-key": "tasks", skew: "tasks", "slow-task": "tasks", "slow-host": "tasks", "standby-behind": "tasks", "unread-deletions": "tasks", "too-late": "tasks", "times-in-seconds": "tasks" };

export function Hint({ hint }) {
  const evidence = [hint.since_ms && `since ${when(hint.since_ms)}`, hint.detail].filter(Boolean);
  const see = SEE[hint.code];
  return html`<section class=${`card hint ${hint.severity}`}>
    <div class="say">${hint.sentence}</div>
    ${hint.remedy && html`<${Remedy} text=${hint.remedy} />`}
    <div class="soft">${evidence.join(" · ")}${see && html` · <a href=${`#/${see}`}>see ${see[0].toUpperCase() + see.slice(1)}</a>`}</div>
  </section>`;
}

/** Why the job is not whole, when that is over, and whether there is anything to do. */
function NotWhole({ job, restores, recent }) {
  const lost = job.tasks - (job.states.RUNNING || 0) - (job.states.STOPPED || 0);
  if (!["STARTING", "DEGRADED", "RESTORING"].includes(job.state) || !lost) return null;
  const left = Math.max(...restores.map((r) => r.eta_s ?? 0)), restoring = job.states.RESTORING || 0;
  const died = job.state === "STARTING" ? null : recent.findLast((e) => e.what === "died" || e.what === "failed");
  const tasks = (n) => `${number(n)} ${n === 1 ? "task" : "tasks"}`;
  const who = restoring === lost ? (lost === 1 ? "it" : "they") : tasks(restoring), long = left > 0 ? `, about ${seconds(left)} left` : "";
  const are = (n) => (n === 1 ? "is" : "are");
  const doing = restoring ? `${who} ${are(restoring)} restoring ${restoring === 1 ? "its" : "their"} state${long}` : `${lost === 1 ? "it is" : "they are"} waiting for a container`;
  return html`<section class=${`card hint ${job.state === "STARTING" ? "know" : "look"}`}>
    <div class="say">${job.state === "STARTING" ? "The job starts: " : ""}${number(lost)} of ${tasks(job.tasks)} ${are(lost)} not running${job.state === "STARTING" ? " yet" : ""}: ${doing}.</div>
    <div>The job goes on by itself. Where another card says what to do, do that.</div>
    ${died && html`<div class="soft">${clock(died.at_ms)}: ${died.text}</div>`}</section>`;
}

const Tile = ({ name, big, unit, more, points, tone, wide }) => html`<section class=${`card tile ${wide ? "wide" : ""} ${points ? "has-line" : ""}`}>
  <div class="name">${name}</div><div class=${`big ${big.length > 11 ? "long" : ""}`}>${big}${unit && html` <span class="unit">${unit}</span>`}</div><div class="soft">${more}</div>
  ${points && html`<${Spark} points=${points} tone=${tone} />`}
</section>`;

export function Overview({ state, series, graph, recent }) {
  const { job, containers = {}, hints = [], restores = [] } = state, rates = job.rates;
  const of = (name) => series.map((point) => point[name]);
  const { least_s, most_s } = rates.end_to_end;
  const list = Object.values(containers), told = list.filter((c) => !c.now).length; // one that is in a long call tells of its time when that is over
  const of_whom = told < list.length ? `${told} of ${list.length} containers` : "";
  return html`
    ${hints.map((hint) => html`<${Hint} key=${hint.code + hint.sentence} hint=${hint} />`)}
    ${!job.is_still && html`<${NotWhole} job=${job} restores=${restores} recent=${recent} />`}
    ${job.is_still ? html`<${LastRun} job=${job} recent=${recent} />` : html`<div class="tiles">
      <${Tile} name="in" big=${rate(rates.in)} more=${`${short(job.processed)} records so far`} points=${of("in")} />
      <${Tile} name="out" big=${rate(rates.out)} more=${Object.keys(rates.sent).length > 1 ? `${Object.keys(rates.sent).length} topics` : ""} points=${of("out")} />
      <${Tile} name="behind" big=${number(rates.lag)} unit=${rates.lag === 1 ? "record" : "records"} more=${`${seconds(rates.behind_s)} · ${trend(rates)}`} points=${of("lag")} tone="var(--held)" />
      <${Tile} name="record to result" big=${least_s == null ? "–" : `${seconds(least_s)} – ${seconds(most_s)}`.replaceAll(/(?<=\d) /g, "\u00a0")} more="from arrival to commit, in the last minute" />
      <${Tile} name="commits" big=${seconds(rates.commits.p50_s)} more=${rates.commits.count ? `p99 ${seconds(rates.commits.p99_s)} · ${rates.commits.count < MANY_COMMITS ? number(rates.commits.count) : `${MANY_COMMITS} or more`} in the last minute` : "none in the last minute"} />
      <section class="card tile wide"><div class="name">where the time goes${of_whom && html`<span class="warn">, of ${of_whom}</span>`}</div><${Loop} of=${rates.loop} /></section>
    </div>`}
    ${restores.length > 0 &&
    html`<section class="card"><h2>Restoring</h2><div class="scroll"><table class="cards">
      <thead><tr><th>store</th><th>so far</th><th>from</th></tr></thead>
      <tbody>${restores.map((r) => html`<tr key=${r.task + r.store}><td class="nw">${r.task}, ${r.store}</td>
        <td class="nw"><${Restored} needed=${r.needed} remaining=${r.remaining} eta=${r.eta_s == null ? "" : ` · ${rate(r.rate)} · ${seconds(r.eta_s)} left`} /></td>
        <td class="soft">${r.source}: ${r.reason}</td></tr>`)}</tbody></table></div>
      ${job.restores > restores.length && html`<p class="soft">and ${number(job.restores - restores.length)} more stores: see <a href="#/tasks?find=RESTORING">all tasks that restore</a></p>`}</section>`}
    <section class="card graph"><h2>What flows</h2>${graph ? html`<${Graph} graph=${graph} rates=${rates} job=${job} of_whom=${of_whom} />` : html`<p class="soft">${state.locked ? "needs a token" : "…"}</p>`}</section>
    ${graph?.operators.length > 0 && html`<${Program} operators=${graph.operators} counts=${state.operators} at=${state.now_ms} />`}
    ${!job.is_still && html`<div class="split">
      <section class="card"><h2>Containers</h2><div class="scroll"><table class="cards">
        <thead><tr><th>container</th><th>state</th><th>where</th><th class="n">tasks</th><th>its time</th></tr></thead>
        <tbody>${list.map((c) => html`<tr key=${c.id}><td>${c.id}</td><td class="nw"><${Shape} c=${c} letters=${cells(state.cells?.[c.id] || "")} /></td>
          <td><${Where} c=${c} /></td><td class="n">${c.tasks}</td>
          <td class="its-time"><${Loop} of=${c.loop} legend=${false} /></td></tr>`)}</tbody></table></div>
        ${job.containers > list.length && html`<p class="soft">and ${job.containers - list.length} more</p>`}
      </section>
      <section class="card"><h2>Last events</h2><${EventList} events=${recent.slice(-6).reverse()} /></section>
    </div>`}
    <${Jobs} />
    <p class="soft">${job.is_still ? "" : html`${number(job.states.RUNNING || 0)} of ${number(job.tasks)} tasks are RUNNING · `}run ${job.run_id}</p>`;
}
