// Elements without markup in strings: whatever a user named or printed stays text.

// element("p", {class: "note"}, "text", child); attributes that are false or null are left out, functions are listeners.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

let sections = 0;

// A part of the page with a heading, which names it for screen readers.
function section(parent, title, note) {
  const id = `part-${++sections}`;
  const node = element("section", { "aria-labelledby": id }, element("h2", { id }, title));
  if (note) node.append(element("p", { class: "note" }, note));
  parent.append(node);
  return node;
}

// Buttons of which one is pressed. `choices`: [[value, label]].
function choice(label, choices, chosen, onChoice) {
  const group = element("span", { class: "group", role: "group", "aria-label": label });
  for (const [value, text] of choices) {
    const button = element("button", { type: "button", "aria-pressed": String(value === chosen), click: () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      onChoice(value);
    } }, text);
    group.append(button);
  }
  return group;
}

function selectBox(label, choices, onChoice) {
  const box = element("select", { "aria-label": label, change: () => onChoice(box.value) },
    ...choices.map(([value, text]) => element("option", { value }, text)));
  return box;
}

// `cells`: texts or nodes; a column whose title begins with "#" has numbers.
function table(titles, rows, caption) {
  const isNumber = titles.map((title) => title.startsWith("#"));
  // On a narrow screen "9.986e-4" is not divided at its sign.
  const kind = (content, i) => (isNumber[i] ? "number" : typeof content === "string" && content.length <= 14 ? "text short" : "text");
  const cell = (tag, content, i) => element(tag, { class: kind(content, i), scope: tag === "th" ? "col" : null }, content);
  const head = element("tr", {}, ...titles.map((title, i) => cell("th", title.replace(/^#/, ""), i)));
  const body = rows.map((row) => element("tr", {}, ...row.map((content, i) => cell("td", content, i))));
  return element("div", { class: "scroll" }, element("table", {},
    caption ? element("caption", { class: "sr" }, caption) : null, element("thead", {}, head), element("tbody", {}, ...body)));
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
