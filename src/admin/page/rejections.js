// SPDX-License-Identifier: Apache-2.0
// Rejections: what clients reject and why, once for equal reasons; and one content beside what was there before it.
// Reads Nacks { left_out, rejections, unanswered }
// Reads RejectedContent { accepted, before, clients, content, name, older, rejection, reported, since, software, some, type, version,
//   waiting }
// Reads EarlierContent { content, version }
// Reads RejecterRow { node, stream }
// Reads its own { how, key, keys, rank, resources, short, text, words }

import { Rounds, path } from "./asked.js";
import { differing, hunks, lines } from "./difference.js";
import { h, show } from "./elements.js";
import { asJson, empty, kind, problem, resourceLink, since, table, title, version } from "./parts.js";
import { count, many, typeWord } from "./words.js";

const PAUSE = 3000;
const NAMES_MAX = 100;
// Protobuf begins its texts in one of many ways, so that nobody depends on them.
const SCATTERED = /^goo\.gle\/debug\w*\s*/;

/** Returns rejections for equal reasons as one: {key, type, words, short, resources, clients, software, since, reported, older}. */
export function grouped(rejections) {
  const groups = Map.groupBy(rejections, (one) => `${one.type} ${one.rejection.replace(SCATTERED, "")}`);
  const all = [...groups].map(([reason, resources]) => {
    const [{ type, rejection }] = resources;
    const words = readable(rejection);
    // Clients name their software as they like, also `constructor`.
    const software = { __proto__: null };
    const streams = new Map(resources.flatMap((one) => one.some.map((client) => [client.stream, client])));
    resources
      .flatMap((one) => Object.entries(one.software))
      .forEach(([name, number]) => {
        software[name] = Math.max(software[name] ?? 0, number);
      });
    return {
      key: fingerprint(reason),
      type,
      words,
      short: last(words),
      software,
      resources: suspects(resources, words),
      clients: Math.max(streams.size, ...resources.map((one) => one.clients)),
      some: [...streams.values()],
      since:
        resources
          .map((one) => one.since)
          .filter(Boolean)
          .sort()[0] ?? null,
      older: Math.max(0, ...resources.map((one) => one.older ?? 0)),
      reported:
        resources
          .map((one) => one.reported)
          .filter(Boolean)
          .sort()
          .pop() ?? null,
    };
  });
  return all.sort((one, other) => other.clients - one.clients || (one.key < other.key ? -1 : 1));
}

/** Returns the words of a client with their lines. */
export function readable(rejection) {
  return rejection.replace(SCATTERED, "").replaceAll("\\n", "\n").trim();
}

/** Returns the last line of the words, which says what is wrong; those above it may be the content. */
export function last(rejection) {
  return (
    readable(rejection)
      .split("\n")
      .filter((line) => line.trim())
      .pop()
      ?.replace(/^[\s:]+/, "") ?? "(without words)"
  );
}

function fingerprint(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return (hash >>> 0).toString(16);
}

/** Nobody knows which part of a rejected response is bad: what the words name comes first, then what has changed. */
function suspects(resources, words) {
  const rank = (one) => {
    const named =
      one.name && (words.includes(`"${one.name}"`) || words.includes(`'${one.name}'`) || words.includes(` ${one.name} `));
    return named ? 0 : one.before ? 1 : 2;
  };
  // Words that differ only where it does not matter are one reason: then one content comes several times.
  const alike = [...Map.groupBy(resources, (one) => `${one.name} ${one.version}`).values()];
  const once = alike.map((all) => ({ ...all[0], rank: rank(all[0]), clients: all.reduce((sum, one) => sum + one.clients, 0) }));
  return once.sort((one, other) => one.rank - other.rank || (one.name < other.name ? -1 : 1));
}

/** Says what is rejected, and by how many. */
export function headline({ type, resources, clients }) {
  const names = new Set(resources.map((one) => one.name));
  const more = names.size - 1;
  if (more > 0 && resources[0].rank > 0) {
    // A client rejects a response as a whole.
    return `${many(clients, "client rejects", "clients reject")} ${count(names.size)} ${typeWord(type)} together, and named none`;
  }
  const what = more > 0 ? `${resources[0].name} and ${count(more)} more` : resources[0].name;
  return `${many(clients, "client rejects", "clients reject")} ${typeWord(type)} ${what}`;
}

