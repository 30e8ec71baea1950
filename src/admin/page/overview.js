// The overview: what one wants to see on a wall.

import { Rounds } from "./asked.js";
import { chart, linear, tenfold } from "./charts.js";
import { h, show } from "./elements.js";
import { KEPT } from "./live.js";
import { asJson, empty, problem, section, state, table, title } from "./parts.js";
import { certificateLines } from "./certificates.js";
import { holds } from "./holds.js";
import { grouped, headline } from "./rejections.js";
import { servers } from "./servers.js";
import { brief, bytes, count, many, rate, seconds, typeName, typeWord } from "./words.js";

const PAUSE = 5000;
const SHOWN_MAX = 5;
const LOWEST = 0.001;
const HIGHEST = 10;

export function open(place, live) {
  const figures = h("dl", { class: "figures" });
  const changes = h("div", { class: "plot" });
  const convergence = h("div", { class: "plot" });
  const planes = h("div");
  const rejections = h("div");
  const contents = h("div");
  const held = h("div");
  const pressure = h("div");
  const certificates = h("div");
  const plot = (id, name, legend, of) =>
    h("section", { class: "section", "aria-labelledby": id }, h("div", { class: "bar" }, h("h2", { id }, name), legend), of);
  place.replaceChildren(
    h("h1", { id: "heading", class: "unseen", tabindex: "-1" }, "Overview"),
    figures,
    h(
      "div",
      { class: "pair" },
      plot(
        "changes-name",
        "Changes a second",
        legend(["changes", "from control planes"], ["deliveries", "sent to clients"]),
        changes,
      ),
      plot("convergence-name", "Convergence", legend(["median", "p50"], ["slowest", "p99"]), convergence),
    ),
    h(
      "div",
      { class: "pair uneven" },
      section("planes", "Control planes", asJson("/clusters?format=json", "Control planes"), planes),
      section("rejected", "Rejections", asJson("/nacks", "Rejections"), rejections),
    ),
    h(
      "div",
      { class: "pair uneven" },
      section("contents", "Contents by class and type", asJson("/views", "Contents"), contents),
      h(
        "div",
        null,
        section("holds", "Held removals", asJson("/holds?format=json", "Held removals"), held),
        section("pressure", "Pressure", null, pressure),
        section("certs", "Certificates", asJson("/certs", "Certificates"), certificates),
      ),
    ),
  );
  // What is rejected, and how many rejections were counted then.
  let [rejected, asked, standings] = [null, null, null];
  const draw = () => {
    show(figures, figuresOf(live, rejected, standings));
    show(changes, changesOf(live.seconds));
    show(convergence, convergenceOf(live.seconds));
    show(held, holds(live.holds));
    show(pressure, pressureOf(live.pressure));
    show(planes, servers([...live.servers.values()]));
  };
  draw();
  live.addEventListener("counts", draw);
  const failed = (error) => show(rejections, problem(error));
  const rounds = [
    new Rounds(
      PAUSE,
      () => ["/views", "/certs", "/clusters?format=json"],
      (views, certs, { clients }) => {
        standings = clients;
        show(contents, contentsOf(views.views));
        show(certificates, certificateLines(certs));
      },
      failed,
    ),
    // All clients are asked what they reject, so they are asked only if there may be news.
    new Rounds(
      PAUSE,
      () => {
        const counted = live.counts?.nacks ?? null;
        const news = asked === null || rejected === null || rejected.length > 0 || asked !== counted;
        asked = counted;
        return news ? ["/nacks"] : [];
      },
      (nacks) => {
        if (nacks) {
          rejected = nacks.rejections;
          show(rejections, rejectionsOf(grouped(rejected)));
        }
      },
      (error) => {
        asked = null;
        failed(error);
      },
    ),
  ];
  return () => {
    live.removeEventListener("counts", draw);
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
    h("dd", null, h("span", { class: "value" }, value), h("span", { class: "below" }, below)),
  );
}

