// SPDX-License-Identifier: Apache-2.0
// Clients: a search among all of them, and one in full.
// Reads Clients { clients }
// Reads ClientsEnd { more, unanswered }
// Reads ClientRow { address, class, dialect, identity, node, request_bytes, requests, service, since, state, stream, types }
// Reads ClientNode { cluster, id, locality, user_agent_name, user_agent_version }
// Reads NodeLocality { region, sub_zone, zone }
// Reads ClientTypeRow { names, older, rejecting, rejections, status, unanswered_since, wildcard }
// Reads ClientResources { ready, resources, standings }
// Reads OlderRow { name, served, since, version, words }
// Reads OfClient { name, rejection, status, version }
// Reads CountSums { streams }
// Reads its own { again, close, counts, field, row }

import { Rounds, path } from "./asked.js";
import { h, show } from "./elements.js";
import {
  asJson,
  calm,
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
import { last, readable, said } from "./rejections.js";
import { LIMIT_MAX, searched } from "./searched.js";
import { bytes, count, many, typeName, typeWord } from "./words.js";

const PAUSE = 3000;
const STEP = 100;
const NUMBER = /^\d+\.\d+$/;

/** What a stream as a whole does, in words for the reader; the worst first. */
const STATES = {
  rejecting: "rejects something",
  older: "was sent older content",
  lagging: "does not answer",
  waiting: "waits for an answer",
  current: "up to date",
};
const STATE_TONES = { rejecting: "wrong", older: "wrong", lagging: "busy", waiting: "busy", current: "well" };

const ORDERS = [
  ["", "those in trouble first"],
  ["requests", "most requests first"],
  ["request_bytes", "most bytes first"],
];

/** `wanted` are a part of a node's id, a state, a part of a software's name, and the order. */
export function open(place, live, [text = "", wantedState = "", wantedSoftware = "", wantedOrder = ""]) {
  const { field, row } = search("Node", "any part of a node's id, or the number of a stream", text);
  const states = choice("state", "State", [["", "all states"], ...Object.entries(STATES)], wantedState);
  const orders = choice("order", "Order", ORDERS, wantedOrder);
  const software = h("input", { type: "search", id: "software", value: wantedSoftware, placeholder: "such as envoy 1.36", spellcheck: "false" });
  software.addEventListener("input", calm(() => again()));
  const { again, close } = searched(place, {
    name: "Clients",
    address: "/clients?format=json",
    field,
    fields: [row, states.row, h("div", { class: "field" }, h("label", { for: "software" }, "Software"), software), orders.row],
    asked: (limit) =>
      path("/clients", {
        format: "json",
        node: field.value && `*${field.value}*`,
        state: states.field.value,
        software: software.value && `*${software.value}*`,
        sort: orders.field.value,
        limit,
      }),
    list: (limit, answer) => list(answer, limit, live, field.value || states.field.value || software.value),
    hash: () => `#clients/${[field, states.field, software, orders.field].map((one) => encodeURIComponent(one.value)).join("/")}`,
    jump: () => {
      const isNumber = NUMBER.test(field.value);
      if (isNumber) {
        location.hash = `#client/${field.value}`;
      }
      return isNumber;
    },
  });
  return close;
}

function list({ clients, more, unanswered }, limit, live, wanted) {
  if (clients.length === 0) {
    return empty(wanted ? "No such client is connected." : "No client is connected.");
  }
  const shown = clients.slice(0, limit);
  const rest = more || clients.length > shown.length;
  const rows = shown.map((one) => ({
    key: one.stream,
    cells: [
      h("a", { class: "name", href: `#client/${one.stream}` }, one.node.id || "(no id)"),
      h("span", { class: `state ${STATE_TONES[one.state] ?? "idle"}` }, STATES[one.state] ?? one.state),
      h(
        "span",
        { class: "types" },
        Object.entries(one.types).map(([type, { status }]) =>
          h(
            "span",
            { class: `state ${tone(status)}`, title: `${type}: ${meaning(status)}` },
            typeWord(type),
            h("span", { class: "unseen" }, ` ${meaning(status)}`),
          ),
        ),
      ),
      one.class === "-" ? h("span", { class: "quiet" }, "all") : one.class,
      one.address,
      software(one.node),
      one.dialect,
      `${count(one.requests)} (${bytes(one.request_bytes)})`,
      since(one.since),
    ],
  }));
  const all = live.counts && !wanted ? ` of ${count(live.counts.streams)}` : "";
  return [
    table(
      "Clients",
      [
        { name: "Node", kind: "wide" },
        { name: "State" },
        { name: "Types" },
        { name: "Class" },
        { name: "Address" },
        { name: "Software" },
        { name: "Dialect" },
        { name: "Requests", kind: "number" },
        { name: "Connected" },
      ],
      rows,
    ),
    h(
      "p",
      { class: "count" },
      rest ? `The first ${count(shown.length)}${all}. ` : `${many(shown.length, "stream")}. `,
      rest && limit < LIMIT_MAX
        ? h("button", { type: "button", class: "more" }, "Show more")
        : rest && "Search for a part of an id to see others.",
      unanswered > 0 && ` ${many(unanswered, "stream")} did not answer in time.`,
    ),
  ];
}

function software({ user_agent_name: name, user_agent_version: number }) {
  return name ? `${name} ${number}`.trim() : h("span", { class: "quiet" }, "–");
}

export function openOne(place, live, [number]) {
  let limit = STEP;
  const address = `/clients/${encodeURIComponent(number)}`;
  const heading = h("span", { class: "name" }, number);
  const content = h("div");
  place.replaceChildren(title(heading, asJson(address, "This client")), content);
  const rounds = new Rounds(
    PAUSE,
    () => [path(address, { limit })],
    ({ streams }) => {
      show(heading, streams[0].node.id || number);
      show(
        content,
        streams.map((one) => streamOf(one, streams.length, limit)),
      );
    },
    (error) => show(content, problem(error)),
  );
  content.addEventListener("click", (event) => {
    if (event.target.closest("button.more")) {
      limit = Math.min(limit * 10, 10 * LIMIT_MAX);
      rounds.again();
    }
  });
  return () => rounds.stop();
}

/** Resources that need a look come first. */
const ORDER = ["rejected", "timed_out", "outdated", "not_sent", "sent", "leaving", "unknown", "missing", "accepted"];

/** How many resources are in each standing. */
function standings(one) {
  if (one.standings) {
    return one.standings;
  }
  return Object.fromEntries([...Map.groupBy(one.resources, ({ status }) => status)].map(([status, all]) => [status, all.length]));
}

function streamOf(stream, all, limit) {
  const types = Object.entries(stream.types);
  const { node } = stream;
  const place = [node.locality.region, node.locality.zone, node.locality.sub_zone].filter(Boolean).join(" / ");
  const facts = [
    ["Stream", stream.stream],
    ["Identity", stream.identity],
    ["Address", stream.address],
    ["Class", stream.class === "-" ? "all clients share one" : stream.class],
    ["Dialect", `${stream.dialect}, ${stream.service === "aggregated" ? "aggregated" : typeName(stream.service)}`],
    node.cluster && ["Cluster", node.cluster],
    place && ["Locality", place],
    node.user_agent_name && ["Software", software(node)],
    ["Connected", since(stream.since)],
  ].filter(Boolean);
  return h(
    "div",
    { "data-key": stream.stream },
    h("p", { class: "lead" }, waiting(types)),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
    ),
    all > 1 && h("p", null, h("a", { href: `#client/${stream.stream}` }, "Only this stream")),
    types.map(([type, one]) => typeOf(stream.stream, type, one, limit)),
  );
}

