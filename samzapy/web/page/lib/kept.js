// What is kept beside the state: the timeline and the curves. A frame has the newest news only, and none comes while the tab is hidden for long: what
// is missing then is asked for.

const MAX_EVENTS = 2000, MAX_OF_TASKS = 1000, MAX_POINTS = 300, EVERY_MS = 1800, GAP_MS = 5000;
const OF_TASKS = ["task", "restore"]; // of these there are so many at once that they would push out all others

/** Events in their order, each once. */
export function merged(a, b) {
  const by_number = new Map(a.map((e) => [e.n, e]));
  for (const e of b) if (!(by_number.get(e.n)?.text.length > e.text.length)) by_number.set(e.n, e); // a frame cuts what is long
  const all = [...by_number.values()], often = (e) => OF_TASKS.includes(e.kind);
  const last = (list, most) => list.sort((x, y) => x.n - y.n).slice(-most);
  return [...last(all.filter((e) => !often(e)), MAX_EVENTS), ...last(all.filter(often), MAX_OF_TASKS)].sort((x, y) => x.n - y.n);
}

/** Points in the order of their times: those of `now` stand where `found` has none. */
export function joined(now, found) {
  if (!found.length) return now;
  const first = found[0].at_ms, last = found[found.length - 1].at_ms;
  return [...now.filter((p) => p.at_ms < first), ...found, ...now.filter((p) => p.at_ms > last)];
}

/** Keeps both whole. `get(path)` asks the driver; `show(events, series)` is called with what is there, whenever it changes. Returns {take(state, news)}, for each frame. */
export function kept(get, show) {
  let run = null, events = [], series = [], newest = 0, last_ms = -Infinity;
  const wanted = { events: false, series: false }, asked = { events: false, series: false };

  /** What is wanted is asked for, one question at a time; one that fails is asked again with the next frame. */
  async function ask(what, path, take) {
    if (!wanted[what] || asked[what]) return;
    asked[what] = true;
    const of = run;
    try {
      const found = await get(path);
      if (of === run) (wanted[what] = false), take(found), show(events, series);
    } catch {
      wanted[what] = true; // the banner says that the driver does not answer
    }
    asked[what] = false;
  }

  return {
    take({ job, now_ms }, news) {
      if (job.run_id !== run) (run = job.run_id), (events = []), (newest = 0), (wanted.events = true);
      if (now_ms - last_ms > GAP_MS) wanted.series = true;
      if (now_ms < last_ms) series = series.filter((p) => p.at_ms <= now_ms); // the driver's clock was set back
      last_ms = now_ms;
      if (news.length) {
        if (news[0].n > newest + 1) wanted.events = true;
        else if (!wanted.events) newest = Math.max(newest, news[news.length - 1].n);
        events = merged(events, news);
      }
      const { rates } = job, last = series[series.length - 1];
      if (!last || now_ms - last.at_ms >= EVERY_MS) series = [...series, { at_ms: now_ms, in: rates.in, out: rates.out, lag: rates.lag, ...rates.loop }].slice(-MAX_POINTS);
      show(events, series);
      ask("events", `/events?since=${newest}`, (found) => ((events = merged(events, found.items)), (newest = Math.max(newest, found.last))));
      ask("series", "/series", (found) => (series = joined(series, found.items).slice(-MAX_POINTS)));
    },
  };
}
