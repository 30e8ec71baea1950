// Removals that are held: what is removed and still served, why, until when, and the order that changes it.

import { h } from "./elements.js";
import { empty, resourceLink, since } from "./parts.js";
import { count, left } from "./words.js";

const NAMED = 3;

/** Returns what is held, why and until when, in sentences. */
export function sentence({ type, count: number, reason, some, from, until, by, server, trouble }) {
  const named = some.slice(0, NAMED);
  const more = number > named.length ? ` and ${count(number - named.length)} more` : "";
  const [they, go] = number === 1 ? ["It", "goes"] : ["They", "go"];
  const what = `Removed ${type} ${named.join(", ")}${more} still served`;
  const [first, time] = [from, until].map((at) => at && left(at));
  if (reason === "mass") {
    const ends = first === time ? `${they} ${go} in ${time}` : `The first goes in ${first}, the last in ${time},`;
    return `${what}: much was lost at once. ${ends} unless ${server} sends ${number === 1 ? "it" : "them"} again.`;
  }
  const refers = by ? `${by.type} ${by.name} refers to ${some.length === 1 ? "it" : "them"}` : "a person holds it";
  const long = trouble ? " for over 15 min" : "";
  const drains = by && !by.said ? `, which ${server} does not send any more` : "";
  const end = time ? `in ${time}` : "once nothing refers to " + (number === 1 ? "it" : "them");
  return `${what}: ${refers}${long}${drains}. ${they} ${go} ${end}.`;
}

/** Returns the order for a hold, to copy: more time for a loss, an end for what is only referred to. */
function order(id, { reason }) {
  return reason === "mass"
    ? `distributary holds extend ${id} --for 2h --reason "..."`
    : `distributary holds release ${id} --reason "..."`;
}

/** Returns the holds as a list. `all` is by id, as `/events` tells it. */
export function holds(all) {
  if (all.size === 0) {
    return empty("Nothing is held.");
  }
  return h(
    "ol",
    { class: "plain" },
    [...all].map(([id, hold]) =>
      h(
        "li",
        { "data-key": id },
        h("p", { class: "words" }, sentence(hold), " Removed ", since(hold.since), "."),
        h(
          "p",
          { class: "words" },
          hold.some.map((name) => [h("a", { href: resourceLink(hold.type, name) }, name), " "]),
        ),
        h("p", { class: "words" }, h("code", null, order(id, hold))),
      ),
    ),
  );
}
