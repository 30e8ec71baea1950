// SPDX-License-Identifier: Apache-2.0
// What is asked of the relay: one question at a time for each part of the page, again and again while it is shown.

import { learnTime } from "./words.js";

/** Asks for JSON. The error of an answer that is none has the relay's own words. */
export async function ask(path, signal) {
  const answer = await fetch(path, { signal, headers: { accept: "application/json" } });
  learnTime(answer.headers.get("date"));
  if (!answer.ok) {
    const words = (await answer.text()).trim();
    throw Object.assign(new Error(words || `the relay answers with status ${answer.status}`), { status: answer.status });
  }
  return answer.json();
}

/** Returns a path with a query, without what is null or empty. */
export function path(base, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${base}?${text}` : base;
}

// What the relay takes long to find, it is asked seldom: the pause is at least so many times as long as the answer took, up to a bound
// below which nothing looks old that is not.
const PATIENCE = 20;
const PAUSE_MAX = 10_000;
// Those that ask now.
const asking = new Set();

/** Returns for how many milliseconds the oldest answer that is shown has been true at least; none if all are to come. */
export function oldest() {
  const begun = [...asking].map((one) => one.begun).filter((begun) => begun !== null);
  return begun.length > 0 ? performance.now() - Math.min(...begun) : 0;
}

/**
 * Asks now, and again some time after each answer, until it is stopped. Nobody is asked while the page is hidden. `paths` returns
 * what to ask, `tell` is given the answers in the same order, `fail` what went wrong.
 */
export class Rounds {
  #paths;
  #tell;
  #fail;
  #pause;
  #timer = null;
  #asking = null;
  #stopped = false;
  #pausing = false;
  /** When what is shown was asked for; null before the first answer. */
  begun = null;

  constructor(pause, paths, tell, fail) {
    [this.#pause, this.#paths, this.#tell, this.#fail] = [pause, paths, tell, fail];
    asking.add(this);
    this.again();
  }

  /** Asks at once; an answer that is still to come is not waited for. */
  again() {
    this.#asking?.abort();
    clearTimeout(this.#timer);
    this.#round();
  }

  /** Asks at once, unless an answer is still to come. */
  soon() {
    if (this.#pausing) {
      this.again();
    }
  }

  stop() {
    this.#stopped = true;
    asking.delete(this);
    this.#asking?.abort();
    clearTimeout(this.#timer);
  }

  async #round() {
    const abort = new AbortController();
    const began = performance.now();
    this.#asking = abort;
    this.#pausing = false;
    try {
      if (!document.hidden) {
        const answers = await Promise.all(this.#paths().map((one) => ask(one, abort.signal)));
        if (!abort.signal.aborted) {
          this.begun = began;
          this.#tell(...answers);
        }
      }
    } catch (error) {
      if (abort.signal.aborted) {
        return;
      }
      this.#fail(error);
    }
    if (!this.#stopped && !abort.signal.aborted) {
      this.#pausing = true;
      this.#timer = setTimeout(() => this.#round(), pauseAfter(this.#pause, performance.now() - began));
    }
  }
}

/** Returns how long nothing is asked after an answer that took so long. */
function pauseAfter(least, took) {
  return Math.max(least, Math.min(PATIENCE * took, PAUSE_MAX));
}
