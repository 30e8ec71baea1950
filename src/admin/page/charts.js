// SPDX-License-Identifier: Apache-2.0
// Pictures of numbers. A picture is as wide as its place, and has its sense in words for those who do not see it.

import { h, s } from "./elements.js";

const WIDTH = 600;
const HEIGHT = 140;
// How wide a point is that has no neighbour.
const MARK = 8;

/** Returns the next larger round number: 1, 2 or 5 of a power of ten. */
export function round(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(number, 1e-9)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= number - 1e-12);
}

/** Returns a scale from nothing to the largest number, with its lines. */
export function linear(largest) {
  const top = Math.max(round(largest), 1);
  const at = (number) => HEIGHT - (number / top) * (HEIGHT - 8);
  return { at, lines: [0, top / 2, top] };
}

/** Returns a scale on which each line is ten times the one below it. */
export function tenfold(lowest, highest) {
  const steps = Math.log10(highest / lowest);
  const at = (number) => {
    const inside = Math.min(Math.max(number, lowest), highest);
    return HEIGHT - (Math.log10(inside / lowest) / steps) * (HEIGHT - 8);
  };
  const lines = [];
  for (let line = lowest; line <= highest * 1.0001; line *= 10) {
    lines.push(line);
  }
  return { at, lines };
}

/**
 * Returns a chart. Each of `rows` has points [x, y] with x from 0 to 1 and y perhaps null, and a name that is the class of its
 * line; `filled` rows have their area filled. `label` writes a line of the scale, `words` say what is seen.
 */
export function chart({ rows, scale, label, words, feet }) {
  const grid = scale.lines.map((line) =>
    s("line", {
      class: "grid",
      x1: 0,
      x2: WIDTH,
      y1: scale.at(line),
      y2: scale.at(line),
    }),
  );
  const lines = rows.flatMap(({ name, points, filled }) => {
    const runs = broken(points).map((run) => run.map(([x, y]) => `${(x * WIDTH).toFixed(1)} ${scale.at(y).toFixed(1)}`));
    return runs.flatMap((points) => {
      const run = points.length > 1 ? points : mark(points[0]);
      const first = run[0].split(" ")[0];
      const last = run[run.length - 1].split(" ")[0];
      const area = `M${first} ${HEIGHT}L${run.join("L")}L${last} ${HEIGHT}Z`;
      const line = s("path", { class: `line ${name}`, d: `M${run.join("L")}` });
      return filled ? [s("path", { class: `area ${name}`, d: area }), line] : [line];
    });
  });
  const picture = s(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
      focusable: "false",
    },
    grid,
    lines,
  );
  // The lines of both scales have the same distances, so their marks need no places of their own.
  const marks = [...scale.lines].reverse().map((line) => h("span", null, label(line)));
  return h(
    "div",
    { class: "chart", role: "img", "aria-label": words },
    h("div", { class: "marks", "aria-hidden": "true" }, marks),
    picture,
    h(
      "div",
      { class: "feet", "aria-hidden": "true" },
      feet.map((foot) => h("span", null, foot)),
    ),
  );
}

/** Returns a short line in the place of a point that is alone, also at an end of the picture. */
function mark(point) {
  const [x, y] = point.split(" ");
  const from = Math.min(Math.max(Number(x) - MARK / 2, 0), WIDTH - MARK);
  return [`${from.toFixed(1)} ${y}`, `${(from + MARK).toFixed(1)} ${y}`];
}

/** Splits points where there is none. */
function broken(points) {
  const runs = [[]];
  for (const point of points) {
    if (point[1] === null) {
      runs.push([]);
    } else {
      runs[runs.length - 1].push(point);
    }
  }
  return runs.filter((run) => run.length > 0);
}
