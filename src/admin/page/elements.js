// SPDX-License-Identifier: Apache-2.0
// Elements of the document: how they are made, and how what is shown becomes something else while the reader keeps the place.
// Text is only ever text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

// Control characters but tabs and ends of lines, and what the relay calls invisible everywhere else: a test keeps both equal.
const INVISIBLE =
  /[\u{0}-\u{8}\u{b}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** Returns a text in which every character can be seen. */
export function visible(text) {
  return String(text).replace(INVISIBLE, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

/** Makes an element. Attributes that are null or false are left out; so are such children. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Makes an element of a picture. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : visible(value));
    }
  }
  append(element, children);
  return element;
}

function append(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(parent, child);
    } else if (child instanceof Node) {
      parent.append(child);
    } else if (child !== null && child !== undefined && child !== false) {
      parent.append(document.createTextNode(visible(child)));
    }
  }
}

/** Shows these children in an element. Elements that stay the same stay where they are, with focus, selection and scrolling. */
export function show(parent, ...children) {
  const wanted = document.createElement("div");
  append(wanted, children);
  become(parent, [...wanted.childNodes]);
}

function key(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
}

function become(parent, wanted) {
  const known = new Map();
  for (const child of parent.childNodes) {
    if (key(child) !== null) {
      known.set(key(child), child);
    }
  }
  wanted.forEach((fresh, at) => {
    const current = parent.childNodes[at];
    const found = key(fresh) === null ? current : known.get(key(fresh));
    const alike = found && found.nodeName === fresh.nodeName && key(found) === key(fresh);
    if (!alike) {
      parent.insertBefore(fresh, current ?? null);
      return;
    }
    if (found !== current) {
      parent.insertBefore(found, current ?? null);
    }
    change(found, fresh);
  });
  while (parent.childNodes.length > wanted.length) {
    parent.lastChild.remove();
  }
}

function change(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) {
      old.data = fresh.data;
    }
    return;
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
    }
  }
  for (const { name } of [...old.attributes]) {
    // Whether something is unfolded is the reader's choice.
    if (!fresh.hasAttribute(name) && name !== "open") {
      old.removeAttribute(name);
    }
  }
  become(old, [...fresh.childNodes]);
}
