// Frameworks keep some attributes for themselves, as React and Vue do `key`: the element must get all those that docs/widget.md names.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Window } from "happy-dom";

const window = new Window();
Object.assign(globalThis, { window, IS_REACT_ACT_ENVIRONMENT: true });
for (const name of ["document", "navigator", "Element", "HTMLElement", "Node", "SVGElement", "MathMLElement", "ShadowRoot"])
  Object.defineProperty(globalThis, name, { value: window[name] });
window.customElements.define("atelier-looks", class extends window.HTMLElement {});

const [, table] = readFileSync(process.argv[2], "utf8").match(/\| attribute \| means \|\n([^]*?)\n\n/);
const attributes = Object.fromEntries([...table.matchAll(/^\| `(\S+)` \|/gm)].map(([, name]) => [name, `its ${name}`]));
assert("publishable-key" in attributes && Object.keys(attributes).length > 5, table);

function check(framework, root) {
  const element = root.querySelector("atelier-looks");
  const found = Object.fromEntries(element.getAttributeNames().map((name) => [name, element.getAttribute(name)]));
  assert.deepEqual(found, attributes, framework);
}

const { act, createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const react = document.body.appendChild(document.createElement("div"));
await act(() => createRoot(react).render(createElement("atelier-looks", attributes)));
check("React", react);

const { createApp, h } = await import("vue");
const vue = document.body.appendChild(document.createElement("div"));
createApp({ render: () => h("atelier-looks", attributes) }).mount(vue);
check("Vue", vue);