/** Says what a client waits for. */
function waiting(types) {
  if (types.length === 0) {
    return "It has not asked for anything yet.";
  }
  const open = types.filter(([, one]) => !one.ready);
  if (open.length === 0) {
    return "It has accepted all that it asked for.";
  }
  const parts = open.map(([type, one]) => {
    const left = Object.entries(standings(one)).filter(([word]) => word !== "accepted" && word !== "missing");
    const words = left.map(([word, number]) => `${count(number)} ${word === "rejected" ? "rejected" : meaning(word)}`).join(", ");
    return `${typeWord(type)} (${words || "a response is not answered, or not everything is known yet"})`;
  });
  return `It waits for ${parts.join("; ")}.`;
}

/** Says of which name a client rejects the current content, since when, and what it has instead. */
function rejectedOf(type, { name, version: number, served, since: begun, words }) {
  const compare = `#rejection/${encodeURIComponent(typeWord(type))}/${number}/${encodeURIComponent(name)}`;
  return h(
    "div",
    { "data-key": `rejected ${name}` },
    h(
      "p",
      { class: "problem" },
      "It rejects ",
      h("span", { class: "name" }, name),
      " since ",
      since(begun),
      served ? ", had nothing, and was sent older content. " : ", and keeps what it had. ",
      h("a", { href: compare }, "What it rejects"),
    ),
    said({ key: `${name} ${words}`, words: readable(words), short: last(words) }),
  );
}

function typeOf(stream, type, one, limit) {
  const sorted = [...one.resources].sort((left, right) => ORDER.indexOf(left.status) - ORDER.indexOf(right.status));
  const counts = standings(one);
  const all = Object.values(counts).reduce((sum, number) => sum + number, 0);
  const shown = sorted.slice(0, limit);
  const rejects = shown.some((resource) => resource.rejection);
  const rows = shown.map((resource) => ({
    key: resource.name,
    cells: [
      h("a", { class: "name", href: resourceLink(type, resource.name) }, resource.name),
      state(resource.status),
      version(resource.version),
      rejects &&
        (resource.rejection && resource.version
          ? h(
              "a",
              {
                href: `#rejection/${encodeURIComponent(typeWord(type))}/${resource.version}/${encodeURIComponent(resource.name)}`,
              },
              "what it rejects",
            )
          : ""),
    ].filter((cell) => cell !== false),
  }));
  const asks = [one.wildcard && "everything", one.names > 0 && many(one.names, "name")].filter(Boolean).join(" and ");
  return section(
    `type-${stream}-${typeWord(type)}`.replaceAll(/[^\w-]/g, "-"),
    [kind(type), " ", state(one.status)],
    h("span", { class: "quiet" }, `asks for ${asks || "nothing"}`),
    one.unanswered_since && h("p", { class: "problem" }, "It owes an answer since ", since(one.unanswered_since), "."),
    (one.rejecting ?? []).length + (one.older ?? []).length === 0 &&
      one.rejections.map((words) => said({ key: words, words: readable(words), short: last(words) })),
    [...(one.older ?? []), ...(one.rejecting ?? [])].map((rejected) => rejectedOf(type, rejected)),
    rows.length > 0
      ? table(
          `Resources of type ${typeWord(type)}`,
          [{ name: "Name", kind: "wide" }, { name: "State" }, { name: "Version" }, rejects && { name: "Rejection" }].filter(
            Boolean,
          ),
          rows,
        )
      : empty("Nothing is known of what it asks for."),
    all > shown.length &&
      h(
        "p",
        { class: "count" },
        `The first ${count(shown.length)} of ${count(all)}; those that it lacks come first. `,
        h("button", { type: "button", class: "more" }, "Show more"),
      ),
  );
}
