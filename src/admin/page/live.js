// SPDX-License-Identifier: Apache-2.0
// What the relay tells every second: its state, its control planes, and what it counts; and what follows from two counts.
// Reads CountSums { convergence_seconds, responses, updates }
// Reads ServerGlimpse { authority, server, state }
// Reads its own { counts, hold, holds, id, now, pressure, second, servers, status, told }

// Over how many seconds the time of convergence is taken, because in one second there may be few changes.
const WINDOW = 10;
const PAUSES = [1000, 2000, 5000, 10000];

export class Live extends EventTarget {
  /** Whether the relay tells: true, false, or the reason in words. */
  state = "connecting";
  status = null;
  servers = new Map();
  /** By id. */
  holds = new Map();
  pressure = { percent: {}, active: [] };
  counts = null;
  /** What follows from the last two counts. */
  second = null;
  /** When the last counts came. */
  told = null;
  #failures = 0;
  #before = null;
  #buckets = [];

  /** Listens while the page can be seen: a browser has few connections to one address, and each listener takes one. */
  begin() {
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => this.begin(), { once: true });
      return;
    }
    const events = new EventSource("/events");
    const leave = () => {
      events.close();
      this.begin();
    };
    document.addEventListener("visibilitychange", leave, { once: true });
    const heard = (name, take) =>
      events.addEventListener(name, (event) => {
        take(JSON.parse(event.data));
        this.dispatchEvent(new Event(name));
      });
    events.addEventListener("open", () => {
      this.#failures = 0;
      this.#before = null;
      this.servers.clear();
      this.holds.clear();
      this.#say("live");
    });
    heard("status", ({ status }) => {
      this.status = status;
    });
    heard("server", (server) => {
      const name = `${server.authority} ${server.server}`;
      if (server.state === "gone") {
        this.servers.delete(name);
      } else {
        this.servers.set(name, server);
      }
    });
    heard("hold", ({ id, hold }) => {
      if (hold) {
        this.holds.set(id, hold);
      } else {
        this.holds.delete(id);
      }
    });
    heard("pressure", (pressure) => {
      this.pressure = pressure;
    });
    heard("counts", (counts) => this.#count(counts));
    events.addEventListener("error", () => {
      events.close();
      document.removeEventListener("visibilitychange", leave);
      const pause = PAUSES[Math.min(this.#failures, PAUSES.length - 1)];
      this.#failures += 1;
      this.#say("lost");
      setTimeout(() => this.begin(), pause);
    });
  }

  #say(state) {
    if (this.state !== state) {
      this.state = state;
      this.dispatchEvent(new Event("state"));
    }
  }

  #count(counts) {
    const now = performance.now();
    const before = this.#before;
    this.counts = counts;
    this.told = now;
    this.#before = { now, counts };
    this.#buckets.push(counts.convergence_seconds);
    this.#buckets.splice(0, this.#buckets.length - WINDOW - 1);
    if (before === null || now - before.now < 100) {
      return;
    }
    const each = (name) => {
      const more = (counts[name] ?? 0) - (before.counts[name] ?? 0);
      // A relay that began anew counts from zero.
      return more < 0 ? 0 : (more * 1000) / (now - before.now);
    };
    const spread = difference(this.#buckets[0], counts.convergence_seconds);
    this.second = {
      changes: each("updates"),
      deliveries: each("responses"),
      median: quantile(spread, 0.5),
      slowest: quantile(spread, 0.99),
    };
  }
}

/** Returns how many more there are up to each bound: [[bound, count], ...] in order; the last bound is infinite. */
export function difference(before, now) {
  const bounds = Object.keys(now).map((text) => [text === "+Inf" ? Infinity : Number(text), text]);
  bounds.sort(([one], [other]) => one - other);
  return bounds.map(([bound, text]) => [bound, now[text] - (before[text] ?? 0)]);
}

/** Returns the time within which this part of all was done, as Prometheus would say it; null if there was nothing. */
export function quantile(spread, part) {
  const all = spread.length > 0 ? spread[spread.length - 1][1] : 0;
  if (all <= 0) {
    return null;
  }
  let [below, under] = [0, 0];
  for (const [bound, number] of spread) {
    if (number >= part * all) {
      const share = number > under ? (part * all - under) / (number - under) : 1;
      return bound === Infinity ? below : below + (bound - below) * share;
    }
    [below, under] = [bound, number];
  }
  return below;
}
