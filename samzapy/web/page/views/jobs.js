// All jobs of this Kafka cluster: name, state, link.

import { useEffect, useState } from "../vendor/hooks.js";
import { every, jobs } from "../lib/api.js";
import { State, html } from "../lib/parts.js";

const EVERY_MS = 15000;

export function Jobs() {
  const [list, setList] = useState(null);
  useEffect(() => {
    return every(EVERY_MS, () => jobs().then((found) => setList(found.items), () => {}));
  }, []);
  if (!list || list.length < 2) return null;
  return html`<section class="card"><h2>Jobs of this Kafka cluster</h2><div class="scroll"><table><caption class="hidden">Jobs</caption>
    <thead><tr><th>job</th><th>state</th><th>its page</th></tr></thead>
    <tbody>${list.map((job) => html`<tr key=${job.jobName + job.jobId}><td class="nw">${job.jobName}-${job.jobId}</td><td class="nw"><${State} of=${job.status} /></td>
      <td>${job.is_here ? html`<span class="soft">this one</span>` : /^https?:/.test(job.url) ? html`<a href=${job.url} rel="noreferrer noopener">${job.url}</a>` : html`<span class="soft">type <code>samzapy ui</code> and the name of its job file</span>`}</td></tr>`)}</tbody></table></div></section>`;
}
