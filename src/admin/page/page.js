// SPDX-License-Identifier: Apache-2.0
// The page: which view is shown, and the head above all views.
// Reads HourCounts { since }
// Reads ServerGlimpse { server, state }
// Reads its own { id, node, open, openOne, servers, status, title, told, version }

import * as certificates from "./certificates.js";
import * as clients from "./clients.js";
import { h, show, visible } from "./elements.js";
import { ask, oldest } from "./asked.js";
import { Live } from "./live.js";
import * as overview from "./overview.js";
import { meaning, tone } from "./parts.js";
import * as rejections from "./rejections.js";
import * as resources from "./resources.js";
import * as servers from "./servers.js";
import { away } from "./troubles.js";
import { clockOf } from "./words.js";

/** By the first part of the hash: the view, the link in the head that leads to it, and its title. */
const VIEWS = {
  "": [overview.open, "", "Overview"],
  servers: [servers.open, "servers", "Control planes"],
  resources: [resources.open, "resources", "Resources"],
  resource: [resources.openOne, "resources", "Resource"],
  clients: [clients.open, "clients", "Clients"],
  client: [clients.openOne, "clients", "Client"],
  rejections: [rejections.open, "rejections", "Rejections"],
  rejection: [rejections.openOne, "rejections", "Rejection"],
  certificates: [certificates.open, "certificates", "Certificates"],
};

// What is older than this is shown as such.
const OLD = 15_000;
// Two processes do not begin so close to each other, and the times of one do not differ by more.
const SAME = 5000;

const live = new Live();
const content = document.getElementById("content");
let leave = null;

/** Returns the parts of the hash. One that is not well written is taken as it is. */
function route() {
  return location.hash
    .slice(1)
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

function open(first) {
  const [name, ...wanted] = route();
  const [view, link, title] = VIEWS[Object.hasOwn(VIEWS, name) ? name : ""];
  leave?.();
  document.title = [wanted[wanted.length - 1], title, "Distributary"].filter(Boolean).map(visible).join(" – ");
  for (const one of document.querySelectorAll("#nav a")) {
    if (one.getAttribute("href") === `#${link}`) {
      one.setAttribute("aria-current", "page");
    } else {
      one.removeAttribute("aria-current");
    }
  }
  leave = view(content, live, wanted);
  if (!first) {
    scrollTo(0, 0);
    document.getElementById("heading")?.focus({ preventScroll: true });
  }
}

/** Says whether the numbers are live, and whether a control plane is away, in words. */
function pulse() {
  const place = document.getElementById("pulse");
  const gone = away(live.servers);
  const serving = live.status ? meaning(live.status) : "live";
  const without = gone.length > 1 ? `${gone.length} control planes are away` : `${gone[0]?.server} is away`;
  const words = {
    live: gone.length > 0 ? `${serving}; ${without}` : serving,
    lost: "no answer; asking again",
    connecting: "connecting",
  }[live.state];
  const age = document.hidden ? 0 : Math.max(oldest(), live.told === null ? 0 : performance.now() - live.told);
  const old = age > OLD;
  const of = gone.length > 0 ? "wrong" : tone(live.status ?? "LIVE");
  const mood = live.state === "live" ? (old ? "idle" : of) : live.state === "lost" ? "wrong" : "idle";
  place.className = `pulse ${mood}`;
  document.body.classList.toggle("old", old);
  show(place, h("span", { class: "dot" }), old ? `${words}; as of ${clockOf(age)}` : words);
}

let began = null;

/** Begins the page anew if the relay is another process: what it shows is of the one before. */
async function same() {
  try {
    const begin = Date.parse((await ask("/history")).since);
    if (began !== null && Math.abs(begin - began) > SAME) {
      location.reload();
    }
    began ??= begin;
  } catch {
    // It is asked again when it tells again.
  }
}

async function introduce() {
  const place = document.getElementById("relay");
  try {
    const { version, node } = await ask("/server_info");
    show(place, h("span", { class: "name" }, node.id || location.host), h("span", { class: "quiet" }, ` version ${version}`));
  } catch {
    setTimeout(introduce, 5000);
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
const links = Object.entries(VIEWS).filter(([name, [, link]]) => name === link);
document.getElementById("nav").append(...links.map(([name, [, , title]]) => h("a", { href: `#${name}` }, title)));
addEventListener("hashchange", () => open(false));
live.addEventListener("state", pulse);
live.addEventListener("state", () => live.state === "live" && same());
setInterval(pulse, 1000);
live.addEventListener("status", pulse);
live.addEventListener("server", pulse);
open(true);
live.begin();
introduce();
