// Numbers, durations and times as people read them. Values in, text out.

import { now } from "./now.js";

const whole = new Intl.NumberFormat("en");

/** With thousands separated; "–" where it is not known. */
export const number = (n) => (n == null ? "–" : whole.format(Math.round(n)));

/** Short: 48.2 k. */
export function short(n) {
  if (n == null) return "–";
  const a = Math.abs(n);
  if (a < 10 && a % 1) return n.toFixed(1);
  if (a < 10000) return number(n);
  if (a < 1e6) return (n / 1e3).toFixed(1) + " k";
  return a < 1e9 ? (n / 1e6).toFixed(1) + " M" : (n / 1e9).toFixed(1) + " G";
}

/** So many of a thing: "1 task", "2 tasks". */
export const some = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

/** Records a second. */
export const rate = (n) => (n == null ? "–" : short(n) + "/s");

/** A duration in the unit that suits it. */
export function seconds(s) {
  if (s == null) return "–";
  if (s === 0) return "0 s";
  if (s < 1) return Math.max(1, Math.round(s * 1000)) + " ms";
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 120) return Math.round(s) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  return s < 172800 ? (s / 3600).toFixed(1) + " h" : Math.round(s / 86400) + " days";
}

/** Microseconds a record. */
export const micros = (us) => (us == null ? "–" : us < 10000 ? number(us) + " µs" : seconds(us / 1e6));

export function bytes(n) {
  if (n == null) return "–";
  return n < 2 ** 30 ? Math.round(n / 2 ** 20) + "\u00a0MiB" : (n / 2 ** 30).toFixed(1) + "\u00a0GiB";
}

export const percent = (share) => (share == null ? "–" : Math.round(share * 100) + " %");

const two = (n) => String(n).padStart(2, "0");

/** The time of day here. */
export function clock(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The time of day, and the day if it is not this one. */
export function when(ms) {
  const d = new Date(ms);
  return d.toDateString() === new Date(now()).toDateString() ? clock(ms) : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}

/** The beginning of a text. */
export const brief = (text, most = 120) => (text == null || text.length <= most ? text : text.slice(0, most) + "…");

const FURTHEST_MS = 8.64e15; // of a date of JavaScript's; a record's time may be any of 64 bits

/** Here and in UTC, for what is shown on hover. */
export const moment = (ms) => (Math.abs(ms) > FURTHEST_MS ? `${ms} ms since 1970` : `${new Date(ms).toLocaleString()} (${new Date(ms).toISOString()})`);

/** Lag in words: how it goes. */
export function trend(rates) {
  if (!rates || rates.lag == null) return "not known yet";
  if (!rates.lag) return "caught up";
  if (rates.caught_up_in_s != null) return `caught up in ${seconds(rates.caught_up_in_s)}`;
  if (rates.behind_s != null && rates.behind_s < 2 && rates.lag_rate < 0.02 * rates.in) return "keeps up";
  return rates.lag_rate > 0.5 ? `grows by ${rate(rates.lag_rate)}` : "not shrinking";
}

/** A loop's shares, the largest first: [[name, share], …]. */
export const largest = (loop) => Object.entries(loop || {}).filter(([, s]) => s >= 0.005).sort((a, b) => b[1] - a[1]);

/** "12r3l" → ["r" × 12, "l" × 3]. */
export function cells(text) {
  const found = [];
  for (const [, n, letter] of text.matchAll(/(\d+)([a-z])/g)) for (let i = 0; i < Number(n); i++) found.push(letter);
  return found;
}
