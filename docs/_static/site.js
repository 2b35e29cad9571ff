"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("nav summary")) arrow.setAttribute("aria-label", "show the pages below");
  // Sphinx makes lists of long signatures that are no lists of definitions.
  for (const list of document.querySelectorAll("dt.sig > dl")) {
    const box = document.createElement("div");
    box.className = "sig-parameters";
    for (const part of list.children) {
      const line = document.createElement("div");
      line.append(...part.childNodes);
      box.append(line);
    }
    list.replaceWith(box);
  }
  letNamesBreak();
  widenWordyCells();
  if (navigator.clipboard) addCopyButtons();
  addScrollHints();
  letKeysScroll();
  window.addEventListener("resize", letKeysScroll);
  window.addEventListener("resize", addScrollHints);
});

// A line below every table and every formula that is wider than the page, and above those that are higher than it.
const hints = new Map();
function addScrollHints() {
  for (const box of document.querySelectorAll(".pst-scrollable-table-container, div.math")) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", wide);
    for (const line of hints.get(box) ?? []) line.remove();
    hints.delete(box);
    if (!wide) continue;
    const line = document.createElement("p");
    line.className = "scroll-hint";
    line.textContent = `The ${box.matches("div.math") ? "formula" : "table"} scrolls sideways →`;
    hints.set(box, [line]);
    if (box.clientHeight > window.innerHeight) {
      hints.get(box).push(line.cloneNode(true));
      box.before(hints.get(box)[1]);
    }
    box.after(line);
  }
}

// Long words break after a dot, a slash, an underscore or an opening bracket, and titles of pages before a capital.
function letNamesBreak() {
  const names = "article code:not(pre code) .pre, article h1, article td > p, table.modindextable code, .prev-next-title";
  for (const name of document.querySelectorAll(names)) {
    const title = name.matches(".prev-next-title");
    for (const text of [...name.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.length > (title ? 12 : 20))) {
      if (name.matches("code, .pre")) name.classList.add("long");
      const words = text.textContent.split(/(?<=\s)/).map((word) => (title ? word.split(/(?<=[a-z])(?=[A-Z])/) : word.length > 20 ? word.split(/(?<=[./_(,=])/) : [word]));
      text.replaceWith(...words.flatMap((parts) => parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]))));
    }
  }
}

// Cells with many words are wide on a phone, where they would be tall otherwise.
function widenWordyCells() {
  for (const cell of document.querySelectorAll("article td")) cell.classList.toggle("wordy", cell.textContent.length > 60);
}

// A formula within a line that is longer than the line gets a box in which it scrolls.
function boxLongFormulas() {
  for (const formula of document.querySelectorAll("article math")) {
    const line = formula.closest("p, li, dd, td");
    if (!line || formula.closest("div.math, .math-box") || formula.getBoundingClientRect().right <= line.getBoundingClientRect().right + 1) continue;
    const box = document.createElement("span");
    box.className = "math-box";
    formula.replaceWith(box);
    box.append(formula);
  }
}

// Formulas that are wider than the page can be scrolled with the keyboard.
function letKeysScroll() {
  boxLongFormulas();
  for (const box of document.querySelectorAll("div.math, .math-box")) {
    const wide = box.scrollWidth > box.clientWidth;
    if (wide) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "A formula that scrolls sideways");
    } else for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
}

// A button on every block of code that copies it, without the prompts and outputs of a session.
function addCopyButtons() {
  for (const block of document.querySelectorAll("div.highlight")) {
    const text = block.querySelector("pre");
    if (!text || block.closest(".printed")) continue;
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(withoutPrompts(text.textContent));
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    block.append(button);
  }
}

function withoutPrompts(text) {
  const prompt = /^(\$|>>>|\.\.\.) ?/;
  const lines = text.replace(/\n$/, "").split("\n");
  if (!prompt.test(lines[0])) return lines.join("\n");
  return lines.filter((line) => prompt.test(line)).map((line) => line.replace(prompt, "")).join("\n");
}
