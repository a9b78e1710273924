// <atelier-looks article="a-1" publishable-key="atlp_…">: looks with an article, similar articles, or what goes with a basket.
// docs/widget.md says how to use it. Whatever the service answers becomes text and attributes, never HTML.
(() => {
  const HERE = document.currentScript ? new URL(document.currentScript.src).origin : "";
  const LABELS = {
    en: {
      looks: "Complete the look", similar: "Similar articles", basket: "Goes with your cart", look: "Look {n}", total: "Whole look: {price}", size: "Size", choose: "Choose a size",
      soldOut: "{size}, sold out", add: "Add to cart", addOf: "Add to cart: {name}", added: "{name} is in your cart", none: "Nothing fits right now",
    },
    de: {
      looks: "Dazu passt", similar: "Ähnliche Artikel", basket: "Passt zum Warenkorb", look: "Look {n}", total: "Ganzer Look: {price}", size: "Größe", choose: "Größe wählen",
      soldOut: "{size}, ausverkauft", add: "In den Warenkorb", addOf: "In den Warenkorb: {name}", added: "{name} ist im Warenkorb",
      none: "Gerade passt nichts",
    },
    fr: {
      looks: "Compléter le look", similar: "Articles similaires", basket: "Pour compléter votre panier", look: "Look {n}", total: "Look complet : {price}", size: "Taille",
      choose: "Choisir une taille", soldOut: "{size}, épuisé", add: "Ajouter au panier", addOf: "Ajouter au panier : {name}",
      added: "{name} est dans votre panier", none: "Rien ne convient pour le moment",
    },
    it: {
      looks: "Completa il look", similar: "Articoli simili", basket: "Completa il carrello", look: "Look {n}", total: "Look completo: {price}", size: "Taglia",
      choose: "Scegli una taglia", soldOut: "{size}, esaurito", add: "Aggiungi al carrello", addOf: "Aggiungi al carrello: {name}",
      added: "{name} è nel carrello", none: "Al momento non c’è niente di adatto",
    },
    es: {
      looks: "Completa el look", similar: "Artículos similares", basket: "Completa tu carrito", look: "Look {n}", total: "Look completo: {price}", size: "Talla",
      choose: "Elige una talla", soldOut: "{size}, agotado", add: "Añadir al carrito", addOf: "Añadir al carrito: {name}",
      added: "{name} está en tu carrito", none: "Ahora mismo no hay nada adecuado",
    },
  };
  // This page, for its events and for counting them once.
  const PAGE = [...crypto.getRandomValues(new Uint8Array(12))].map(byte => byte.toString(16).padStart(2, "0")).join("");
  // The service's kind of each event. A click only says that the article was seen.
  const KINDS = { viewed: "shown", clicked: "shown", added: "accepted" };

  // No height depends on what is shown, so nothing moves when the answer comes.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { display: block; --width: var(--atelier-card-width, 10rem); font: inherit; color: inherit; }
    :host([hidden]) { display: none; }
    .heading, .title, p, ul { margin: 0; padding: 0; font: inherit; }
    .heading { font-size: 1.375em; line-height: 2rem; height: 2rem; overflow: hidden; }
    .title { line-height: 1.5rem; height: 1.5rem; margin-block-start: .75rem; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    ul { display: flex; gap: 1rem; list-style: none; overflow-x: auto; padding: .25rem; margin-inline: -.25rem; scroll-snap-type: x proximity;
      height: calc(var(--width) * 1.25 + 14rem); box-sizing: border-box; }
    li { flex: none; width: var(--width); display: grid; grid-template-rows: auto 1.25rem auto; align-content: start; gap: .375rem; scroll-snap-align: start; }
    .link { display: grid; grid-template-rows: auto 1.25rem 2.5rem; gap: .375rem; color: inherit; text-decoration: none; }
    a:hover .name { text-decoration: underline; }
    a:focus-visible, button:focus-visible, select:focus-visible { outline: 3px solid; outline-offset: 2px; }
    .picture { height: calc(var(--width) * 1.25); background: #8881; overflow: hidden; }
    img { display: block; width: 100%; height: 100%; object-fit: cover; }
    .brand { font-size: .875em; line-height: 1.25rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .name { line-height: 1.25rem; overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow-wrap: anywhere; }
    .price { line-height: 1.25rem; font-weight: 600; }
    .buy { display: grid; grid-template-rows: 2.75rem 2.75rem; gap: .375rem; }
    select, button { font: inherit; width: 100%; border: 1px solid; border-radius: .25rem; background: transparent; color: inherit; }
    button { grid-row: 2; cursor: pointer; }
    select[aria-invalid=true] { outline: 2px solid #b00020; }
    .total, .status { line-height: 1.5rem; height: 1.5rem; overflow: hidden; }
  `);

  function make(tag, part, text, attributes = {}) {
    const node = document.createElement(tag);
    if (part) { node.part = part; node.className = part; }
    if (text) node.textContent = text;
    for (const [name, value] of Object.entries(attributes)) if (value != null) node.setAttribute(name, value);
    return node;
  }

  // Of texts that the shop's feed has; another scheme could be a script.
  function webAddress(text) {
    try {
      const url = new URL(text, document.baseURI);
      return typeof text === "string" && /^https?:$/.test(url.protocol) ? url.href : null;
    } catch { return null; }
  }

  const first = value => (Array.isArray(value) ? value[0] : value);
  const words = (template, values) => String(template).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

  class AtelierLooks extends HTMLElement {
    static observedAttributes = ["article", "articles", "customer", "publishable-key", "heading-level", "src", "mode", "n", "store", "currency", "labels"];
    #root = this.attachShadow({ mode: "open" });
    #wait; #abort; #observer; #status; #waiting = new Map(); #sent = new Set();

    constructor() {
      super();
      this.#root.adoptedStyleSheets = [sheet];
    }

    connectedCallback() { this.#soon(); addEventListener("pagehide", this.#flush); }
    attributeChangedCallback() { if (this.isConnected) this.#soon(); }
    disconnectedCallback() {
      clearTimeout(this.#wait);
      this.#wait = 0;
      this.#abort?.abort();
      this.#observer?.disconnect();
      removeEventListener("pagehide", this.#flush);
      this.#flush();
    }

    // The articles of a basket, the last in it first. An outfit has eight articles at most.
    get #basket() {
      const ids = this.getAttribute("articles")?.split(",").map(id => id.trim()).filter(Boolean);
      return ids && [...new Set(ids.reverse())];
    }
    get #what() { return this.hasAttribute("articles") ? "basket" : this.getAttribute("mode") === "similar" ? "similar" : "looks"; }
    get #rows() { return this.#what === "looks" ? this.#n : 1; }
    get #level() { return Math.min(Math.max(parseInt(this.getAttribute("heading-level"), 10) || 2, 1), 5); }
    get #n() {
      const [usual, most] = { looks: [1, 16], similar: [8, 16], basket: [4, 8] }[this.#what];
      return Math.min(Math.max(parseInt(this.getAttribute("n"), 10) || usual, 1), most);
    }
    get #src() { return (this.getAttribute("src") || HERE).replace(/\/+$/, ""); }
    get #language() { return this.closest("[lang]")?.lang; }
    get #labels() {
      const labels = LABELS[this.#language?.split("-")[0].toLowerCase()] ?? LABELS.en;
      try { return { ...labels, ...JSON.parse(this.getAttribute("labels") || "{}") }; } catch { return labels; }
    }

    // Several attributes are often set one after another.
    #soon() {
      if (!this.#wait) this.#frame();
      clearTimeout(this.#wait);
      this.#wait = setTimeout(() => { this.#wait = 0; this.#load(); });
    }

    // The page as it is while nothing is known: as high as it will be.
    #frame() {
      const labels = this.#labels;
      const heading = make(`h${this.#level}`, "heading", "", { id: "heading" });
      const slot = make("slot", "", labels[this.#what], { name: "heading" });
      heading.append(slot);
      this.#status = make("p", "status", "", { role: "status" });
      const section = make("section", "section", "", { "aria-labelledby": "heading", "aria-busy": "true" });
      section.append(heading);
      for (let row = 0; row < this.#rows; row++) {
        const look = make("div", "look");
        look.append(...(this.#what === "looks" ? [make(`h${this.#level + 1}`, "title"), make("ul", "cards"), make("p", "total")] : [make("ul", "cards")]));
        look.style.visibility = "hidden";
        section.append(look);
      }
      section.append(this.#status);
      this.#root.replaceChildren(section);
      return section;
    }

    async #load() {
      this.#abort?.abort();
      this.#abort = new AbortController();
      const { signal } = this.#abort, what = this.#what, here = this.#basket ?? [this.getAttribute("article")].filter(Boolean);
      if (!here.length) return;
      // Only the service's own pages ask without a key: those of the demo.
      if (!this.#key && new URL(this.#src, document.baseURI).origin !== location.origin) return this.#fail(here, "the attribute publishable-key is missing");
      try {
        let answer = await this.#ask(what, here, this.getAttribute("customer"), signal);
        // A page that is open for hours shows what everybody sees.
        if (answer.status === 422 && this.getAttribute("customer")) answer = await this.#ask(what, here, null, signal);
        const body = await answer.json();
        if (!answer.ok) throw new Error(body.detail || answer.status);
        this.#show(body, here);
      } catch (error) {
        if (!signal.aborted) this.#fail(here, String(error.message));
      }
    }

    #ask(what, here, customer, signal) {
      const store = this.getAttribute("store");
      if (what === "basket") {
        const outfit = here.slice(0, 7), blanks = Array(Math.min(this.#n, 8 - outfit.length)).fill(null);
        const body = { outfit: [...outfit, ...blanks], k: 1, sets: 1, one_per_type: true, skip_unknown: true };
        if (customer) body.customer = customer;
        if (store) body.filters = { store };
        return fetch(`${this.#src}/v1/complete`, {
          method: "POST", headers: { ...this.#headers(), "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
        });
      }
      const query = new URLSearchParams({ n: this.#n });
      if (customer) query.set("customer", customer);
      if (store) query.set("store", store);
      return fetch(`${this.#src}/v1/articles/${encodeURIComponent(here[0])}/${what}?${query}`, { headers: this.#headers(), signal });
    }

    #fail(here, message) {
      console.error(`atelier-looks: ${message}`);
      this.#show({}, here);
      this.#tell("atelier-error", { message });
    }

    get #key() { return this.getAttribute("publishable-key"); }
    #headers() { return this.#key ? { Authorization: `Bearer ${this.#key}` } : {}; }

    #show(body, here) {
      const labels = this.#labels, inRows = this.#what === "looks";
      const looks = inRows ? body.looks || [] : [{ articles: body.items || body.sets?.[0]?.articles || [], completion_id: body.completion_id }];
      const section = this.#frame(), rows = section.querySelectorAll(".look");
      this.#observer?.disconnect();
      this.#observer = new IntersectionObserver(entries => {
        for (const entry of entries) if (entry.isIntersecting) { this.#observer.unobserve(entry.target); entry.target.seen(); }
      }, { threshold: 0.5 });
      let count = 0;
      looks.slice(0, rows.length).forEach((look, at) => {
        const title = look.title || words(labels.look, { n: at + 1 });
        const cards = make("ul", "cards", "", { role: "list", "aria-label": inRows ? title : null });
        for (const piece of look.articles || []) {
          if (here.includes(piece.article.id) || piece.article.variants?.some?.(variant => here.includes(variant.id))) continue;
          cards.append(this.#card(look, piece));
          count++;
        }
        if (!cards.children.length) return;
        rows[at].querySelector(".cards").replaceWith(cards);
        rows[at].style.visibility = "";
        if (!inRows) return;
        rows[at].querySelector(".title").textContent = title;
        const currency = first(look.articles[0]?.article.currency);
        if (look.total != null) rows[at].querySelector(".total").textContent = words(labels.total, { price: this.#price(look.total, currency) });
      });
      section.removeAttribute("aria-busy");
      this.toggleAttribute("empty", !count);
      if (!count) this.#status.append(make("slot", "", labels.none, { name: "empty" }));
      this.#tell("atelier-load", { count });
    }

    #card(look, piece) {
      const { article } = piece, labels = this.#labels;
      const name = String(first(article.name) ?? article.type.replaceAll("-", " ")), href = webAddress(first(article.url));
      const card = make("li", "card");
      const link = make(href ? "a" : "span", "link", "", { href });
      const picture = make("span", "picture"), drawing = this.#drawing(article);
      const image = make("img", "image", "", { alt: "", loading: "lazy", decoding: "async", src: webAddress(first(article.image)) || drawing });
      image.onerror = () => { image.onerror = null; image.src = drawing; };
      picture.append(image);
      link.append(picture, make("span", "brand", String(first(article.brand) ?? "")), make("span", "name", name));
      link.addEventListener("click", () => {
        if (!href) return;
        this.#report("clicked", look, piece);
        this.#flush();
        this.#tell("atelier-click", { article: article.id, url: href });
      });
      const price = make("span", "price");
      const show = chosen => {
        const amount = chosen?.price ?? first(article.price);
        price.textContent = amount == null ? "" : this.#price(amount, first(article.currency));
      };
      const buy = make("div", "buy"), variants = Array.isArray(article.variants) ? article.variants : [];
      const own = variants.find(variant => variant.id === piece.variant?.id && variant.in_stock);
      let choice;
      if (variants.length > 1) {
        choice = make("select", "size", "", { "aria-label": `${labels.size}: ${name}` });
        if (!own) choice.append(make("option", "", labels.choose, { value: "" }));
        for (const variant of variants) {
          const size = variant.size ?? (Object.values(variant.options || {}).join(" ") || variant.id);
          const option = make("option", "", variant.in_stock ? size : words(labels.soldOut, { size }), { value: variant.id });
          option.disabled = !variant.in_stock;
          option.selected = variant === own;
          choice.append(option);
        }
        choice.addEventListener("change", () => { choice.removeAttribute("aria-invalid"); show(variants.find(one => one.id === choice.value)); });
        buy.append(choice);
      }
      show(own ?? (variants.length === 1 ? variants[0] : null));
      const button = make("button", "add", labels.add, { type: "button", "aria-label": words(labels.addOf, { name }) });
      button.addEventListener("click", () => {
        const variant = choice ? choice.value : variants[0]?.id ?? article.id;
        if (!variant) {
          choice.setAttribute("aria-invalid", "true");
          choice.focus();
          this.#status.textContent = labels.choose;
          return;
        }
        const detail = { article: article.id, variant, look: look.look ?? null, completion: look.completion_id ?? null };
        if (!this.#tell("atelier-add", detail)) return;
        this.#status.textContent = words(labels.added, { name });
        this.#report("added", look, piece);
        this.#flush();
      });
      buy.append(button);
      card.append(link, price, buy);
      card.seen = () => this.#report("viewed", look, piece);
      this.#observer.observe(card);
      return card;
    }


    // Pages read its address; the demo's own page, which asks without a key, reads the attributes.
    #drawing(article) {
      const named = ["colour", "pattern", "material", "gender"].filter(name => article[name]).map(name => [name, String(first(article[name]))]);
      return this.#src + (article.drawing ?? `/pictures/${encodeURIComponent(article.type)}.svg?${new URLSearchParams(named)}`);
    }

    #price(amount, currency) {
      const style = { style: "currency", currency: currency || this.getAttribute("currency") || "EUR" };
      try { return new Intl.NumberFormat(this.#language || undefined, style).format(amount); } catch { return String(amount); }
    }

    // False if the page prevented it.
    #tell(name, detail) {
      return this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }));
    }

    // Reports what happened, each once.
    #report(what, look, piece) {
      if (!look.completion_id) return;
      const event = { completion_id: look.completion_id, kind: KINDS[what], slot: piece.slot ?? 0, article: piece.article.id, visitor: PAGE };
      const id = `${PAGE}-${event.kind}-${event.slot}-${event.article}-${event.completion_id.slice(-32)}`;
      if (this.#sent.has(id)) return;
      this.#sent.add(id);
      this.#waiting.set(id, { id, ...event, ...(this.getAttribute("customer") ? { customer: this.getAttribute("customer") } : {}) });
      if (this.#waiting.size === 1) setTimeout(() => this.#flush(), 1000);
    }

    #flush = () => {
      const events = [...this.#waiting.values()];
      this.#waiting.clear();
      this.#send(events);
    };

    // A page that ends still sends it. That a report is lost is no fault for the visitor to see.
    async #send(events) {
      if (!events.length) return;
      try {
        const answer = await fetch(`${this.#src}/v1/feedback`, {
          method: "POST", keepalive: true, headers: { ...this.#headers(), "Content-Type": "application/json" }, body: JSON.stringify(events),
        });
        const items = await answer.json();
        // The signature has expired: it counts as anybody's.
        const refused = (event, at) => event.customer && items[at]?.errors?.some(error => error.pointer === "/customer");
        this.#send(events.filter(refused).map(({ customer, ...event }) => event));
      } catch { /* lost */ }
    }
  }

  if (!customElements.get("atelier-looks")) customElements.define("atelier-looks", AtelierLooks);
})();
