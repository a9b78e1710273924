//! The demo shop of docs/examples: the element on a page of another site.

use std::collections::HashSet;

use atelier::config::Limits;
use axum::{Router, response::Html, routing::get};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    browser::every_page::{save_picture, violations},
    harness::{
        Service, TestDatabase, apply,
        browser::{Eyes, Window},
        each, in_chromium, in_chromium_with_axe, on_sqlite, until,
    },
    people::publishable::publish,
};

const SHOP: &str = include_str!("../../../docs/examples/shop.html");
const SHADOW: &str =
    "const all = [...document.querySelectorAll('atelier-looks')].map(one => one.shadowRoot);";
const READY: &str = "[...document.querySelectorAll('atelier-looks:not([hidden])')].every(one => one.shadowRoot?.querySelector('.add'))";
/// Adds up what moves without anyone's doing.
const WATCH: &str = "<script>window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(one => shift += one.value))\
                     .observe({type: 'layout-shift', buffered: true});</script>";
const LATE: &str = "<script>addEventListener('load', () => setTimeout(() => { const one = document.createElement('script'); \
                    one.src = 'SERVICE/widget.js'; document.head.append(one) }, 500))</script>";

/// A shop on another origin, with a key for its pages.
struct Shop {
    service: Service,
    url: String,
    _served: JoinHandle<()>,
}

impl Shop {
    /// The page of docs/examples; a `late` script comes when the page has long been painted.
    async fn open(db: &TestDatabase, late: bool) -> Self {
        let limits = Limits { address_rate: 1000, ..Limits::default() };
        let service = Service::demo_with(db, limits).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (key, _) = publish(&service, &url).await;
        let page = SHOP.replace("http://127.0.0.1:8080", &service.url).replace("atlp_YOUR_KEY", &key);
        let page = page.replace("<head>", &format!("<head>{WATCH}"));
        let script = format!("<script src=\"{}/widget.js\" async></script>", service.url);
        assert!(page.contains(&script), "{page}");
        let page = if late { page.replace(&script, &LATE.replace("SERVICE", &service.url)) } else { page };
        let routes = Router::new().route("/", get(async move || Html(page)));
        let served = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { service, url, _served: served }
    }

    async fn visit(&self, width: u32) -> Window {
        let window = Window::open(Eyes { width, ..Eyes::default() }).await;
        window.goto(&self.url).await;
        window.until(READY).await;
        window
    }
}

async fn ask(window: &Window, script: &str) -> Value {
    window.run(&format!("{SHADOW} {script}")).await
}

