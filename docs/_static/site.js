"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("nav summary")) arrow.setAttribute("aria-label", "show the pages below");
  if (navigator.clipboard) addCopyButtons();
});

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
