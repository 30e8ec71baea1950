// SPDX-License-Identifier: Apache-2.0
// How numbers, times and types are written.

const COUNT = new Intl.NumberFormat("en");
const FEW = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

const SHORT = {
  // A client may name a type as it likes, also `constructor`.
  __proto__: null,
  "envoy.config.cluster.v3.Cluster": "cds",
  "envoy.config.endpoint.v3.ClusterLoadAssignment": "eds",
  "envoy.config.listener.v3.Listener": "lds",
  "envoy.config.route.v3.RouteConfiguration": "rds",
  "envoy.config.route.v3.ScopedRouteConfiguration": "srds",
  "envoy.config.route.v3.VirtualHost": "vhds",
  "envoy.extensions.transport_sockets.tls.v3.Secret": "sds",
  "envoy.service.runtime.v3.Runtime": "rtds",
  "envoy.config.core.v3.TypedExtensionConfig": "ecds",
};

/** Returns the short word for a type, or its name if it has none. */
export function typeWord(name) {
  return SHORT[name] ?? name;
}

/** Returns the last part of the name of a type: `Cluster`. */
export function typeName(name) {
  return name.slice(name.lastIndexOf(".") + 1);
}

export function count(number) {
  return COUNT.format(number);
}

/** Returns a number with its noun: `1 client`, `2 clients`. */
export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

/** Returns how often something happens in a second. */
export function rate(number) {
  if (number === null) {
    return "–";
  }
  return number < 10 ? FEW.format(number) : count(Math.round(number));
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = number;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${units[at]}`;
}

/** Returns a short time. */
export function seconds(number) {
  if (number === null) {
    return "–";
  }
  if (number < 0.01) {
    return `${(number * 1000).toFixed(1)} ms`;
  }
  if (number < 1) {
    return `${Math.round(number * 1000)} ms`;
  }
  return number < 10 ? `${number.toFixed(1)} s` : `${Math.round(number)} s`;
}

/** Returns a long time in its largest units. */
export function span(number) {
  const whole = Math.max(0, Math.floor(number));
  const units = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const at = units.findIndex(([size]) => whole >= size);
  if (at < 0) {
    return "0 s";
  }
  const [size, word] = units[at];
  const next = units[at + 1];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  const fine = rest > 0 && whole / size < 10 ? ` ${rest} ${next[1]}` : "";
  return `${Math.floor(whole / size)} ${word}${fine}`;
}

// How many milliseconds the relay's clock is ahead of the reader's.
let ahead = 0;

/** Learns the relay's time from the head of an answer. */
export function learnTime(date) {
  const told = Date.parse(date ?? "");
  // The head has whole seconds: a smaller difference is none.
  if (!Number.isNaN(told) && Math.abs(told - Date.now()) > 2000) {
    ahead = told - Date.now();
  }
}

/** Returns how long ago a time of the relay is. */
export function ago(time) {
  return `${span((Date.now() + ahead - Date.parse(time)) / 1000)} ago`;
}

/** Returns how many seconds are left until a time of the relay. */
export function until(time) {
  return (Date.parse(time) - Date.now() - ahead) / 1000;
}

/** Returns how much time is left until a time of the relay. */
export function left(time) {
  return span(until(time));
}

/** Returns the reader's time of day, some milliseconds ago. */
export function clockOf(age) {
  return new Date(Date.now() - age).toLocaleTimeString("en-GB");
}

/** Returns the first digits of a version. */
export function brief(version) {
  return version.slice(0, 8);
}
