// SPDX-License-Identifier: Apache-2.0
// The overview: what is wrong, what has changed last, and what one wants to see on a wall.
// Reads ClusterList { clients, faults }
// Reads StandingCounts { away, lagging, older, rejecting, streams, up_to_date, waiting }
// Reads ChangeList { changes }
// Reads Nacks { rejections }
// Reads HoldGlimpse { count, trouble }
// Reads PressureGlimpse { active, percent }
// Reads CountSums { bytes, connections, nacks, resources, streams, subscriptions, updates, views }
// Reads its own { certificates, contents, convergence, counts, deliveries, figures, held, history, holds, incidents, key, last, median,
//   planes, pressure, process, rejected, second, servers, short, since, slowest, span, standings, wrong }

import { Rounds, path } from "./asked.js";
import { lastChanges } from "./changes.js";
import { h, show } from "./elements.js";
import * as hour from "./hour.js";
import { asJson, empty, problem, section } from "./parts.js";
import { certificateLines } from "./certificates.js";
import { VIEWS, contents } from "./contents.js";
import { counted, holds } from "./holds.js";
import { grouped, headline } from "./rejections.js";
import { servers } from "./servers.js";
import { strip, troubles } from "./troubles.js";
import { bytes, count, many, rate, seconds } from "./words.js";

const PAUSE = 5000;
const HISTORY_PAUSE = 10000;
const SHOWN_MAX = 5;
// How many names that do not exist are told, and of how many a list says that there are more.
const ABSENT = path("/resources", { state: "does_not_exist", limit: 3 });
const CHANGES = "/changes";

/** Makes the places of the overview, and shows them. */
function places(place) {
  const all = {
    wrong: h("div"),
    process: h("p", { class: "quiet process" }),
    figures: h("dl", { class: "figures" }),
    span: h("h2", null, "The last hour"),
    since: h("span", { class: "quiet" }),
    ...Object.fromEntries(
      ["last", "planes", "rejections", "contents", "held", "pressure", "certificates"].map((name) => [name, h("div")]),
    ),
    ...Object.fromEntries(["changes", "convergence", "clients", "incidents"].map((name) => [name, h("div", { class: "plot" })])),
  };
  const plot = (id, name, entries, of) =>
    h("section", { class: "section", "aria-labelledby": id }, h("div", { class: "bar" }, h("h2", { id }, name), legend(...entries)), of);
  const pair = (kind, ...children) => h("div", { class: kind }, children);
  place.replaceChildren(
    h("h1", { id: "heading", class: "unseen", tabindex: "-1" }, "Overview"),
    h("section", { class: "now", "aria-label": "Now" }, all.wrong, all.process),
    all.figures,
    pair(
      "pair uneven",
      section("last", "Last changes", asJson(CHANGES, "Last changes"), all.last),
      section("planes", "Control planes", asJson("/clusters?format=json", "Control planes"), all.planes),
    ),
    h("div", { class: "bar hour" }, all.span, all.since, asJson("/history", "The last hour")),
    pair(
      "pair",
      plot("changes-name", "Changes a second", [["changes", "from control planes"], ["deliveries", "sent to clients"]], all.changes),
      plot("convergence-name", "Convergence", [["median", "p50"], ["slowest", "p99"]], all.convergence),
    ),
    pair(
      "pair",
      plot("clients-name", "Client streams", [["deliveries", "open"]], all.clients),
      plot(
        "incidents-name",
        "Incidents",
        [["away", "control planes away"], ["changes", "rejections"], ["deliveries", "holds"]],
        all.incidents,
      ),
    ),
    pair(
      "pair uneven",
      section("contents", "Contents by class and type", asJson("/views", "Contents"), all.contents),
      h(
        "div",
        null,
        section("rejected", "Rejections", asJson("/nacks", "Rejections"), all.rejections),
        section("holds", "Held", asJson("/holds?format=json", "Held"), all.held),
        section("pressure", "Pressure", null, all.pressure),
        section("certs", "Certificates", asJson("/certs", "Certificates"), all.certificates),
      ),
    ),
  );
  return all;
}

