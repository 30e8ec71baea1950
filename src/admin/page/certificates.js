// SPDX-License-Identifier: Apache-2.0
// Certificates in use, and what is wrong with their files.

import { Rounds } from "./asked.js";
import { h, show } from "./elements.js";
import { asJson, empty, problem, section, state, table, title } from "./parts.js";
import { ago, count, span, until } from "./words.js";

const PAUSE = 10000;
const SOON_SECONDS = 14 * 86400;

/** Returns how many seconds are left of a certificate; less than none if it has ended. */
export function untilEnd(certificate) {
  return until(certificate.expiration_time);
}

/** Returns each certificate once: the chains of the relay itself, or the authorities that it trusts. */
function chosen({ certificates }, part) {
  const all = certificates.flatMap((one) => one[part] ?? []);
  return [...new Map(all.map((one) => [`${one.path} ${one.serial_number}`, one])).values()];
}

function left(certificate) {
  const seconds = untilEnd(certificate);
  if (seconds <= 0) {
    return state("ERROR", `expired ${ago(certificate.expiration_time)}`);
  }
  return state(seconds <= SOON_SECONDS ? "STALE" : "SYNCED", span(seconds));
}

function names(certificate) {
  return certificate.subject_alt_names.map(({ dns, uri }) => dns ?? uri).join(", ");
}

function faults(answer) {
  return Object.entries(answer.faults ?? {}).map(([name, why]) => h("p", { class: "problem" }, `${name}: ${why}`));
}

/** Returns the certificates in short, those that expire first at the top. */
export function certificateLines(answer) {
  const all = chosen(answer, "cert_chain").sort((one, other) => untilEnd(one) - untilEnd(other));
  if (all.length === 0) {
    return [faults(answer), empty("No certificate is in use.")];
  }
  const some = all
    .slice(0, 3)
    .map((one) => h("li", null, h("p", { class: "line" }, left(one), h("span", { class: "name" }, names(one) || one.path))));
  return [
    faults(answer),
    h("ol", { class: "plain" }, some),
    all.length > 3 && h("p", null, h("a", { href: "#certificates" }, `${count(all.length - 3)} more`)),
  ];
}

export function open(place) {
  const content = h("div");
  place.replaceChildren(title("Certificates", asJson("/certs", "Certificates")), content);
  const rounds = new Rounds(
    PAUSE,
    () => ["/certs"],
    (answer) =>
      show(
        content,
        faults(answer),
        section("own", "Shown by the relay", null, certificateTable("Certificates of the relay", chosen(answer, "cert_chain"))),
        section(
          "trusted",
          "Trusted by the relay",
          null,
          certificateTable("Certificates that it trusts", chosen(answer, "ca_cert")),
        ),
      ),
    (error) => show(content, problem(error)),
  );
  return () => rounds.stop();
}

function certificateTable(name, all) {
  if (all.length === 0) {
    return empty("None.");
  }
  return table(
    name,
    [
      { name: "File" },
      { name: "Expires in" },
      { name: "Names" },
      { name: "Valid from" },
      { name: "Until" },
      { name: "Serial number" },
    ],
    all.map((one) => ({
      key: `${one.path} ${one.serial_number}`,
      cells: [
        h("span", { class: "name" }, one.path),
        left(one),
        h("span", { class: "name" }, names(one)),
        one.valid_from.slice(0, 10),
        one.expiration_time.slice(0, 10),
        h("code", { class: "version" }, one.serial_number),
      ],
    })),
  );
}
