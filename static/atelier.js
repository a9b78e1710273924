// Tells the style sheet that scripts run.
document.documentElement.classList.add("htmx");

// A photo that cannot be loaded gives way to the article's drawing.
function draw(image) {
  const { drawing } = image.dataset ?? {};
  if (drawing && image.getAttribute("src") !== drawing) image.src = drawing;
}
addEventListener("error", (event) => draw(event.target), true);
for (const image of document.images) if (image.complete && image.naturalWidth === 0) draw(image);

// A click without an answer says so. Whether it counted is not known: the answer may be what was lost.
let notice;
addEventListener("htmx:error", () => {
  notice ??= Object.assign(document.createElement("p"), { className: "notice toast" });
  notice.setAttribute("role", "alert");
  notice.textContent = "No answer from Atelier. Your last click may or may not have counted: check the network, then reload the page.";
  document.body.append(notice);
});

// A form that the end of a session keeps from being sent is filled in again after signing in.
const lost = () => document.querySelector("[data-lost]");
const here = () => location.pathname + location.search;
addEventListener("input", ({ target: { form } }) => {
  if (form?.method !== "post" || lost()) return;
  const typed = [...form.elements].filter(({ id, type }) => id && !["hidden", "password", "submit"].includes(type));
  const fields = typed.map((field) => [field.id, field.checked ?? false, field.value]);
  sessionStorage.setItem("form", JSON.stringify({ page: here(), fields }));
});
function fillAgain(isSent) {
  const form = JSON.parse(sessionStorage.getItem("form"));
  if (!form) return;
  if (lost()) sessionStorage.setItem("form", JSON.stringify({ ...form, isLost: true }));
  else if (form.isLost ? form.page === here() : isSent) {
    sessionStorage.removeItem("form");
    for (const [id, checked, value] of form.isLost ? form.fields : []) {
      const field = document.getElementById(id);
      if (field) Object.assign(field, ["checkbox", "radio"].includes(field.type) ? { checked } : { value });
    }
  }
}
fillAgain(true);

// A change keeps the place on the page and the focus; another page begins at its top.
const page = () => location.pathname + document.querySelector("h1")?.textContent;
const slots = () => new URL(location).searchParams.getAll("slot");
addEventListener("htmx:before:swap", ({ detail: { ctx, tasks } }) => {
  // A field that is there already takes the focus only once.
  for (const field of tasks.flatMap(({ fragment }) => [...fragment.querySelectorAll("[autofocus]")])) {
    const before = document.getElementById(field.id);
    if (before && before.href === field.href) field.removeAttribute("autofocus");
  }
  // The browser's Back and Forward have a place of their own.
  if (ctx.sourceElement === document.body) return;
  const { submitter, type } = ctx.sourceEvent ?? {};
  // Safari does not focus a button that is clicked.
  const hand = document.activeElement.closest("main *") ?? submitter ?? (type === "click" ? ctx.sourceElement : undefined);
  ctx.place = { page: page(), top: scrollY, slots: slots(), id: hand?.id, words: hand?.textContent, value: hand?.value, hand };
});
addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
  notice?.remove();
  document.querySelector(".menu:popover-open")?.hidePopover();
  const isSent = ctx.request.method === "POST" && ctx.response.status < 400;
  // The typed text is stored, so the field is empty again, or has the stored one.
  if (isSent) ctx.request.form?.reset();
  fillAgain(isSent);
  if (!ctx.place) return;
  if (ctx.place.page !== page()) return scrollTo({ top: 0, behavior: "instant" });
  const { top, hand } = ctx.place;
  const main = document.getElementById("main");
  // A page that got shorter stays where it is, too.
  main.style.minHeight = top + innerHeight > document.documentElement.scrollHeight ? `${top + innerHeight - main.offsetTop}px` : "";
  if (scrollY !== top) scrollTo({ top, behavior: "instant" });
  // A filter's answer is not left above the page or under the outfit.
  document.querySelector(".studio .empty")?.scrollIntoView({ block: "nearest", behavior: "instant" });
  if (hand && !document.activeElement.closest("main *")) successor(ctx.place)?.focus({ preventScroll: true });
});

// Takes the focus of an element that is gone.
function successor({ id, value, words, slots: before }) {
  // A button that undoes is gone; what it brought back may be there.
  const article = value?.split("/").slice(2).join("/");
  const tiles = article ? [...document.querySelectorAll(".suggestions > li")] : [];
  const brought = tiles.find((tile) => tile.id.endsWith(`-${article}`)) ?? tiles[0];
  const changed = slots().findIndex((article, place) => article !== before[place]);
  const own = document.getElementById(id);
  // A closed menu hands the focus inside it to its button.
  const menu = own?.closest(".menu");
  return (
    (menu ? document.querySelector(`[popovertarget=${menu.id}]`) : own) ??
    brought?.querySelector(".more") ??
    [...document.querySelectorAll("main :is(a[href], button)")].find((other) => other.textContent === words) ??
    document.getElementById(`slot-${changed}`) ??
    document.querySelector("main .board a")
  );
}

