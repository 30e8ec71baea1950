// SPDX-License-Identifier: Apache-2.0
// Resources: a search among all of them, and one in full.
// Reads Resources { resources }
// Reads ResourceRow { bytes, class, error, name, received, state, version, wildcard }
// Reads Whole { adoption, clients, contents, type, unanswered }
// Reads SaidContent { content, control_plane, version_info }
// Reads Holders { count, some }
// Reads HolderRow { node, rejection, stream }
// Reads AdoptionCounts { accepted, at_latest_seconds, came_later, not_accepted }
// Reads Nacks { rejections }
// Reads RejectedContent { clients, name, type, version }
// Reads ViewList { views }
// Reads ViewRow { types }
// Reads CountSums { nacks, resources }
// Reads its own { classes, close, counts, field, key, more, options, rejected, row }

import { Rounds, path } from "./asked.js";
import { VIEWS } from "./contents.js";
import { h, show } from "./elements.js";
import {
  asJson,
  choice,
  empty,
  kind,
  meaning,
  problem,
  resourceLink,
  search,
  section,
  since,
  state,
  table,
  title,
  tone,
  version,
} from "./parts.js";
import { last } from "./rejections.js";
import { LIMIT_MAX, searched } from "./searched.js";
import { bytes, count, many, seconds, span, typeName, typeWord } from "./words.js";

const ONE_PAUSE = 2000;

/** States by which resources are searched. */
const STATES = [
  ["", "all states"],
  ["does_not_exist", "does not exist"],
  ["requested", "no answer yet"],
  ["timeout", "no answer in time"],
  ["nacked", "invalid"],
  ["nacked_but_cached", "invalid; the one before is kept"],
  ["received_error", "error of the control plane"],
];
const ORDERS = [
  ["", "by name"],
  ["age", "the latest first"],
  ["size", "the largest first"],
];

/** `wanted` are the type, the part of a name, a state, and the order. */
export function open(place, live, [type = "", text = "", wantedState = "", wantedOrder = ""]) {
  const { field, row } = search("Name", "any part of a name", text);
  const types = h("select", { id: "types" }, h("option", { value: "" }, "all types"));
  if (type) {
    types.append(h("option", { value: type, selected: true }, type));
  }
  const states = choice("state", "State", STATES, wantedState);
  const orders = choice("order", "Order", ORDERS, wantedOrder);
  // What clients reject is asked only where they do.
  const nacks = () => (live.counts === null || live.counts.nacks > 0 ? ["/nacks"] : []);
  const { close } = searched(place, {
    name: "Resources",
    address: "/resources",
    field,
    fields: [row, h("div", { class: "field" }, h("label", { for: "types" }, "Type"), types), states.row, orders.row],
    asked: (limit) =>
      path("/resources", {
        type: types.value,
        name: field.value && `*${field.value}*`,
        state: states.field.value,
        sort: orders.field.value,
        limit,
      }),
    also: () => [VIEWS, ...nacks()],
    list: (limit, answer, { views }, rejections) => {
      offer(types, [...views.flatMap((view) => Object.keys(view.types)), ...Object.keys(answer.resources)]);
      return list(answer, limit, live, orders.field.value, rejections?.rejections ?? []);
    },
    hash: () => `#resources/${[types, field, states.field, orders.field].map((one) => encodeURIComponent(one.value)).join("/")}`,
  });
  return close;
}

/** Offers the types that the relay has. */
function offer(types, names) {
  const words = new Set(names.map(typeWord));
  const known = new Set([...types.options].map((option) => option.value));
  [...words]
    .sort()
    .filter((word) => !known.has(word))
    .forEach((word) => types.append(h("option", { value: word }, word)));
}

/** What comes first, over all types. */
const BEFORE = {
  age: (one, other) => (one.received < other.received ? 1 : -1),
  size: (one, other) => other.bytes - one.bytes,
};

/** Returns the state of a resource. What a client rejects is not well, whatever the control plane thinks of it. */
function standing(type, line, rejected) {
  const clients = rejected.get(`${type} ${line.name} ${line.version}`) ?? 0;
  return clients > 0 ? state("ERROR", many(clients, "client rejects it", "clients reject it")) : state(line.state);
}

function list({ resources, more }, limit, live, order, rejections) {
  const rejected = new Map();
  for (const { type, name, version: of, clients } of rejections) {
    const key = `${type} ${name} ${of}`;
    rejected.set(key, (rejected.get(key) ?? 0) + clients);
  }
  const all = Object.entries(resources).flatMap(([type, lines]) => lines.map((line) => ({ type, ...line })));
  if (BEFORE[order]) {
    all.sort(BEFORE[order]);
  }
  const rows = all.map(({ type, ...line }) =>
    ({
      key: `${type} ${line.class} ${line.wildcard} ${line.name}`,
      cells: [
        line.name === "*"
          ? h("span", { class: "quiet" }, "everything")
          : h("a", { class: "name", href: resourceLink(type, line.name) }, line.name),
        kind(type),
        line.class === "-" ? "all clients" : line.class,
        standing(type, line, rejected),
        version(line.version),
        line.bytes === null ? "–" : bytes(line.bytes),
        since(line.received),
      ],
    }),
  );
  if (rows.length === 0) {
    return empty("No resource of this name is here.");
  }
  const shown = rows.slice(0, limit);
  const rest = more || rows.length > shown.length;
  const total = live.counts ? ` of ${count(live.counts.resources)}` : "";
  return [
    table(
      "Resources",
      [
        { name: "Name", kind: "wide" },
        { name: "Type" },
        { name: "Class" },
        { name: "State" },
        { name: "Version" },
        { name: "Size", kind: "number" },
        { name: "Received" },
      ],
      shown,
    ),
    h(
      "p",
      { class: "count" },
      rest ? `The first ${count(shown.length)}${total}. ` : `${many(shown.length, "resource")}. `,
      rest && limit < LIMIT_MAX
        ? h("button", { type: "button", class: "more" }, "Show more")
        : rest && "Search for a part of a name to see others.",
    ),
  ];
}

