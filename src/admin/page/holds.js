// SPDX-License-Identifier: Apache-2.0
// What is held: in the relay's own words, which are the same for the commands and the log.
// Reads HoldGlimpse { count, nouns, order, since, some, type, words }
// Reads SentencePart { left }

import { h } from "./elements.js";
import { empty, resourceLink, since } from "./parts.js";
import { left, many } from "./words.js";

/** Returns what is held, why and until when, in sentences: the relay's texts, with the time that is left where it gives an end. */
export function sentence({ words }) {
  return words.map((part) => part.left ? left(part.left) : part).join("");
}

/** Returns how many there are of each kind: `2 held removals, 1 waiting change`. */
export function counted(all) {
  const sums = new Map();
  for (const { nouns: [one, several], count } of all.values()) {
    sums.set(one, [several, (sums.get(one)?.[1] ?? 0) + count]);
  }
  return [...sums].map(([one, [several, sum]]) => many(sum, one, several)).join(", ");
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
        h("p", { class: "words" }, sentence(hold), " Since ", since(hold.since), "."),
        h(
          "p",
          { class: "words" },
          hold.some.map((name) => [h("a", { href: resourceLink(hold.type, name) }, name), " "]),
        ),
        h("p", { class: "words" }, h("code", null, hold.order)),
      ),
    ),
  );
}