function figuresOf(live, rejected, standings) {
  const { counts } = live;
  const last = live.seconds[live.seconds.length - 1] ?? { changes: null, deliveries: null, median: null, slowest: null };
  if (counts === null) {
    return ["Clients", "Up to date", "Changes a second", "Convergence", "Rejected", "Resources", "Pressure"].map((name) =>
      figure(name, "–", " "),
    );
  }
  const pressing = Object.entries(live.pressure.percent).sort(([, one], [, other]) => other - one)[0];
  const { active } = live.pressure;
  const groups = rejected === null ? null : grouped(rejected).length;
  return [
    figure("Clients", count(counts.streams), `${many(counts.connections, "connection")}, ${many(counts.views, "view")}`),
    upToDate(standings),
    figure("Changes a second", rate(last.changes), `${rate(last.deliveries)} deliveries a second`),
    figure(
      "Convergence",
      [seconds(last.median), h("small", null, " p50 ")],
      [`${seconds(last.slowest)} p99, change to acknowledgement`],
    ),
    figure(
      "Rejected",
      groups === null ? "–" : count(groups),
      groups ? `${many(rejected.length, "resource")}` : "no client rejects anything",
      groups ? "wrong" : null,
    ),
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

/** How many client streams have everything, as far as they were asked. */
function upToDate(standings) {
  if (standings === null) {
    return figure("Up to date", "–", " ");
  }
  const { streams, up_to_date: current, rejecting, lagging, waiting } = standings;
  const parts = [
    [rejecting, "reject something"],
    [lagging, "have not answered for over 10 s"],
    [waiting, "wait for over 10 s"],
  ].filter(([number]) => number > 0);
  const below = parts.map(([number, what]) => `${count(number)} ${what}`).join(", ");
  return figure("Up to date", `${count(current)} of ${count(streams)}`, below || "nobody lags, waits or rejects", below ? "wrong" : null);
}

/** The last seconds from left to right; the latest is at the right end. */
function points(all, of) {
  return all.map((one, at) => [(KEPT - all.length + at) / (KEPT - 1), one[of]]);
}

function changesOf(all) {
  const largest = Math.max(1, ...all.flatMap((one) => [one.changes, one.deliveries]));
  const last = all[all.length - 1];
  const words = last
    ? `${rate(last.changes)} changes and ${rate(last.deliveries)} deliveries a second; at most ${rate(largest)} in three minutes`
    : "no second is counted yet";
  return chart({
    rows: [
      { name: "deliveries", points: points(all, "deliveries"), filled: true },
      { name: "changes", points: points(all, "changes") },
    ],
    scale: linear(largest),
    label: rate,
    words,
    feet: ["3 min ago", "now"],
  });
}

function convergenceOf(all) {
  const last = all[all.length - 1];
  const words =
    last && last.median !== null
      ? `half of the last changes were acknowledged within ${seconds(last.median)}, 99 of 100 within ${seconds(last.slowest)}`
      : "nothing was acknowledged in the last seconds";
  return chart({
    rows: [
      { name: "slowest", points: points(all, "slowest") },
      { name: "median", points: points(all, "median"), filled: true },
    ],
    scale: tenfold(LOWEST, HIGHEST),
    label: (number) => (number < 1 ? `${Math.round(number * 1000)} ms` : `${Math.round(number)} s`),
    words,
    feet: ["3 min ago", "now"],
  });
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

function contentsOf(views) {
  const rows = views.flatMap((view) =>
    Object.entries(view.types).flatMap(([type, halves]) => {
      const both = [halves.wildcard, halves.named].filter((half) => half !== null && (half.resources > 0 || half.complete));
      return both.map((half) => ({
        key: `${view.class} ${view.server} ${type} ${half === halves.wildcard}`,
        cells: [
          view.class === "-" ? "all clients" : view.class,
          h(
            "a",
            { href: `#resources/${encodeURIComponent(typeWord(type))}`, title: type },
            typeWord(type).length > 6 ? typeName(type) : typeWord(type),
          ),
          half === halves.wildcard ? "everything" : "by name",
          count(half.resources),
          bytes(half.bytes),
          half.stale ? state("STALE", "not confirmed") : state("SYNCED", "current"),
          h("code", { class: "version", title: half.digest }, brief(half.digest)),
        ],
      }));
    }),
  );
  if (rows.length === 0) {
    return empty("No client asks for anything yet.");
  }
  return table(
    "All contents",
    [
      { name: "Class" },
      { name: "Type" },
      { name: "Asked for" },
      { name: "Resources", kind: "number" },
      { name: "Bytes", kind: "number" },
      { name: "State" },
      { name: "Digest" },
    ],
    rows,
  );
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