export function openOne(place, live, [type, name]) {
  const address = `${"/resources/"}${encodeURIComponent(name)}?type=${encodeURIComponent(type)}`;
  const content = h("div");
  place.replaceChildren(title(h("span", { class: "name" }, name), kind(type), asJson(address, "This resource")), content);
  const rounds = new Rounds(
    ONE_PAUSE,
    () => [address],
    (answer) => show(content, whole(answer)),
    (error) => show(content, problem(error)),
  );
  return () => rounds.stop();
}

function whole({ type, contents, clients, adoption, unanswered }) {
  const all = merged(contents);
  return [
    h("p", { class: "lead" }, summary(clients)),
    h(
      "div",
      { class: "pair" },
      section(
        "who",
        "Who has it",
        null,
        standings(clients),
        unanswered > 0 && h("p", { class: "problem" }, `${many(unanswered, "client")} did not answer in time.`),
      ),
      section("adoption", "Adoption of the last change", null, adoption && adopted(adoption)),
    ),
    section(
      "content",
      all.length > 1 ? "Contents" : "Content",
      null,
      all.map((one) => contentOf(type, one, clients.rejected?.count ?? 0)),
    ),
  ];
}

function sum(clients) {
  return Object.values(clients).reduce((all, { count: number }) => all + number, 0);
}

function summary(clients) {
  const all = sum(clients);
  const accepted = clients.accepted?.count ?? 0;
  const rejected = clients.rejected?.count ?? 0;
  if (all === 0) {
    return "No client that is connected asks for it.";
  }
  const have =
    accepted === all
      ? all === 1
        ? "The one client that asks for it has it."
        : `All ${count(all)} clients that ask for it have it.`
      : `${count(accepted)} of ${many(all, "client")} that ask for it have it.`;
  return rejected > 0 ? `${have} ${rejected === 1 ? "One rejects" : `${count(rejected)} reject`} it.` : have;
}

function standings(clients) {
  const all = sum(clients);
  return Object.entries(clients).map(([word, { count: number, some }]) =>
    h(
      "div",
      { class: "standing", "data-key": word },
      h(
        "p",
        { class: "line" },
        state(word),
        h("progress", { max: all, value: number, class: tone(word), "aria-label": meaning(word) }),
        h("span", { class: "number" }, count(number)),
      ),
      some.length > 0 &&
        h(
          "ul",
          { class: "plain" },
          some.map((one) =>
            h(
              "li",
              { "data-key": one.stream },
              h("a", { class: "name", href: `#client/${one.stream}` }, one.node || one.stream),
              one.rejection && h("p", { class: "words" }, last(one.rejection)),
            ),
          ),
        ),
      number > some.length && some.length > 0 && h("p", { class: "quiet" }, `and ${count(number - some.length)} more`),
    ),
  );
}

/** Says how many clients have accepted the content, and when the last of them had. */
function adopted({ accepted, came_later: later, not_accepted: missing, at_latest_seconds: latest }) {
  if (accepted === 0) {
    return empty("No client has accepted it yet.");
  }
  const within = latest === null ? "" : `, the last of them ${latest < 60 ? seconds(latest) : span(Math.ceil(latest))} after it arrived`;
  const others = later > 0 ? `; ${many(later, "client")} came after it` : "";
  return h("p", null, `Accepted by ${count(accepted)} of ${many(accepted + missing, "client")}${within}${others}.`);
}

/** Returns equal contents as one. */
function merged(contents) {
  const groups = Map.groupBy(contents, (one) => [one.version, one.state, one.error, one.version === null && one.class].join(" "));
  return [...groups].map(([key, all]) => ({
    ...all[0],
    key,
    classes: [...new Set(all.map((one) => (one.class === "-" ? "all clients" : one.class)))],
  }));
}

function contentOf(type, one, rejecting) {
  const facts = [
    [one.classes.length > 1 ? "Classes" : "Class", one.classes.join("; ")],
    ["State", rejecting > 0 ? state("ERROR", many(rejecting, "client rejects it", "clients reject it")) : state(one.state)],
    one.version && ["Version", h("code", null, one.version)],
    one.version_info && ["The control plane calls it", h("code", null, one.version_info)],
    one.control_plane && ["Control plane", one.control_plane],
    one.bytes !== null && ["Size", bytes(one.bytes)],
    one.received && ["Received", since(one.received)],
    one.error && ["Error", one.error],
  ].filter(Boolean);
  return h(
    "article",
    { class: "card", "data-key": one.key },
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
    ),
    one.content &&
      h(
        "pre",
        {
          class: "content",
          tabindex: "0",
          role: "region",
          "aria-label": `Content for ${one.classes.join("; ")}, a ${typeName(type)}`,
        },
        JSON.stringify(one.content, null, 2),
      ),
  );
}