#[apply(in_chromium_with_axe)]
async fn a_product_page_shows_looks_and_fills_the_cart(db: TestDatabase) {
    let shop = Shop::open(&db, false).await;
    let service = &shop.service;
    let variants = json!([{"id": "h-s", "size": "S", "price": 50, "stock": 0}, {"id": "h-m", "size": "M", "price": 55, "stock": 3},
                          {"id": "h-l", "size": "L", "stock": 1}]);
    let hostile =
        "<img src=x onerror=\"document.title='hacked'\"></a><script>document.title='hacked'</script>";
    let coat = json!({"type": "coat", "gender": "women", "name": hostile, "brand": "\u{202e}<b>Linden</b>", "price": 50,
                      "image": "javascript:document.title='hacked'", "url": "javascript:document.title='hacked'", "variants": variants});
    service.put("/articles/h", coat).is(201).await;
    let look = json!({"title": hostile, "articles": ["a-00134", "h", "a-00568"], "state": "published"});
    service.put("/looks/hostile", look).is(201).await;
    for width in [390, 1440] {
        let window = shop.visit(width).await;
        let found = ask(&window, "return [...all[0].querySelectorAll('.card')].map(one => [one.querySelector('.name').textContent, \
            one.querySelector('a')?.href ?? null, one.querySelector('img').src.startsWith('http')])").await;
        assert_eq!(found[0], json!([hostile, null, true]), "what a feed says is text");
        assert_eq!(found.as_array().unwrap().len(), 2, "without the page's own article");
        assert_eq!(ask(&window, "return all[0].querySelector('h3').textContent").await, hostile);
        assert_eq!(ask(&window, "return all[1].querySelectorAll('.card').length").await, 8);
        let mut wrong = violations(&window).await;
        // A sold-out size cannot be chosen, and no size is chosen for the visitor.
        let sizes =
            "return [...all[0].querySelectorAll('option')].map(one => [one.textContent, one.disabled])";
        let expected = json!([["Choose a size", false], ["S, sold out", true], ["M", false], ["L", false]]);
        assert_eq!(ask(&window, sizes).await, expected);
        ask(&window, "all[0].querySelector('.add').click()").await;
        let told = ask(
            &window,
            "return [all[0].querySelector('[role=status]').textContent, all[0].activeElement.className, \
            all[0].activeElement.getAttribute('aria-invalid'), document.querySelector('#cart').textContent]",
        )
        .await;
        assert_eq!(told, json!(["Choose a size", "size", "true", "empty"]));
        // With the keyboard: the size, then the button after it.
        window.press("ArrowDown").await;
        let chosen =
            format!("(() => {{ {SHADOW} return all[0].querySelector('select').value === 'h-m' }})()");
        window.until(&chosen).await;
        assert_eq!(ask(&window, "return all[0].querySelector('.price').textContent").await, "€55.00");
        ask(&window, "all[0].querySelector('.add').focus()").await;
        ask(&window, "all[0].activeElement.click()").await;
        window.until("document.querySelector('#cart').textContent === 'h-m'").await;
        let status = ask(&window, "return all[0].querySelector('[role=status]').textContent").await;
        assert_eq!(status, format!("{hostile} is in your cart"));
        // An article without variants is its own.
        ask(&window, "all[0].querySelectorAll('.add')[1].click()").await;
        window.until("document.querySelector('#cart').textContent === 'h-m, a-00568'").await;
        // One of each type that the cart does not have, whatever was added since.
        let basket =
            "const cards = [...document.querySelector('#with-cart').shadowRoot.querySelectorAll('.card')];";
        window.until(&format!("(() => {{ {basket} return cards.length === 4 }})()")).await;
        let heading = "return document.querySelector('#with-cart').shadowRoot.querySelector('h2').innerText";
        assert_eq!(window.run(heading).await, "Goes with your cart");
        ask(&window, &format!("{basket} cards[1].querySelector('.add').click()")).await;
        window.until("document.querySelector('#cart').textContent.split(', ').length === 3").await;
        wrong.extend(violations(&window).await);
        assert_eq!(wrong, Vec::<String>::new(), "{width} px");
        assert_eq!(
            window.run("return document.title").await,
            "Checked blouse · Boutique",
            "nothing of it ran"
        );
        let hanging = window.run("return document.documentElement.scrollWidth - innerWidth").await;
        assert_eq!(hanging, 0, "{width} px");
        let shift = window.run("return shift").await.as_f64().unwrap();
        println!("layout shift at {width} px: {shift}");
        assert!(shift < 0.001, "{width} px: {shift}");
        save_picture(&window, &format!("widget-{width}")).await;
    }
    // What was added comes back as feedback, also that the cards were seen.
    until!({
        let counts = service.json("/feedback/counts").await;
        let of_match = counts["items"].as_array().unwrap().iter().find(|count| count["method"] == "match");
        of_match.is_some_and(|count| count["accepted"] == 2 && count["shown"].as_u64() >= Some(2))
    });
    until!({
        let counts = service.json("/feedback/counts").await;
        let is_look = |count: &Value| count["method"] == "look" && count["accepted"] == 4;
        let mut looks = counts["items"].as_array().unwrap().iter().filter(|count| is_look(count));
        looks.any(|look| look["shown"].as_u64() >= Some(4))
    });
}

