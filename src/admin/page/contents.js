// SPDX-License-Identifier: Apache-2.0
// How much the relay holds of each type, for each class and control plane.
// Reads ViewList { left_out, views }
// Reads ViewRow { class, server, types }
// Reads Halves { named, wildcard }
// Reads HalfRow { bytes, complete, digest, resources, stale }

import { path } from "./asked.js";
import { h } from "./elements.js";
import { empty, state, table } from "./parts.js";
import { brief, bytes, count, many, typeName, typeWord } from "./words.js";

const SHOWN_MAX = 100;

/** Some views: there may be one for each client. */
export const VIEWS = path("/views", { limit: 50 });

/** Returns the contents as a table: `views` as `VIEWS` has them, and how many others there are. */
export function contents({ views, left_out: others }) {
  const rows = views.flatMap((view) =>
    Object.entries(view.types).flatMap(([type, { wildcard, named }]) => {
      const both = [wildcard, named].filter((half) => half !== null && (half.resources > 0 || half.complete));
      return both.map((half) => rowOf(view, type, half, half === wildcard));
    }),
  );
  if (rows.length === 0) {
    return empty("No client asks for anything yet.");
  }
  const columns = [
    { name: "Class" },
    { name: "Type" },
    { name: "Asked for" },
    { name: "Resources", kind: "number" },
    { name: "Bytes", kind: "number" },
    { name: "State" },
    { name: "Digest" },
  ];
  const further = [
    rows.length > SHOWN_MAX && many(rows.length - SHOWN_MAX, "row"),
    others > 0 && `those of ${many(others, "view")}`,
  ].filter(Boolean);
  return [
    table("All contents", columns, rows.slice(0, SHOWN_MAX)),
    further.length > 0 &&
      h("p", { class: "count" }, `Not shown: ${further.join(" and ")}. `, h("a", { href: "/views" }, "All as JSON"), "."),
  ];
}

function rowOf(view, type, half, isWildcard) {
  const word = typeWord(type);
  return {
    key: `${view.class} ${view.server} ${type} ${isWildcard}`,
    cells: [
      view.class === "-" ? "all clients" : view.class,
      h("a", { href: `#resources/${encodeURIComponent(word)}`, title: type }, word.length > 6 ? typeName(type) : word),
      isWildcard ? "everything" : "by name",
      count(half.resources),
      bytes(half.bytes),
      half.stale ? state("STALE", "not confirmed") : state("SYNCED", "current"),
      h("code", { class: "version", title: half.digest }, brief(half.digest)),
    ],
  };
}
