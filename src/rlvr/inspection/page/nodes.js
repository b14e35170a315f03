// Builds elements from plain JSON. Text only ever becomes text nodes: no markup is parsed anywhere on this page.

const MATHML = "http://www.w3.org/1998/Math/MathML";

/** Make an element: attributes by name, then children (elements, strings, or lists of them; null is skipped). */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** Build the blocks of a text: prose, thinking and code. */
export function blocks(list) {
  return list.map((block) => {
    if (block.kind !== "code") return element("div", { class: block.kind, dir: "auto" }, nodes(block.nodes));
    return element(
      "figure",
      { class: "code" },
      block.language ? element("figcaption", {}, block.language) : null,
      element("pre", { tabindex: "0" }, element("code", {}, nodes(block.nodes))),
    );
  });
}

function nodes(list) {
  return list.map((node) => {
    if (typeof node === "string") return node;
    const [kind, first, second, third] = node;
    if (kind === "chip") return element("span", { class: "chip", title: second }, first);
    if (kind === "mark") return element("mark", {}, nodes(first));
    if (kind === "tok") return element("span", { class: `t-${first}` }, nodes(second));
    if (kind === "math") {
      return element("span", { class: third ? "formula display" : "formula", title: second }, math(first));
    }
    return "";
  });
}

function math([tag, attributes, children]) {
  // Chromium draws no menclose, so a box is drawn by the style sheet.
  const boxed = tag === "menclose" && (attributes.notation || "").includes("box");
  const made = document.createElementNS(MATHML, tag === "menclose" ? "mrow" : tag);
  if (boxed) made.setAttribute("class", "boxed");
  for (const [name, value] of Object.entries(attributes)) if (name !== "notation") made.setAttribute(name, value);
  made.append(...children.map((child) => (typeof child === "string" ? child : math(child))));
  return made;
}