export function open(place, live, [chosen]) {
  const content = h("div");
  place.replaceChildren(title("Rejections", asJson("/nacks", "Rejections")), content);
  const rounds = new Rounds(
    PAUSE,
    () => ["/nacks"],
    ({ rejections, left_out: left, unanswered }) => {
      const groups = grouped(rejections).filter((group) => !chosen || group.key === chosen);
      show(
        content,
        groups.length === 0 && empty(chosen ? "No client rejects this any more." : "No client rejects anything."),
        groups.map((group) => groupOf(group)),
        left > 0 && h("p", { class: "problem" }, `${many(left, "rejection")} more are not shown.`),
        unanswered > 0 && h("p", { class: "problem" }, `${many(unanswered, "client")} did not answer in time.`),
        chosen && h("p", null, h("a", { href: "#rejections" }, "All rejections")),
      );
    },
    (error) => show(content, problem(error)),
  );
  return () => rounds.stop();
}

function difference({ type, name, version: number }) {
  return `#rejection/${encodeURIComponent(typeWord(type))}/${encodeURIComponent(number ?? "")}/${encodeURIComponent(name)}`;
}

function who({ some, clients }) {
  const named = some
    .slice(0, 10)
    .map((client) =>
      h(
        "li",
        { "data-key": client.stream },
        h("a", { class: "name", href: `#client/${client.stream}` }, client.node || client.stream),
      ),
    );
  const more = clients - named.length;
  return h("ul", { class: "flow" }, named, more > 0 && h("li", { "data-key": "more" }, `and ${count(more)} more`));
}

/** Returns what a client says: the sentence that matters, and all of it on demand. */
export function said({ key, words, short }) {
  return h(
    "div",
    { class: "said", "data-key": `said ${key}` },
    h("p", { class: "problem" }, short),
    words !== short &&
      h(
        "details",
        null,
        h("summary", null, "All its words"),
        h("pre", { class: "words", tabindex: "0", role: "region", "aria-label": "The words of the rejection" }, words),
      ),
  );
}

function groupOf(group) {
  const first = group.resources[0].rank;
  const likely = group.resources.filter((one) => one.rank === first);
  const others = group.resources.filter((one) => one.rank !== first);
  return h(
    "article",
    { class: "card", "data-key": group.key },
    h("h2", null, headline(group)),
    said(group),
    h(
      "dl",
      { class: "facts" },
      group.since && h("div", null, h("dt", null, "Since"), h("dd", null, since(group.since))),
      h(
        "div",
        null,
        h("dt", null, "Control plane"),
        h("dd", null, group.reported ? ["told ", since(group.reported)] : "not told"),
      ),
      h("div", null, h("dt", null, "Clients"), h("dd", null, who(group))),
      h("div", null, h("dt", null, "Software"), h("dd", null, Object.keys(group.software).join(", "))),
      group.older > 0 &&
        h(
          "div",
          null,
          h("dt", null, "Older content"),
          h("dd", null, many(group.older, "client had nothing, and was sent it", "clients had nothing, and were sent it")),
        ),
    ),
    rejectedTable(group, likely, `Rejected, ${typeWord(group.type)}`),
    others.length > 0 &&
      h(
        "details",
        { "data-key": "others" },
        h("summary", null, `${count(others.length)} more in the same responses, which the words of the rejection do not name`),
        rejectedTable(group, others, `Rejected together with it, ${typeWord(group.type)}`),
      ),
  );
}

