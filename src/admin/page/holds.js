// Removals that are held: what is removed and still served, and why.

import { h } from "./elements.js";
import { empty, resourceLink, since } from "./parts.js";
import { many } from "./words.js";

const WHY = {
  mass: "much was lost at once",
  referenced: "something that is served refers to them",
};

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
        h("p", { class: "line" }, h("span", { class: "name" }, many(hold.count, `removed ${hold.type}`, `removed ${hold.type}`)), since(hold.since)),
        h("p", { class: "words" }, `${WHY[hold.reason] ?? hold.reason}; ${hold.until ? `until ${hold.until}` : "no clock"}; ${hold.server}`),
        h(
          "p",
          { class: "words" },
          hold.some.map((name) => [h("a", { href: resourceLink(hold.type, name) }, name), " "]),
        ),
      ),
    ),
  );
}
