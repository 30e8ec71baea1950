// SPDX-License-Identifier: Apache-2.0
// The charts of the last hour, from the counts that the relay keeps in memory.
// Reads HourCounts { away, changes, deliveries, holds, median, memory, processor, rejections, seconds_ago, since, slowest, streams }
// Reads CountSums { memory, stalled_seconds, stalls }

import { chart, linear, tenfold } from "./charts.js";
import { ago, bytes, count, many, rate, seconds } from "./words.js";

// What is shown at most, and at least: a relay that has just begun has points that one can see.
const HOUR = 3600;
const LEAST = 300;
const LOWEST = 0.001;
const HIGHEST = 10;

/** Returns for how many seconds the counts are known, as far as they are shown. */
function shown(history) {
  return Math.min(HOUR, Math.max(LEAST, ...history.seconds_ago));
}

function minutes(history) {
  return Math.round(shown(history) / 60);
}

function feet(history) {
  return [`${minutes(history)} min ago`, "now"];
}

/** Says of which time the charts are. */
export function title(history) {
  return shown(history) >= HOUR ? "The last hour" : `The last ${minutes(history)} minutes`;
}

/** Returns points from left to right; the latest is at the right end. */
function points(history, of) {
  const all = shown(history);
  return history[of].map((value, at) => [Math.max(0, 1 - history.seconds_ago[at] / all), value]);
}

function largest(...lists) {
  return Math.max(1, ...lists.flat());
}

function last(list) {
  return list.length > 0 ? list[list.length - 1] : null;
}

export function changesOf(history) {
  const most = largest(history.changes, history.deliveries);
  return chart({
    rows: [
      { name: "deliveries", points: points(history, "deliveries"), filled: true },
      { name: "changes", points: points(history, "changes") },
    ],
    scale: linear(most),
    label: rate,
    words: `${rate(last(history.changes))} changes and ${rate(last(history.deliveries))} deliveries a second; at most ${rate(most)} in ${minutes(history)} minutes`,
    feet: feet(history),
  });
}

export function convergenceOf(history) {
  const median = last(history.median);
  return chart({
    rows: [
      { name: "slowest", points: points(history, "slowest") },
      { name: "median", points: points(history, "median"), filled: true },
    ],
    scale: tenfold(LOWEST, HIGHEST),
    label: (number) => (number < 1 ? `${Math.round(number * 1000)} ms` : `${Math.round(number)} s`),
    words:
      median === null
        ? "nothing was acknowledged in the last seconds"
        : `half of the last changes were acknowledged within ${seconds(median)}, 99 of 100 within ${seconds(last(history.slowest))}`,
    feet: feet(history),
  });
}

export function clientsOf(history) {
  const most = largest(history.streams);
  return chart({
    rows: [{ name: "deliveries", points: points(history, "streams"), filled: true }],
    scale: linear(most),
    label: rate,
    words: `${count(last(history.streams) ?? 0)} client streams; at most ${count(most)} in ${minutes(history)} minutes`,
    feet: feet(history),
  });
}

/** What went wrong: rejections, control planes that were away, removals that were held. */
export function wrongOf(history) {
  const most = largest(history.rejections, history.away, history.holds);
  return chart({
    rows: [
      { name: "deliveries", points: points(history, "holds") },
      { name: "changes", points: points(history, "rejections") },
      { name: "away", points: points(history, "away") },
    ],
    scale: linear(most),
    label: rate,
    words: `${count(last(history.away) ?? 0)} control planes away, ${count(last(history.rejections) ?? 0)} rejections in ten seconds, ${count(
      last(history.holds) ?? 0,
    )} holds`,
    feet: feet(history),
  });
}

/** Says since when the counts are known. */
export function known({ since }) {
  const age = (Date.now() - Date.parse(since)) / 1000;
  return age < HOUR ? `The relay began ${ago(since)}; of before it knows nothing.` : "Counts of the last hour, which end with the process.";
}

/** Says how the process is: for how long it runs, its memory, and its processor time. */
export function processOf(counts, history) {
  const busy = history ? last(history.processor) : null;
  return [
    // The process may be older: a program that becomes the relay keeps the start of its process.
    history && `up ${ago(history.since).replace(/ ago$/, "")}`,
    counts.memory > 0 && `${bytes(counts.memory)} of memory`,
    counts.stalls > 0 && `did not run for ${seconds(counts.stalled_seconds)} in ${many(counts.stalls, "pause")}: throttled, or a paused machine`,
    busy !== null && `${(busy * 100).toFixed(busy < 0.1 ? 1 : 0)} % of a processor`,
  ]
    .filter(Boolean)
    .join(" · ");
}