export function open(place, live) {
  const at = places(place);
  // What was asked, and how many rejections were counted then; null is not known yet.
  const seen = { rejected: null, standings: null, faults: null, certs: null, missing: null, changes: null, history: null };
  let asked = null;
  const draw = () => {
    const groups = seen.rejected && grouped(seen.rejected);
    const all = troubles({ servers: live.servers, holds: live.holds, groups, ...seen });
    show(at.wrong, strip(all, groups !== null && seen.standings !== null && live.counts !== null));
    show(at.process, live.counts ? hour.processOf(live.counts, seen.history) : " ");
    show(at.figures, figuresOf(live, seen.rejected, seen.standings));
    show(at.last, seen.changes ? lastChanges(seen.changes, live.holds, live.counts?.updates) : empty("Asking."));
    show(at.held, holds(live.holds));
    show(at.pressure, pressureOf(live.pressure));
    show(at.planes, servers([...live.servers.values()]));
  };
  const chart = (history) => {
    seen.history = history;
    show(at.span, hour.title(history));
    show(at.since, hour.known(history));
    show(at.changes, hour.changesOf(history));
    show(at.convergence, hour.convergenceOf(history));
    show(at.clients, hour.clientsOf(history));
    show(at.incidents, hour.wrongOf(history));
  };
  draw();
  const failed = (error) => show(at.rejections, problem(error));
  const counting = new Rounds(
    PAUSE,
    () => ["/clusters?format=json"],
    ({ clients, faults }) => {
      Object.assign(seen, { standings: clients, faults });
      draw();
    },
    failed,
  );
  const heard = () => {
    draw();
    // Clients have come or gone. The relay itself sees to it that they are not counted too often.
    if (seen.standings !== null && live.counts.streams !== seen.standings.streams) {
      counting.soon();
    }
  };
  live.addEventListener("counts", heard);
  const rounds = [
    counting,
    new Rounds(HISTORY_PAUSE, () => ["/history"], chart, failed),
    new Rounds(
      PAUSE,
      () => [VIEWS, "/certs"],
      (views, certs) => {
        Object.assign(seen, { certs });
        show(at.contents, contents(views));
        show(at.certificates, certificateLines(certs));
      },
      failed,
    ),
    new Rounds(
      PAUSE,
      () => [CHANGES, ABSENT],
      ({ changes }, missing) => Object.assign(seen, { changes, missing }),
      failed,
    ),
    // All clients are asked what they reject, so they are asked only if there may be news.
    new Rounds(
      PAUSE,
      () => {
        const counted = live.counts?.nacks ?? null;
        const news = asked === null || seen.rejected === null || seen.rejected.length > 0 || asked !== counted;
        asked = counted;
        return news ? ["/nacks"] : [];
      },
      (nacks) => {
        if (nacks) {
          seen.rejected = nacks.rejections;
          show(at.rejections, rejectionsOf(grouped(seen.rejected)));
        }
      },
      (error) => {
        asked = null;
        failed(error);
      },
    ),
  ];
  return () => {
    live.removeEventListener("counts", heard);
    rounds.forEach((one) => one.stop());
  };
}

function legend(...entries) {
  return h(
    "p",
    { class: "legend" },
    entries.map(([name, text]) => h("span", { class: `key ${name}` }, text)),
  );
}

function figure(name, value, below, tone) {
  return h(
    "div",
    { class: tone ? `figure ${tone}` : "figure" },
    h("dt", null, name),
    // What does not fit is shown when it is pointed at: a figure keeps its size whatever it says.
    h("dd", null, h("span", { class: "value" }, value), h("span", { class: "below", title: text(below) }, below)),
  );
}

function text(below) {
  return [below].flat().join("");
}

