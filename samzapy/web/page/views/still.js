// A job that does not run: what was, and what to type.

import { clock, moment, number, seconds } from "../lib/format.js";
import { State, html } from "../lib/parts.js";
import { EventList } from "./timeline.js";

const day = (ms) => `${new Date(ms).toLocaleDateString()} ${clock(ms)}`;

/** The last run, in words and numbers, and how much waits for the next one. */
export function LastRun({ job, recent }) {
  const run = job.last_run;
  return html`
    <div class="tiles">
      <section class="card tile"><div class="name">waiting for the next run</div><div class="big">${number(job.rates.lag)}</div><div class="soft">records, in ${number(job.tasks)} tasks</div></section>
      ${run && html`<section class="card tile"><div class="name">processed in its last run</div><div class="big">${number(run.counts.processed)}</div><div class="soft">${number(run.counts.commits)} commits${run.counts.restarts ? ` · ${number(run.counts.restarts)} restarts` : ""}</div></section>
      <section class="card tile"><div class="name">it ran for</div><div class="big">${seconds(((run.ended_ms || run.told_ms) - run.began_ms) / 1000)}</div><div class="soft" title=${moment(run.began_ms)}>from ${day(run.began_ms)}</div></section>
      <section class="card tile"><div class="name">set aside, skipped</div><div class="big">${number((run.counts.dead_letters || 0) + (run.counts.skipped || 0))}</div><div class="soft">records that failed</div></section>`}
    </div>
    ${run && html`<section class="card"><h2>Its last run</h2><dl class="facts">
      <dt>run</dt><dd><code>${run.run_id}</code> <${State} of=${run.outcome || "LOST"} /></dd>
      <dt>started</dt><dd>${day(run.began_ms)} by ${run.started_by || "?"} on ${run.host || "?"} <code>${run.how}</code></dd>
      <dt>${run.ended_ms ? "ended" : "last heard"}</dt><dd>${day(run.ended_ms || run.told_ms)}${run.ended_by ? `: ${run.ended_by}` : ""}</dd>
      ${run.error && html`<dt>error</dt><dd class="bad">${run.error}</dd>`}${run.remedy && html`<dt>what to do</dt><dd>${run.remedy}</dd>`}</dl></section>`}
    <section class="card"><h2>Last events of that run</h2><${EventList} events=${recent.slice(-12).reverse()} /></section>`;
}
