// Tells the style sheet that scripts run.
document.documentElement.classList.add("htmx");

// A photo that cannot be loaded gives way to the article's drawing.
function draw(image) {
  const { drawing } = image.dataset ?? {};
  if (drawing && image.getAttribute("src") !== drawing) image.src = drawing;
}
addEventListener("error", (event) => draw(event.target), true);
for (const image of document.images) if (image.complete && image.naturalWidth === 0) draw(image);

// A click that reached nobody says so.
let notice;
addEventListener("htmx:error", () => {
  notice ??= Object.assign(document.createElement("p"), { className: "notice toast" });
  notice.setAttribute("role", "alert");
  notice.textContent = "No connection to Atelier. Nothing was changed. Check the network, then click again.";
  document.body.append(notice);
});

// The buttons of a form that stays on its page keep the page where it is, and the focus where it was.
let place;
addEventListener("htmx:before:request", () => {
  const { id, form } = document.activeElement ?? {};
  place = form?.id === "verdict" ? { id, top: scrollY } : undefined;
});
addEventListener("htmx:after:swap", () => notice?.remove());
addEventListener("htmx:finally:request", () => {
  if (!place) return;
  document.getElementById(place.id)?.focus({ preventScroll: true });
  scrollTo({ top: place.top, behavior: "instant" });
  place = undefined;
});