// Keys of Studio, which its dialog lists and turns off.
const isOff = () => localStorage.getItem("keys") === "off";
function showKeys() {
  document.getElementById("keys-on").checked = !isOff();
  document.getElementById("keys").showModal();
}
addEventListener("change", ({ target }) => {
  if (target.id === "keys-on") localStorage.setItem("keys", target.checked ? "on" : "off");
});
addEventListener("keydown", (event) => {
  const help = document.getElementById("keys");
  const writes = event.target.closest?.("input, select, textarea, dialog");
  if (!help || writes || event.ctrlKey || event.metaKey || event.altKey) return;
  // Caps Lock changes letters, too; with Shift they are none of these keys.
  const key = event.key.length === 1 && !event.shiftKey ? event.key.toLowerCase() : event.key;
  const isArrow = key.startsWith("Arrow");
  if (!isArrow && (event.repeat || isOff())) return;
  const tiles = [...document.querySelectorAll(".suggestions .take")];
  const cards = tiles.map((tile) => tile.closest("li"));
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  const press = (button) => {
    button?.focus({ preventScroll: true });
    button?.click();
  };
  const own = (kind) => press(cards[at]?.querySelector(`[id^="${kind}-"]`));
  const acts = {
    ArrowRight: () => tiles[Math.min(at + 1, tiles.length - 1)]?.focus(),
    ArrowLeft: () => tiles[Math.max(at - 1, 0)]?.focus(),
    u: () => own("take"),
    x: () => own("not"),
    z: () => press(document.getElementById("undo")),
    s: () => press(document.getElementById("save")),
    "/": () => {
      const field = document.querySelector("main [type=search]");
      if (field) field.focus();
      else press(document.querySelector("#search") ?? document.querySelector("[id^=search-]"));
    },
    "?": showKeys,
  };
  if (!acts[key]) return;
  event.preventDefault();
  acts[key]();
});
addEventListener("click", (event) => {
  if (event.target.closest?.("[data-prints]")) print();
  if (event.target.closest?.("[data-opens=keys]")) showKeys();
  const copies = event.target.closest?.("[data-copies]");
  if (copies) copy(copies);
});

// Copies an element's text. Browsers lend the clipboard to pages over https only; elsewhere the text is selected.
async function copy(button) {
  const text = document.getElementById(button.dataset.copies);
  getSelection().selectAllChildren(text);
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected: press Ctrl+C";
  }
}

// A suggested article, or one of the catalogue, can be dragged to any place of the outfit.
let dragged;
addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".suggestions .take, .picker ~ .tiles .tile");
});
addEventListener("dragend", () => (dragged = undefined));
addEventListener("dragover", (event) => {
  if (dragged && event.target.closest?.(".board .slot")) event.preventDefault();
});
addEventListener("drop", (event) => {
  const place = event.target.closest?.(".board .slot");
  if (!dragged || !place) return;
  event.preventDefault();
  dragged.href = moved(new URL(dragged.href), [...place.parentElement.children].indexOf(place));
  dragged.click();
});

// Leaving an outfit that is not saved asks first, but not on the way to signing in, which leads back to it. A link to a page
// without the outfit leaves, so the browser follows it.
addEventListener(
  "click",
  (event) => {
    const link = event.target.closest?.("a[href]");
    if (link && document.querySelector("[data-unsaved]") && !new URL(link.href).searchParams.has("slot")) event.stopPropagation();
  },
  true,
);
let isExpected = false;
addEventListener("htmx:before:response", ({ detail: { ctx } }) => (isExpected = "redirect" in ctx.hx));
addEventListener("beforeunload", (event) => {
  if (document.querySelector("[data-unsaved]") && !isExpected) event.preventDefault();
});

// The address that uses an article, changed so that the article goes to another place.
function moved(use, to) {
  const now = new URL(location).searchParams;
  const [before, slots] = [now.getAll("slot"), use.searchParams.getAll("slot")];
  const own = slots.findIndex((article, place) => article !== before[place]);
  if (own < 0 || own === to) return use;
  [slots[own], slots[to]] = [before[own], slots[own]];
  const isOf = (place) => (word) => Number.parseInt(word) === place;
  const others = (words) => words.filter((word) => !isOf(to)(word));
  const from = others(use.searchParams.getAll("from"));
  const lists = {
    slot: slots,
    type: others(now.getAll("type")),
    loose: others(now.getAll("loose")),
    from: from.map((word) => (isOf(own)(word) ? word.replace(/^\d+/, to) : word)),
  };
  for (const [name, words] of Object.entries(lists)) {
    use.searchParams.delete(name);
    for (const word of words) use.searchParams.append(name, word);
  }
  return use;
}

// Sends the archive of a release as it is, with its digest. Browsers compute one only on https and on this machine.
addEventListener("submit", async (event) => {
  const form = event.target, { archive: to, csrf } = form.dataset;
  if (!to) return;
  event.preventDefault();
  const says = form.querySelector("[role=status]"), [file] = form.querySelector("input").files;
  says.textContent = "Sending …";
  try {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
    const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const headers = { Accept: "application/problem+json", "Content-Type": "application/octet-stream", "X-CSRF-Token": csrf, "X-Content-SHA256": sha256 };
    const answer = await fetch(to, { method: "POST", headers, body: file });
    if (answer.ok) return location.reload();
    says.textContent = `Not stored: ${(await answer.json()).detail}`;
  } catch (error) {
    says.textContent = `Not sent: ${crypto.subtle ? error.message : "this page needs https"}`;
  }
});
