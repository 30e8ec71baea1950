// SPDX-License-Identifier: Apache-2.0
// What differs between two texts, line by line.

// Up to so many pairs of lines the shortest difference is found. Beyond, all between the first and the last differing line is replaced.
const PAIRS_MAX = 4_000_000;
const AROUND = 3;

/** Returns the lines of a value as JSON. */
export function lines(value) {
  return JSON.stringify(value, null, 2).split("\n");
}

/** Returns all lines with what became of them: `same`, `gone` or `come`. */
export function differing(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) {
    head += 1;
  }
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail += 1;
  }
  const as = (how) => (text) => ({ how, text });
  return [
    ...before.slice(0, head).map(as("same")),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(as("same")),
  ];
}

function middle(before, after) {
  const gone = before.map((text) => ({ how: "gone", text }));
  const come = after.map((text) => ({ how: "come", text }));
  if (before.length === 0 || after.length === 0 || before.length * after.length > PAIRS_MAX) {
    return [...gone, ...come];
  }
  // The longest common subsequence of all ends: row by row from the end.
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  for (let one = before.length - 1; one >= 0; one -= 1) {
    for (let other = after.length - 1; other >= 0; other -= 1) {
      const here = one * width + other;
      longest[here] =
        before[one] === after[other] ? longest[here + width + 1] + 1 : Math.max(longest[here + width], longest[here + 1]);
    }
  }
  const found = [];
  let [one, other] = [0, 0];
  while (one < before.length && other < after.length) {
    if (before[one] === after[other]) {
      found.push({ how: "same", text: before[one] });
      one += 1;
      other += 1;
    } else if (longest[(one + 1) * width + other] >= longest[one * width + other + 1]) {
      found.push(gone[one]);
      one += 1;
    } else {
      found.push(come[other]);
      other += 1;
    }
  }
  return [...found, ...gone.slice(one), ...come.slice(other)];
}

/** Returns the lines near a change, in runs. */
export function hunks(all) {
  const near = all.map(() => false);
  all.forEach(({ how }, at) => {
    if (how !== "same") {
      near.fill(true, Math.max(0, at - AROUND), at + AROUND + 1);
    }
  });
  const runs = [];
  all.forEach((line, at) => {
    if (near[at]) {
      if (!near[at - 1]) {
        runs.push([]);
      }
      runs[runs.length - 1].push(line);
    }
  });
  return runs.length > 0 ? runs : [all];
}
