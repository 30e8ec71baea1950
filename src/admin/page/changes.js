// SPDX-License-Identifier: Apache-2.0
// The last changes: what control planes have sent or removed last, when, and how many clients have accepted it.
// Reads ChangeRow { adoption, class, count, received, some, type }
// Reads EndedHold { ended, trouble, words }
// Reads AdoptionCounts { accepted, at_latest_seconds, not_accepted, rejected }
// Reads HoldGlimpse { class, count, nouns, since, some, type }
// Reads its own { id }

import { h } from "./elements.js";
import { empty, kind, resourceLink, since, state } from "./parts.js";
import { count, many, seconds, span } from "./words.js";

const SHOWN_MAX = 8;

/** Returns the changes as a list: `all` as `/changes` has them, what is held, by id, and how many updates have come, if known. */
export function lastChanges(all, holds, updates) {
  const held = [...holds].map(([id, hold]) => ({ ...hold, id, received: hold.since }));
  const both = [...all, ...held].filter(({ received }) => received).sort((one, other) => (one.received < other.received ? 1 : one.received > other.received ? -1 : 0));
  if (both.length === 0) {
    return empty(updates === 0 ? "No control plane has sent anything yet." : "Nothing is here of what control planes have sent.");
  }
  return h(
    "ol",
    { class: "plain changes" },
    both.slice(0, SHOWN_MAX).map((one) =>
      h(
        "li",
        { "data-key": `${one.type} ${one.class} ${one.received} ${one.id ?? `${one.ended} ${one.some[0]}`}` },
        h("span", { class: "when" }, since(one.received)),
        h("span", { class: "what" }, kind(one.type), " ", names(one), one.class !== "-" && h("span", { class: "quiet" }, ` for ${one.class}`)),
        h("span", { class: "outcome" }, one.nouns ? state("STALE", one.nouns[0]) : one.ended ? state(one.trouble ? "ERROR" : "SYNCED", one.words) : outcome(one)),
      ),
    ),
  );
}

function names({ type, some, count: number }) {
  const [first] = some;
  const more = number - 1;
  return [
    h("a", { class: "name", href: resourceLink(type, first) }, first),
    more > 0 && h("span", { class: "quiet" }, ` and ${count(more)} more`),
  ];
}

/** Says how many clients have accepted it: of several resources, the first one. */
function outcome({ adoption }) {
  const { accepted, not_accepted: missing, rejected, at_latest_seconds: latest } = adoption;
  const all = accepted + missing;
  if (all === 0) {
    return h("span", { class: "quiet" }, "no client asks for it");
  }
  if (rejected > 0) {
    return state("ERROR", `${many(rejected, "client rejects", "clients reject")} it`);
  }
  const within = latest === null ? "" : ` within ${latest < 60 ? seconds(latest) : span(Math.ceil(latest))}`;
  return state(missing > 0 ? "STALE" : "SYNCED", `${count(accepted)} of ${count(all)} accepted${within}`);
}