#[apply(in_chromium)]
async fn a_late_script_moves_nothing_and_follows_the_page(db: TestDatabase) {
    let shop = Shop::open(&db, true).await;
    let window = Window::open(Eyes { width: 390, ..Eyes::default() }).await;
    window.goto(&shop.url).await;
    window.until(READY).await;
    let heights = "return [...document.querySelectorAll('atelier-looks:not([hidden])')].map(one => one.getBoundingClientRect().height)";
    assert_eq!(window.run(heights).await, json!([540, 480]), "as the page's style reserves");
    // Another article: the element keeps its height, and its place, while it loads.
    window.run("document.querySelectorAll('atelier-looks').forEach(one => one.setAttribute('article', 'a-00568'))").await;
    assert_eq!(window.run(heights).await, json!([540, 480]));
    window.until(READY).await;
    let shift = window.run("return shift").await.as_f64().unwrap();
    println!("layout shift of a late script and of another article: {shift}");
    assert!(shift < 0.001, "{shift}");
    // From right to left, in another language and currency.
    window
        .run(
            "document.documentElement.dir = 'rtl'; document.documentElement.lang = 'de-CH'; \
        const one = document.querySelector('atelier-looks'); one.setAttribute('currency', 'CHF'); \
        one.setAttribute('labels', JSON.stringify({add: 'Kaufen'}))",
        )
        .await;
    let ready = "(() => { const root = document.querySelector('atelier-looks').shadowRoot; const add = root.querySelector('.add'); \
                 return add?.textContent === 'Kaufen' && add.ariaLabel.startsWith('In den Warenkorb: ') && \
                 root.querySelector('.total').textContent.startsWith('Ganzer Look: ') && /CHF/.test(root.querySelector('.price').textContent) })()";
    window.until(ready).await;
    let left = "const cards = document.querySelector('atelier-looks').shadowRoot.querySelectorAll('.card'); \
                return cards[0].getBoundingClientRect().left > cards[1].getBoundingClientRect().left";
    assert_eq!(window.run(left).await, true, "the first card is on the right");
    for (language, words) in [
        ("de", "Ähnliche Artikel"),
        ("fr", "Articles similaires"),
        ("it-CH", "Articoli simili"),
        ("es", "Artículos similares"),
        ("pl", "Similar articles"),
    ] {
        let set = format!(
            "document.documentElement.lang = '{language}'; document.querySelectorAll('atelier-looks')[1].setAttribute('n', 8)"
        );
        window.run(&set).await;
        window.until(&format!("document.querySelectorAll('atelier-looks')[1].shadowRoot.querySelector('h2').textContent === '{words}'")).await;
    }
    window.run("document.querySelector('atelier-looks').setAttribute('heading-level', '4')").await;
    window.until("['H4', 'H5'].every(tag => document.querySelector('atelier-looks').shadowRoot.querySelector(tag))").await;
    // A customer whose signature has expired is anyone: sees cards, and is counted.
    let counted = async || {
        let accepted = each(&shop.service.json("/feedback/counts").await["items"], "accepted");
        serde_json::from_value::<Vec<u64>>(accepted).unwrap().iter().sum::<u64>()
    };
    let before = counted().await;
    window
        .run("window.loads = []; document.addEventListener('atelier-load', event => loads.push(event.detail.count)); \
            document.addEventListener('atelier-error', event => window.failed = event.detail.message); window.failed = ''; \
            document.querySelectorAll('atelier-looks').forEach(one => one.setAttribute('customer', 'c-000010|1000|00'))")
        .await;
    window.until("loads.length === 2 && loads.every(count => count > 0)").await;
    assert_eq!(window.run("return window.failed").await, "");
    // In a look and in the similar articles.
    window.run("document.querySelectorAll('atelier-looks:not([hidden])').forEach(one => one.shadowRoot.querySelector('.add').click())").await;
    until!(counted().await == before + 2);
    // An article that is gone: the page hears of it, and visitors see nothing.
    window.run("document.querySelector('atelier-looks').setAttribute('article', 'gone')").await;
    window.until("window.failed !== ''").await;
    window.until("document.querySelector('atelier-looks').offsetHeight === 0").await;
    window.run("window.failed = ''; document.querySelectorAll('atelier-looks')[1].removeAttribute('publishable-key')").await;
    window.until("window.failed === 'the attribute publishable-key is missing'").await;
}

/// The demo's own page needs no key. Its policy admits the page's own style and script, and no others.
#[apply(in_chromium)]
async fn the_demo_has_a_product_page(db: TestDatabase) {
    let service = Service::untouched_demo(&db).await;
    let window = Window::open(Eyes { width: 1440, ..Eyes::default() }).await;
    window.goto(&format!("{}/demo/shop", service.url)).await;
    window.until(READY).await;
    save_picture(&window, "shop-wide-light").await;
    let drawn = ask(
        &window,
        "return all.flatMap(one => [...one.querySelectorAll('img')].map(one => new URL(one.src).search))",
    );
    let drawn: Vec<String> = serde_json::from_value(drawn.await).unwrap();
    let colours = drawn.iter().map(|query| query.strip_prefix("?colour=").expect(query).split('&').next());
    assert!(colours.collect::<HashSet<_>>().len() > 2, "drawings differ: {drawn:?}");
    ask(&window, "document.querySelector('#buy').click(); all[0].querySelector('.add').click()").await;
    window.until("document.querySelector('#cart').textContent.startsWith('a-00134, ')").await;
    assert_eq!(
        window.run("return getComputedStyle(document.querySelector('.product')).display").await,
        "grid"
    );
    let shop = Service::demo_with(&db, Limits::default()).await;
    shop.get("/demo/shop").is(404).await;
}

#[apply(on_sqlite)]
async fn the_script_is_small_and_cached(db: TestDatabase) {
    let service = Service::start(&db).await;
    let get = |encoding: &str| service.get("/widget.js").header("accept-encoding", encoding);
    let answer = get("gzip").await;
    assert_eq!(answer.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(answer.header("cache-control"), "public, max-age=300");
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_eq!(answer.header("content-encoding"), "gzip");
    let tag = answer.header("etag");
    let size = answer.body.len();
    println!("widget.js has {size} bytes with gzip");
    assert!(size < 12_000, "{size} bytes");
    get("gzip").header("if-none-match", tag).is(304).await;
    let version = &tag[3..15];
    let kept = service.get(format!("/widget.js?v={version}")).await;
    assert_eq!(kept.header("cache-control"), "public, max-age=31536000, immutable");
}