function rejectedTable(group, resources, name) {
  const rows = resources.slice(0, NAMES_MAX).map((one) => ({
    key: `${one.name} ${one.version}`,
    cells: [
      h("a", { class: "name", href: resourceLink(group.type, one.name) }, one.name),
      version(one.version),
      count(one.clients),
      one.version ? h("a", { href: difference(one) }, one.before ? "what changed" : "content") : "its removal",
    ],
  }));
  const more = resources.length - rows.length;
  return [
    table(
      name,
      [{ name: "Name", kind: "wide" }, { name: "Version" }, { name: "Clients", kind: "number" }, { name: "Compare" }],
      rows,
    ),
    more > 0 && h("p", { class: "quiet" }, `and ${count(more)} more`),
  ];
}

export function openOne(place, live, [type, number, name]) {
  const address = path("/nacks", { type, name, version: number });
  const content = h("div");
  place.replaceChildren(
    title(h("span", { class: "name" }, name), kind(type), asJson(address, "This rejection")),
    h(
      "p",
      { class: "lead" },
      "What was rejected, beside what was there before it. ",
      h("a", { href: resourceLink(type, name) }, "The resource"),
    ),
    content,
  );
  const rounds = new Rounds(
    PAUSE,
    () => [address],
    ({ rejections }) => show(content, rejectionOf(rejections)),
    (error) => show(content, problem(error)),
  );
  return () => rounds.stop();
}

function rejectionOf(rejections) {
  if (rejections.length === 0) {
    return empty("No client rejects this any more.");
  }
  const [group] = grouped(rejections);
  const [first] = rejections;
  return [
    h(
      "dl",
      { class: "facts" },
      h("div", null, h("dt", null, "Rejected"), h("dd", null, version(first.version))),
      h(
        "div",
        null,
        h("dt", null, "Before it"),
        h("dd", null, first.before ? version(first.before.version) : "not known any more"),
      ),
      group.since && h("div", null, h("dt", null, "Since"), h("dd", null, since(group.since))),
      h("div", null, h("dt", null, "Clients"), h("dd", null, who(group))),
      h("div", null, h("dt", null, "Software"), h("dd", null, adopted(rejections))),
    ),
    grouped(rejections).map(said),
    first.before?.content ? compared(first.before.content, first.content) : alone(first.content),
  ];
}

/** Returns for each software how many clients reject the content, have accepted it, and have done neither. */
function adopted(rejections) {
  const [{ accepted, waiting }] = rejections;
  const sum = (name) => rejections.reduce((all, one) => all + (one.software[name] ?? 0), 0);
  const names = new Set([...rejections.map((one) => one.software), accepted ?? {}, waiting ?? {}].flatMap(Object.keys));
  const words = (name) => [
    many(sum(name), "client rejects it", "clients reject it"),
    accepted && `${count(accepted[name] ?? 0)} accepted it`,
    waiting?.[name] && `${count(waiting[name])} did neither yet`,
  ];
  return h(
    "ul",
    { class: "flow" },
    [...names].sort().map((name) => h("li", { "data-key": name }, `${name}: ${words(name).filter(Boolean).join(", ")}`)),
  );
}

function alone(content) {
  return [
    h("p", { class: "quiet" }, "The relay does not have what was there before, so there is nothing to compare it with."),
    h(
      "pre",
      { class: "content", tabindex: "0", role: "region", "aria-label": "The rejected content" },
      JSON.stringify(content, null, 2),
    ),
  ];
}

const MARKS = { same: "  ", gone: "- ", come: "+ " };
const TAGS = { same: "span", gone: "del", come: "ins" };

function compared(before, after) {
  const found = hunks(differing(lines(before), lines(after)));
  if (found.every((hunk) => hunk.every(({ how }) => how === "same"))) {
    return [h("p", { class: "quiet" }, "Nothing that may be shown differs: what differs is a secret."), alone(after)[1]];
  }
  const parts = found.flatMap((hunk, at) => [
    at > 0 && h("span", { class: "gap" }, "⋯\n"),
    hunk.map(({ how, text }) => h(TAGS[how], { class: how }, `${MARKS[how]}${text}\n`)),
  ]);
  return h(
    "pre",
    {
      class: "content difference",
      tabindex: "0",
      role: "region",
      "aria-label": "What changed: lines with a minus were there before, lines with a plus are rejected",
    },
    parts,
  );
}
