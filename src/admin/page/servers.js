// SPDX-License-Identifier: Apache-2.0
// Control planes: their states, and why, in words.
// Reads ClusterList { authorities }
// Reads AuthorityRow { name, servers }
// Reads ServerRow { dialects, lacking, last_error, last_success, next_attempt, server, sessions, since, state, streams, suspected,
//   types, unserved, watching, why }
// Reads ServerGlimpse { authority, server, state, why }
// Reads SpokenDialect { reason }
// Reads OfType { resources, stale }
// Reads LackingNames { count, sessions, some }

import { Rounds } from "./asked.js";
import { h, show } from "./elements.js";
import { asJson, empty, problem, since, state, title } from "./parts.js";
import { count, many, typeWord } from "./words.js";

const PAUSE = 2000;

/** Returns how an authority is called. */
function called(authority) {
  if (authority === "" || authority === "#old") {
    return "names without an authority";
  }
  return authority.startsWith("#") ? `source ${authority.slice(1)}` : authority;
}

/** Returns the sentence about a server without its address and its state, which stand beside it. */
function reason({ server, state: word, why }) {
  const beside = `${server} ${word}`;
  return why.startsWith(beside) ? why.slice(beside.length).trim() : why;
}

/** Returns the control planes as a list, in the order in which they are asked. */
export function servers(all) {
  if (all.length === 0) {
    return empty("No control plane is known yet.");
  }
  const authorities = Map.groupBy(all, (one) => one.authority);
  return [...authorities]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([authority, own]) =>
      h(
        "div",
        { "data-key": authority },
        // Where there is one authority, its name says nothing.
        authorities.size > 1 && h("h3", null, called(authority)),
        h(
          "ol",
          { class: "plain" },
          own.map((one) =>
            h(
              "li",
              { "data-key": one.server },
              h("p", { class: "line" }, state(one.state), h("span", { class: "name" }, one.server)),
              // In one line, so that new numbers move nothing; the view of control planes has all of it.
              h("p", { class: "words brief", title: reason(one) }, reason(one)),
            ),
          ),
        ),
      ),
    );
}

export function open(place) {
  const content = h("div");
  place.replaceChildren(title("Control planes", asJson("/clusters?format=json", "Control planes")), content);
  const rounds = new Rounds(
    PAUSE,
    () => ["/clusters?format=json"],
    ({ authorities }) => show(content, authorities.map((one) => authorityOf(one, authorities.length > 1))),
    (error) => show(content, problem(error)),
  );
  return () => rounds.stop();
}

function authorityOf({ name, servers: all }, several) {
  return h(
    "section",
    { class: "section", "data-key": name },
    several ? h("h2", null, called(name)) : h("h2", { class: "unseen" }, "All control planes"),
    all.map((one, at) => serverOf(one, at, all.length)),
  );
}

function serverOf(server, at, all) {
  const held = Object.entries(server.types).map(([type, { resources, stale }]) =>
    h("li", { "data-key": type }, `${typeWord(type)} ${count(resources)}`, stale && [" ", state("STALE", "not confirmed")]),
  );
  const facts = [
    all > 1 && ["Priority", `${at + 1} of ${all}`],
    server.since && ["Since", since(server.since)],
    server.last_success && ["Last answer", since(server.last_success)],
    server.next_attempt && ["Next attempt", h("time", { datetime: server.next_attempt }, server.next_attempt.slice(11, 19))],
    held.length > 0 && ["Resources", h("ul", { class: "flow" }, held)],
    ["Streams", count(server.streams)],
    [
      "Sessions",
      server.watching > 0 ? `${count(server.sessions)}, and ${count(server.watching)} that wait for it` : count(server.sessions),
    ],
    ...Object.entries(server.dialects).map(([dialect, { reason: why }]) => ["Dialect", `${dialect}: ${why}`]),
    server.last_error && ["Last error", server.last_error],
    ...Object.entries(server.suspected).map(([type, why]) => [`Ends streams of ${typeWord(type)}`, why]),
    ...Object.entries(server.unserved).map(([type, why]) => [`Does not serve ${typeWord(type)}`, why]),
    server.lacking.count > 0 && ["Never sent", lacking(server.lacking)],
  ].filter(Boolean);
  return h(
    "article",
    { class: "card", "data-key": server.server },
    h("h3", { class: "line" }, state(server.state), h("span", { class: "name" }, server.server)),
    h("p", { class: "words" }, reason(server)),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
    ),
  );
}

function lacking({ sessions, count: all, some }) {
  const more = all - some.length;
  const names = more > 0 ? `${some.join(", ")} and ${count(more)} more` : some.join(", ");
  return `${many(all, "resource")} that ${many(sessions, "session needs", "sessions need")}: ${names}`;
}
