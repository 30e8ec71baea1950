// Resources: a search among all of them, and one in full.

import { Rounds, path } from "./asked.js";
import { h, show } from "./elements.js";
import {
  asJson,
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

/** `wanted` are the type, and the part of a name. */
export function open(place, live, [type = "", text = ""]) {
  const { field, row } = search("Name", "any part of a name", text);
  const types = h("select", { id: "types" }, h("option", { value: "" }, "all types"));
  if (type) {
    types.append(h("option", { value: type, selected: true }, type));
  }
  const { again, close } = searched(place, {
    name: "Resources",
    address: "/resources",
    field,
    fields: [row, h("div", { class: "field" }, h("label", { for: "types" }, "Type"), types)],
    asked: (limit) => path("/resources", { type: types.value, name: field.value && `*${field.value}*`, limit }),
    also: ["/views"],
    list: (limit, answer, { views }) => {
      offer(types, views);
      return list(answer, limit, live);
    },
    hash: () => `#resources/${encodeURIComponent(types.value)}/${encodeURIComponent(field.value)}`,
  });
  types.addEventListener("change", again);
  return close;
}

/** Offers the types that the relay has. */
function offer(types, views) {
  const words = new Set(views.flatMap((view) => Object.keys(view.types).map(typeWord)));
  const known = new Set([...types.options].map((option) => option.value));
  [...words]
    .sort()
    .filter((word) => !known.has(word))
    .forEach((word) => types.append(h("option", { value: word }, word)));
}

function list({ resources, more }, limit, live) {
  const rows = Object.entries(resources).flatMap(([type, lines]) =>
    lines.map((line) => ({
      key: `${type} ${line.class} ${line.wildcard} ${line.name}`,
      cells: [
        line.name === "*"
          ? h("span", { class: "quiet" }, "everything")
          : h("a", { class: "name", href: resourceLink(type, line.name) }, line.name),
        kind(type),
        line.class === "-" ? "all clients" : line.class,
        state(line.state),
        version(line.version),
        line.bytes === null ? "–" : bytes(line.bytes),
        since(line.received),
      ],
    })),
  );
  if (rows.length === 0) {
    return empty("No resource of this name is here.");
  }
  const shown = rows.slice(0, limit);
  const rest = more || rows.length > shown.length;
  const all = live.counts ? ` of ${count(live.counts.resources)}` : "";
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
      rest ? `The first ${count(shown.length)}${all}. ` : `${many(shown.length, "resource")}. `,
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
      all.map((one) => contentOf(type, one)),
    ),
  ];
}

function total(clients) {
  return Object.values(clients).reduce((sum, { count: number }) => sum + number, 0);
}

function summary(clients) {
  const all = total(clients);
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
  const all = total(clients);
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

/** Says how many clients have accepted the content, and when the last of them had at the latest. */
function adopted({ accepted, came_later: later, not_accepted: missing, at_latest_seconds: latest }) {
  if (accepted === 0) {
    return empty("No client has accepted it yet.");
  }
  const within = latest === null ? "" : `, at the latest ${latest < 60 ? seconds(latest) : span(Math.ceil(latest))} after it arrived`;
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

function contentOf(type, one) {
  const facts = [
    [one.classes.length > 1 ? "Classes" : "Class", one.classes.join("; ")],
    ["State", state(one.state)],
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
