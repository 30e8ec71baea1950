// SPDX-License-Identifier: Apache-2.0
// A list that is searched: a form, what is found, and more of it on demand.

import { Rounds } from "./asked.js";
import { h, show } from "./elements.js";
import { asJson, calm, problem, title } from "./parts.js";

const PAUSE = 3000;
const STEP = 100;
export const LIMIT_MAX = 1000;

/**
 * Opens a list. `asked` returns the path for so many, `also` returns further paths, and `list` shows the answers of all of them. `hash`
 * returns where the search stands on this page, and `jump` whether it leads elsewhere. Returns what searches again, and what
 * closes the list.
 */
export function searched(place, { name, address, field, fields, asked, also = () => [], list, hash, jump = () => false }) {
  let limit = STEP;
  const content = h("div");
  const link = asJson(address, name);
  const form = h("form", { class: "filter", role: "search" }, fields);
  place.replaceChildren(title(name, link), form, content);
  const rounds = new Rounds(
    PAUSE,
    () => [asked(limit), ...also()],
    (...answers) => {
      link.setAttribute("href", asked(limit));
      show(content, list(limit, ...answers));
    },
    (error) => show(content, problem(error)),
  );
  const again = () => {
    limit = STEP;
    history.replaceState(null, "", hash());
    rounds.again();
  };
  field.addEventListener("input", calm(again));
  form.addEventListener("change", ({ target }) => target !== field && again());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!jump()) {
      again();
    }
  });
  content.addEventListener("click", (event) => {
    if (event.target.closest("button.more")) {
      limit = Math.min(limit + STEP, LIMIT_MAX);
      rounds.again();
    }
  });
  return { again, close: () => rounds.stop() };
}
