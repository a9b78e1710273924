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

// The buttons of a form that stays on its page keep the page where it is, and the focus where it was.
let place;
addEventListener("htmx:before:request", ({ detail }) => {
  // Safari does not focus a button that is clicked.
  const button = detail.ctx.sourceEvent?.submitter;
  place = button?.form?.matches("#verdict, .notes form") ? { id: button.id, value: button.value, top: scrollY } : undefined;
});
addEventListener("htmx:after:swap", () => notice?.remove());
addEventListener("htmx:finally:request", () => {
  if (!place) return;
  const tiles = [...document.querySelectorAll(".suggestions > li")];
  // A button that undoes is gone; what it brought back may be there.
  const brought = () => tiles.find((tile) => tile.id.endsWith(`-${place.value.split("/").slice(2).join("/")}`));
  const button = document.getElementById(place.id) ?? (brought() ?? tiles[0])?.querySelector("[id^=not-]");
  button?.focus({ preventScroll: true });
  scrollTo({ top: place.top, behavior: "instant" });
  place = undefined;
});

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
  const tiles = [...document.querySelectorAll(".suggestions .tile")];
  const at = tiles.findIndex((tile) => tile.parentElement.contains(document.activeElement));
  const press = (button) => {
    button?.focus({ preventScroll: true });
    button?.click();
  };
  const own = (kind) => press(tiles[at]?.parentElement.querySelector(`[id^="${kind}-"]`));
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
      else press(document.querySelector("[id^=search-]"));
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
});

// A suggested article, or one of the catalogue, can be dragged to any place of the outfit.
let dragged;
addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".suggestions .tile, .picker ~ .tiles .tile");
});
addEventListener("dragend", () => (dragged = undefined));
addEventListener("dragover", (event) => {
  if (dragged && event.target.closest?.(".board .slot")) event.preventDefault();
});
addEventListener("drop", (event) => {
  const place = event.target.closest?.(".board .slot");
  if (!dragged || !place) return;
  event.preventDefault();
  location.assign(moved(new URL(dragged.href), [...place.parentElement.children].indexOf(place)));
});

// The address that uses an article, changed so that the article goes to another place.
function moved(use, to) {
  const now = new URL(location).searchParams;
  const [before, slots] = [now.getAll("slot"), use.searchParams.getAll("slot")];
  const own = slots.findIndex((article, place) => article !== before[place]);
  if (own < 0 || own === to) return use;
  [slots[own], slots[to]] = [before[own], slots[own]];
  const isOf = (place) => (word) => word.startsWith(`${place}:`);
  const others = (words) => words.filter((word) => !isOf(to)(word));
  const from = others(use.searchParams.getAll("from"));
  const lists = {
    slot: slots,
    type: others(now.getAll("type")),
    from: from.map((word) => (isOf(own)(word) ? word.replace(/^\d+/, to) : word)),
  };
  for (const [name, words] of Object.entries(lists)) {
    use.searchParams.delete(name);
    for (const word of words) use.searchParams.append(name, word);
  }
  return use;
}
