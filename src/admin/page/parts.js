// SPDX-License-Identifier: Apache-2.0
// Parts that several views have in common.

import { h } from "./elements.js";
import { ago, brief, typeWord } from "./words.js";

/** What a state means for the reader: `well`, `busy`, `wrong` or `idle`. */
const TONES = {
  well: ["answering", "accepted", "SYNCED", "acked", "LIVE", "READY"],
  busy: [
    "connecting",
    "connected",
    "sent",
    "outdated",
    "not_sent",
    "STALE",
    "requested",
    "leaving",
    "PRE_INITIALIZING",
    "INITIALIZING",
    "DRAINING",
    "does_not_exist_but_cached",
    "unknown",
  ],
  wrong: [
    "unreachable",
    "rejected",
    "ERROR",
    "nacked",
    "nacked_but_cached",
    "received_error",
    "received_error_but_cached",
    "timeout",
    "timed_out",
  ],
};

/** What states mean in words, where their names do not say it. */
const MEANINGS = {
  SYNCED: "accepted",
  STALE: "sent, not answered",
  NOT_SENT: "nothing sent",
  ERROR: "rejected",
  acked: "there",
  requested: "asked for, no answer yet",
  does_not_exist: "does not exist",
  does_not_exist_but_cached: "deleted, still kept",
  nacked: "invalid",
  nacked_but_cached: "invalid; the one before is kept",
  received_error: "error of the control plane",
  received_error_but_cached: "error; the one before is kept",
  timeout: "no answer in time",
  timed_out: "no answer in time",
  not_sent: "not sent yet",
  unknown: "no answer yet",
  missing: "does not exist",
  leaving: "removal on its way",
  LIVE: "serving",
  DRAINING: "draining",
  PRE_INITIALIZING: "starting",
  INITIALIZING: "starting",
};

export function tone(word) {
  return Object.keys(TONES).find((name) => TONES[name].includes(word)) ?? "idle";
}

export function meaning(word) {
  return MEANINGS[word] ?? word.replaceAll("_", " ");
}

/** Returns a state in words, with a mark in its colour. */
export function state(word, text = meaning(word)) {
  return h("span", { class: `state ${tone(word)}` }, text);
}

/** Returns the short word of a type, which is shown in full when it is pointed at. */
export function kind(type) {
  return h("span", { class: "kind", title: type }, typeWord(type));
}

export function version(text) {
  return text ? h("code", { class: "version", title: text }, brief(text)) : h("span", { class: "quiet" }, "–");
}

export function since(time) {
  return time ? h("time", { datetime: time, title: time }, ago(time)) : h("span", { class: "quiet" }, "–");
}

/** Returns a link to the same as JSON. */
export function asJson(path, what) {
  return h("a", { class: "json", href: path, "aria-label": `${what} as JSON` }, "JSON");
}

/** Returns the heading of a view, which gets the focus when the view opens. */
export function title(text, ...beside) {
  return h("div", { class: "title" }, h("h1", { id: "heading", tabindex: "-1" }, text), beside);
}

/** Returns a section with a heading. */
export function section(id, name, beside, ...children) {
  return h(
    "section",
    { id, class: "section", "aria-labelledby": `${id}-name` },
    h("div", { class: "bar" }, h("h2", { id: `${id}-name` }, name), beside),
    children,
  );
}

/**
 * Returns a table. Each column has a name, and perhaps a class for its cells; the first cell of each row is its heading. A row is
 * {key, cells, tone}. A table too wide for a phone scrolls by itself, by keyboard too.
 */
export function table(name, columns, rows) {
  const head = columns.map(({ name: column, kind: of }) => h("th", { scope: "col", class: of ?? null }, column));
  const body = rows.map(({ key, cells, tone: of }) => {
    const all = cells.map((cell, at) =>
      at === 0
        ? h("th", { scope: "row", class: columns[at].kind ?? null }, cell)
        : h("td", { class: columns[at].kind ?? null }, cell),
    );
    return h("tr", { "data-key": key, class: of ?? null }, all);
  });
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": name, tabindex: "0" },
    h("table", null, h("caption", { class: "unseen" }, name), h("thead", null, h("tr", null, head)), h("tbody", null, body)),
  );
}

export function empty(text) {
  return h("p", { class: "empty" }, text);
}

export function problem(error) {
  return h("p", { class: "problem", role: "alert" }, error.message);
}

/** Returns the address of a resource on this page. */
export function resourceLink(type, name) {
  return `#resource/${encodeURIComponent(typeWord(type))}/${encodeURIComponent(name)}`;
}

/** Returns a field for a search, with its name. */
export function search(name, hint, value) {
  const field = h("input", { type: "search", id: "search", value, placeholder: hint, autocomplete: "off", spellcheck: "false" });
  return { field, row: h("div", { class: "field" }, h("label", { for: "search" }, name), field) };
}

/** Returns a field for a choice among [value, text], with its name. */
export function choice(id, name, options, chosen) {
  const field = h(
    "select",
    { id },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
  return { field, row: h("div", { class: "field" }, h("label", { for: id }, name), field) };
}

/** Returns a function that calls another one once nothing has happened for a moment. */
export function calm(call, pause = 250) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, pause);
  };
}
