// SPDX-License-Identifier: Apache-2.0
// What is wrong now, in sentences: the worst first.
// Reads ServerGlimpse { server, state, why }
// Reads HoldGlimpse { some, trouble, type }
// Reads StandingCounts { away, hung_clients, lagging, waiting }
// Reads HungClient { at, name, why }
// Reads Resources { resources }
// Reads ResourceRow { name }
// Reads its own { cert_chain, certificates, certs, expiration_time, faults, groups, holds, href, key, missing, more, path,
//   serial_number, servers, short, standings, tone, words }

import { untilEnd } from "./certificates.js";
import { h } from "./elements.js";
import { sentence } from "./holds.js";
import { resourceLink } from "./parts.js";
import { headline } from "./rejections.js";
import { ago, count, many, span, typeWord } from "./words.js";

const SHOWN_MAX = 8;
const DAY = 86400;
const SOON_SECONDS = 14 * DAY;
const VERY_SOON_SECONDS = 3 * DAY;

/** Returns the control planes that cannot be reached, each once: it may serve several authorities. */
export function away(servers) {
  const all = [...servers.values()].filter((one) => one.state === "unreachable");
  return [...new Map(all.map((one) => [one.server, one])).values()];
}

/**
 * Returns what is wrong as {key, tone, words, href}. What is not known yet is null: `groups` of rejections, `standings` of clients,
 * `faults` of the relay's own files, `certs`, and `missing`, the names that do not exist.
 */
export function troubles({ servers, holds, groups, standings, faults, certs, missing }) {
  const counted = (key, number, one, more, href) =>
    number > 0 ? [{ key, tone: "busy", words: many(number, one, more), href }] : [];
  return [
    ...away(servers).map(({ server, why }) => ({ key: `away ${server}`, tone: "wrong", words: `Control plane ${why}`, href: "#servers" })),
    ...(groups ?? []).map((group) => ({
      key: `rejects ${group.key}`,
      tone: "wrong",
      words: `${headline(group)}: ${group.short}`,
      href: `#rejections/${encodeURIComponent(group.key)}`,
    })),
    ...[...holds].filter(([, hold]) => hold.trouble).map(([id, hold]) => held(id, hold)),
    ...(faults ?? []).map((words) => ({ key: `fault ${words}`, tone: "wrong", words, href: null })),
    ...ending(certs),
    ...(standings?.hung_clients ?? []).map(({ name, at, why }) => ({
      key: `hung ${name}`,
      tone: "wrong",
      words: `${name} hung, and was cut off ${ago(at)}: ${why}`,
      href: `#clients/${encodeURIComponent(name)}`,
    })),
    ...counted(
      "lagging",
      standings?.lagging ?? 0,
      "client has not answered a response for over 10 s",
      "clients have not answered a response for over 10 s",
      "#clients//lagging",
    ),
    ...counted(
      "waiting",
      (standings?.waiting ?? 0) + (standings?.away ?? 0),
      "client waits for over 10 s for what nobody has answered",
      "clients wait for over 10 s for what nobody has answered",
      "#clients//waiting",
    ),
    ...absent(missing),
  ];
}

function held(id, hold) {
  const [first] = hold.some;
  return { key: `held ${id}`, tone: "busy", words: sentence(hold), href: resourceLink(hold.type, first) };
}

/** Certificates that have ended or end soon. Those of an agent live for hours, and are renewed by it. */
function ending(certs) {
  const own = (certs?.certificates ?? []).flatMap((one) => one.cert_chain ?? []).filter(({ path }) => !path.startsWith("unix:"));
  const soon = own.filter((one) => untilEnd(one) <= SOON_SECONDS);
  const once = [...new Map(soon.map((one) => [`${one.path} ${one.serial_number}`, one])).values()];
  return once.map((one) => {
    const seconds = untilEnd(one);
    const words = seconds <= 0 ? `has ended ${ago(one.expiration_time)}` : `ends in ${span(seconds)}`;
    return {
      key: `ends ${one.path} ${one.serial_number}`,
      tone: seconds <= VERY_SOON_SECONDS ? "wrong" : "busy",
      words: `The certificate ${one.path} ${words}`,
      href: "#certificates",
    };
  });
}

/** Names that clients ask for, and of which a control plane says that they do not exist. */
function absent(missing) {
  const names = Object.entries(missing?.resources ?? {}).flatMap(([type, lines]) => lines.map(({ name }) => `${typeWord(type)} ${name}`));
  if (names.length === 0) {
    return [];
  }
  const more = missing.more ? ` and others` : "";
  const does = names.length > 1 || missing.more ? "do not exist" : "does not exist";
  return [
    {
      key: "absent",
      tone: "idle",
      words: `${names.join(", ")}${more} ${does}, and clients ask for ${names.length > 1 ? "them" : "it"}`,
      href: "#resources///does_not_exist",
    },
  ];
}

/** Returns the sentences as a list. `known` is whether everything was asked. */
export function strip(all, known) {
  if (all.length === 0) {
    const words = known ? "Nothing is wrong." : "Asking what is wrong.";
    return h("p", { class: "lead calm" }, h("span", { class: `state ${known ? "well" : "idle"}` }, words));
  }
  const more = all.length - SHOWN_MAX;
  return [
    h(
      "ol",
      { class: "troubles", "aria-label": "What is wrong, the worst first" },
      all
        .slice(0, SHOWN_MAX)
        .map(({ key, tone, words, href }) =>
          h("li", { "data-key": key, class: `trouble ${tone}` }, href ? h("a", { href }, words) : h("span", null, words)),
        ),
    ),
    more > 0 && h("p", { class: "quiet" }, `and ${count(more)} more`),
  ];
}
