// The overview: what is wrong, the numbers, the graph, containers, the last events.

import { Graph } from "../lib/graph.js";
import { number, percent, rate, seconds, short, trend } from "../lib/format.js";
import { Badge, Copy, Loop, Restored, Spark, State, html } from "../lib/parts.js";
import { Jobs } from "./jobs.js";
import { LastRun } from "./still.js";
import { EventList } from "./timeline.js";

export function Hint({ hint }) {
  const evidence = Object.entries(hint.evidence).map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(" · ");
  return html`<section class=${`card hint ${hint.severity}`}>
    <div class="say">${hint.sentence}</div>
    ${evidence && html`<div class="soft">${evidence}</div>`}
    ${hint.remedy && html`<div class="remedy"><code>${hint.remedy}</code><${Copy} text=${hint.remedy} /></div>`}
  </section>`;
}

const Tile = ({ name, big, more, points, tone, wide }) => html`<section class=${`card tile ${wide ? "wide" : ""} ${points ? "has-line" : ""}`}>
  <div class="name">${name}</div><div class="big">${big}</div><div class="soft">${more}</div>
  ${points && html`<${Spark} points=${points} tone=${tone} />`}
</section>`;

export function Overview({ state, series, graph, recent }) {
  const { job, containers = {}, hints = [], restores = [] } = state, rates = job.rates;
  const of = (name) => series.map((point) => point[name]);
  const { least_s, most_s } = rates.end_to_end;
  return html`
    ${hints.map((hint) => html`<${Hint} key=${hint.code + hint.sentence} hint=${hint} />`)}
    ${job.is_still ? html`<${LastRun} job=${job} recent=${recent} />` : html`<div class="tiles">
      <${Tile} name="in" big=${rate(rates.in)} more=${`${short(job.processed)} records so far`} points=${of("in")} />
      <${Tile} name="out" big=${rate(rates.out)} more=${Object.keys(rates.sent).length > 1 ? `${Object.keys(rates.sent).length} topics` : ""} points=${of("out")} />
      <${Tile} name="behind" big=${`${number(rates.lag)}`} more=${`${seconds(rates.behind_s)} · ${trend(rates)}`} points=${of("lag")} tone="var(--held)" />
      <${Tile} name="record to result" big=${least_s == null ? "–" : `${seconds(least_s)} – ${seconds(most_s)}`} more="until its effect is committed, last minute" />
      <${Tile} name="commits" big=${seconds(rates.commits.p50_s)} more=${`p99 ${seconds(rates.commits.p99_s)} · ${number(rates.commits.count)} in a minute`} />
      <section class="card tile wide"><div class="name">where the time goes</div><${Loop} of=${rates.loop} /></section>
    </div>`}
    ${restores.length > 0 &&
    html`<section class="card"><h2>Restoring</h2><div class="scroll"><table>
      <thead><tr><th>store</th><th>so far</th><th>from</th></tr></thead>
      <tbody>${restores.map((r) => html`<tr key=${r.task + r.store}><td class="nw">${r.task}, ${r.store}</td>
        <td class="nw"><${Restored} needed=${r.needed} remaining=${r.remaining} eta=${r.eta_s == null ? "" : ` · ${rate(r.rate)} · ${seconds(r.eta_s)} left`} /></td>
        <td class="soft">${r.source}: ${r.reason}</td></tr>`)}</tbody></table></div></section>`}
    <section class="card graph"><h2>What flows</h2>${graph ? html`<${Graph} graph=${graph} rates=${rates} job=${job} />` : html`<p class="soft">${state.locked ? "needs a token" : "…"}</p>`}</section>
    ${!job.is_still && html`<div class="split">
      <section class="card"><h2>Containers</h2><div class="scroll"><table>
        <thead><tr><th>container</th><th>state</th><th>where</th><th class="n">tasks</th><th>its time</th></tr></thead>
        <tbody>${Object.values(containers).map((c) => html`<tr key=${c.id}><td>${c.id}</td><td class="nw"><${State} of=${c.state} /> <${Badge} of=${c.badge} /></td>
          <td class="nw">${c.host || "–"}${c.pid ? html`<span class="soft"> · ${c.pid}</span>` : ""}</td><td class="n">${c.tasks}</td>
          <td class="its-time"><${Loop} of=${c.loop} legend=${false} /></td></tr>`)}</tbody></table></div>
        ${job.containers > Object.keys(containers).length && html`<p class="soft">and ${job.containers - Object.keys(containers).length} more</p>`}
      </section>
      <section class="card"><h2>Last events</h2><${EventList} events=${recent.slice(-8).reverse()} /></section>
    </div>`}
    <${Jobs} />
    <p class="soft">${job.is_still ? "" : html`${percent(job.states.RUNNING / job.tasks || 0)} of ${job.tasks} tasks run · `}run ${job.run_id}</p>`;
}