function figuresOf(live, rejected, standings) {
  const { counts } = live;
  const last = live.second ?? { changes: null, deliveries: null, median: null, slowest: null };
  if (counts === null) {
    return ["Clients", "Up to date", "Changes a second", "Convergence", "Rejected", "Held", "Resources", "Pressure"].map((name) =>
      figure(name, "–", " "),
    );
  }
  const pressing = Object.entries(live.pressure.percent).sort(([, one], [, other]) => other - one)[0];
  const { active } = live.pressure;
  const groups = rejected === null ? null : grouped(rejected).length;
  return [
    // As old as the next figure, so that a reader can compare them.
    figure("Clients", count(standings ? standings.streams + standings.away : counts.streams), `${many(counts.connections, "connection")}, ${many(counts.views, "view")}`),
    upToDate(standings, rejected),
    figure("Changes a second", rate(last.changes), `${rate(last.deliveries)} deliveries a second`),
    figure(
      "Convergence",
      [seconds(last.median), h("small", null, " p50 ")],
      [`${seconds(last.slowest)} p99, change to acknowledgement`],
    ),
    figure(
      "Rejected",
      groups === null ? "–" : count(groups),
      groups === null ? " " : groups > 0 ? many(rejected.length, "resource") : "no client rejects anything",
      groups ? "wrong" : null,
    ),
    heldFigure(live.holds),
    figure("Resources", count(counts.resources), `${bytes(counts.bytes)}, ${many(counts.subscriptions, "subscription")}`),
    figure(
      "Pressure",
      pressing ? `${pressing[1]} %` : "–",
      active.length > 0
        ? active.map((one) => one.replaceAll("_", " ")).join(", ")
        : `${pressing?.[0] ?? "no limit is set"}; nobody is refused`,
      active.length > 0 ? "wrong" : null,
    ),
  ];
}

function heldFigure(holds) {
  const all = [...holds.values()].reduce((sum, { count: number }) => sum + number, 0);
  const trouble = [...holds.values()].some((hold) => hold.trouble);
  return figure("Held", count(all), counted(holds) || "nothing is held", trouble ? "wrong" : null);
}

/** How many client streams have everything, as far as they were asked: in a large fleet the relay asks them every ten seconds. */
function upToDate(standings, rejected) {
  if (standings === null) {
    return figure("Up to date", "–", " ");
  }
  const { streams, up_to_date: current, rejecting, older, lagging, waiting, away } = standings;
  const clients = count(streams + away);
  if (rejected !== null && rejected.length > 0 !== rejecting + older > 0) {
    return figure("Up to date", `${count(current)} of ${clients}`, "as counted some seconds ago", rejecting + older > 0 ? "wrong" : null);
  }
  const parts = [
    [rejecting, "rejects something", "reject something"],
    [older, "was sent older content", "were sent older content"],
    [lagging, "has not answered for over 10 s", "have not answered for over 10 s"],
    [waiting + away, "waits for over 10 s", "wait for over 10 s"],
  ].filter(([number]) => number > 0);
  const below = parts.map(([number, one, several]) => many(number, one, several)).join(", ");
  return figure("Up to date", `${count(current)} of ${clients}`, below || "nobody lags, waits or rejects", below ? "wrong" : null);
}

function rejectionsOf(groups) {
  if (groups.length === 0) {
    return empty("No client rejects anything.");
  }
  const some = groups
    .slice(0, SHOWN_MAX)
    .map((group) =>
      h(
        "li",
        { "data-key": group.key },
        h("a", { href: `#rejections/${encodeURIComponent(group.key)}` }, headline(group)),
        h("p", { class: "words" }, group.short),
      ),
    );
  const more = groups.length - SHOWN_MAX;
  return [h("ol", { class: "plain" }, some), more > 0 && h("p", null, h("a", { href: "#rejections" }, `${count(more)} more`))];
}

function pressureOf({ percent, active }) {
  const rows = Object.entries(percent).map(([name, share]) =>
    h(
      "div",
      { class: "gauge", "data-key": name },
      h("span", null, name),
      h("progress", { max: 100, value: share, "aria-label": `${name} in use` }),
      h("span", { class: "number" }, `${share} %`),
    ),
  );
  const does = active.map((one) => one.replaceAll("_", " ")).join(", ");
  return [
    rows.length > 0 ? rows : empty("Nothing is limited."),
    h(
      "p",
      { class: active.length > 0 ? "problem" : "quiet" },
      active.length > 0 ? `The relay defends itself: ${does}.` : "The relay refuses nobody.",
    ),
  ];
}
