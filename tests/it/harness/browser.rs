//! Headless Chromium, driven over `WebDriver` by the installed chromedriver.
//!
//! The tests need only eight commands of the protocol; a client crate would bring 26 more crates.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::tools;

/// How long a test waits for something on a page.
const PATIENCE: Duration = Duration::from_secs(15);
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Without these, Chromium contacts its vendor's hosts at every start, or needs a screen and its own sandbox.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
                     --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars";

/// Chromium and its driver are installed.
pub fn chromium() -> Result<(), String> {
    tools::there("chromedriver")
        .and_then(|()| tools::there("chromium"))
        .map_err(|reason| format!("{reason} (apt-get install chromium chromium-driver)"))
}

/// The same, and axe-core, which checks the accessibility of pages.
pub fn chromium_with_axe() -> Result<(), String> {
    chromium().and_then(|()| tools::axe().map(drop))
}

/// The browser's view.
#[derive(Clone, Copy)]
pub struct Eyes {
    pub width: u32,
    pub dark: bool,
    pub scripts: bool,
}

impl Default for Eyes {
    fn default() -> Self {
        Self { width: 1280, dark: false, scripts: true }
    }
}

/// A window with one page in it. It closes when it is dropped.
pub struct Window {
    driver: Child,
    /// The session's address.
    session: String,
    /// Where paths lead.
    pub origin: String,
    http: Client,
    downloads: PathBuf,
    clicks: AtomicUsize,
    _profile: TempDir,
}

impl Window {
    pub async fn open(eyes: Eyes) -> Self {
        let profile = TempDir::new().unwrap();
        let downloads = profile.path().join("downloads");
        let (driver, port) = tokio::task::spawn_blocking(start_driver).await.unwrap();
        let mut arguments: Vec<String> = FLAGS.split_whitespace().map(str::to_owned).collect();
        arguments.push(format!("--user-data-dir={}", profile.path().join("profile").display()));
        arguments.push(format!("--window-size={},900", eyes.width));
        let preferences = json!({
            "profile.managed_default_content_settings.javascript": if eyes.scripts { 1 } else { 2 },
            "download.default_directory": downloads,
        });
        let options = json!({"args": arguments, "prefs": preferences});
        let body = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let http = Client::new();
        let base = format!("http://127.0.0.1:{port}/session");
        let answer: Value = http.post(&base).json(&body).send().await.unwrap().json().await.unwrap();
        let id = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}"));
        let session = format!("{base}/{id}");
        let (origin, clicks) = (String::new(), AtomicUsize::new(0));
        let window = Self { driver, session, origin, http, downloads, clicks, _profile: profile };
        // A window is never narrower than its head; a page can be.
        let size = json!({"width": eyes.width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        window.chromium("Emulation.setDeviceMetricsOverride", &size).await;
        let scheme = if eyes.dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        window.chromium("Emulation.setEmulatedMedia", &media).await;
        window
    }

    /// Opens an address, or a path of the service.
    pub async fn goto(&self, address: impl AsRef<str>) {
        let address = address.as_ref();
        let url = if address.starts_with('/') { format!("{}{address}", self.origin) } else { address.into() };
        self.command("url", &json!({"url": url})).await.unwrap();
    }

    /// The address of the page.
    pub async fn address(&self) -> String {
        self.run("return location.href").await.as_str().unwrap().to_owned()
    }

    /// Waits for the element and clicks it.
    pub async fn click(&self, selector: &str) {
        let element = self.find("css selector", selector).await;
        self.click_on(&element, selector).await;
    }

    /// Clicks the element and waits until the page has these words.
    pub async fn click_until(&self, selector: &str, words: &str) {
        self.click(selector).await;
        self.until_words(words).await;
    }

    /// How many clicks were sent to pages, a double click as two.
    pub fn clicks(&self) -> usize {
        self.clicks.load(Ordering::Relaxed)
    }

    /// Clicks the element twice, as fast as a person does by mistake.
    pub async fn click_twice(&self, selector: &str) {
        let to = self.way_to(selector).await;
        let pause = json!({"type": "pause", "duration": 60});
        let press = ["pointerDown", "pointerUp"].map(button).to_vec();
        self.mouse([vec![to], press.clone(), vec![pause], press].concat()).await;
        self.clicks.fetch_add(2, Ordering::Relaxed);
    }

    async fn mouse(&self, path: Vec<Value>) {
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": path});
        self.command("actions", &json!({"actions": [mouse]})).await.unwrap();
    }

    /// Shows the element, and gives the pointer's way to its middle.
    async fn way_to(&self, selector: &str) -> Value {
        let element = self.find("css selector", selector).await;
        let show = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})";
        let arguments = json!({"script": show, "args": [{ELEMENT: element}]});
        self.command("execute/sync", &arguments).await.unwrap();
        json!({"type": "pointerMove", "duration": 0, "origin": {ELEMENT: element}, "x": 0, "y": 0})
    }

    /// Presses a key, wherever the focus is, once the page's scripts listen.
    pub async fn press(&self, key: &str) {
        self.until_loaded().await;
        for kind in ["keyDown", "keyUp"] {
            let text = if key.chars().count() == 1 && kind == "keyDown" { key } else { "" };
            // The browser's own keys are known by their codes.
            let code = if key == "Escape" { 27 } else { 0 };
            let event = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.chromium("Input.dispatchKeyEvent", &event).await;
        }
    }

    /// Moves the pointer over the element's middle.
    pub async fn point_at(&self, selector: &str) {
        let to = self.way_to(selector).await;
        self.mouse(vec![to]).await;
    }

    /// Clicks the first link or button with these words.
    pub async fn click_words(&self, words: &str) {
        let path = format!(
            "//*[self::a or self::button or self::summary][contains(normalize-space(.), \"{words}\")]"
        );
        let element = self.find("xpath", &path).await;
        self.click_on(&element, words).await;
    }

    /// The same, and waits until the page has other ones.
    pub async fn click_words_until(&self, words: &str, said: &str) {
        self.click_words(words).await;
        self.until_words(said).await;
    }

    /// Drags an element to another one with the mouse.
    pub async fn drag(&self, selector: &str, to: &str) {
        let mut path = Vec::new();
        for (selector, press) in [(selector, Some("pointerDown")), (to, None)] {
            let element = self.find("css selector", selector).await;
            let to = |x: i32| json!({"type": "pointerMove", "duration": 100, "origin": {ELEMENT: element}, "x": x, "y": 0});
            path.push(to(0));
            path.extend(press.map(button));
            // A drag begins with a move.
            path.push(to(5));
        }
        path.push(button("pointerUp"));
        self.mouse(path).await;
    }

    /// Replaces the content of a field.
    pub async fn fill(&self, selector: &str, text: &str) {
        let element = self.find("css selector", selector).await;
        self.command(&format!("element/{element}/clear"), &json!({})).await.unwrap();
        self.command(&format!("element/{element}/value"), &json!({"text": text})).await.unwrap();
    }

    /// Chooses an option of a `select` by its value, with a click.
    pub async fn choose(&self, selector: &str, value: &str) {
        let element = self.find("css selector", &format!("{selector} option[value=\"{value}\"]")).await;
        self.click_on(&element, selector).await;
    }

    /// Waits for the element and returns its text.
    pub async fn text(&self, selector: &str) -> String {
        let element = self.find("css selector", selector).await;
        let text = self.get(&format!("element/{element}/text")).await.unwrap();
        text.as_str().unwrap().to_owned()
    }

    /// What is in a field.
    pub async fn value(&self, selector: &str) -> Value {
        self.run(&format!("return document.querySelector({}).value", json!(selector))).await
    }

    /// How many elements there are.
    pub async fn count(&self, selector: &str) -> Value {
        self.run(&format!("return document.querySelectorAll({}).length", json!(selector))).await
    }

    pub async fn until_count(&self, selector: &str, count: usize) {
        self.until(&format!("document.querySelectorAll({}).length === {count}", json!(selector))).await;
    }

    /// Waits until the element is gone.
    pub async fn until_gone(&self, selector: &str) {
        self.until(&format!("!document.querySelector({})", json!(selector))).await;
    }

    /// Waits until the address has this parameter.
    pub async fn until_parameter(&self, name: &str, value: &str) {
        self.until(&format!("new URL(location).searchParams.get('{name}') === '{value}'")).await;
    }

    /// Waits until scripts run and links lead on.
    pub async fn until_loaded(&self) {
        self.until("document.readyState === 'complete'").await;
    }

    /// The texts of all these elements.
    pub async fn texts(&self, selector: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(SELECTOR)].map(one => one.innerText)";
        let texts = self.run(&script.replace("SELECTOR", &json!(selector).to_string())).await;
        serde_json::from_value(texts).unwrap()
    }

    /// Waits until the page contains these words, in any case.
    pub async fn until_words(&self, words: &str) {
        let words = Value::from(words.to_lowercase());
        self.until(&format!("document.body.innerText.toLowerCase().includes({words})")).await;
    }

    /// Waits until this expression is true of the page.
    pub async fn until(&self, holds: &str) {
        let began = Instant::now();
        // While another page loads, scripts fail.
        let script = json!({"script": format!("return {holds}"), "args": []});
        while self.command("execute/sync", &script).await != Ok(Value::Bool(true)) {
            assert!(began.elapsed() < PATIENCE, "{holds} did not become true; {}", self.page_text().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a downloaded file and returns its text.
    pub async fn download(&self, name: &str) -> String {
        let (file, began) = (self.downloads.join(name), Instant::now());
        while !file.is_file() {
            assert!(began.elapsed() < PATIENCE, "{name} was not downloaded; {}", self.page_text().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::fs::read_to_string(file).unwrap()
    }

    /// Runs a script and returns its result.
    pub async fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []})).await.unwrap()
    }

    /// Runs a script that passes its result to its last argument.
    pub async fn run_later(&self, script: &str) -> Value {
        self.command("execute/async", &json!({"script": script, "args": []})).await.unwrap()
    }

    /// The whole page as WebP.
    pub async fn picture(&self) -> Vec<u8> {
        // Load lazy images now.
        let all = "const done = arguments[0], all = [...document.images]; all.forEach(one => one.loading = 'eager'); \
                   Promise.all(all.map(one => one.decode().catch(() => 0))).then(() => done(0))";
        self.run_later(all).await;
        let height = self.run("return document.documentElement.scrollHeight").await;
        let width = self.run("return document.documentElement.clientWidth").await;
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let whole = json!({"format": "webp", "quality": 70, "captureBeyondViewport": true, "clip": clip});
        let picture = self.chromium("Page.captureScreenshot", &whole).await;
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }

    /// Sends a command of the Chrome `DevTools` protocol.
    pub async fn chromium(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.command("goog/cdp/execute", &body).await.unwrap()
    }

    async fn click_on(&self, element: &str, what: &str) {
        let clicked = self.command(&format!("element/{element}/click"), &json!({})).await;
        if let Err(error) = clicked {
            panic!("{what} cannot be clicked: {error}; {}", self.page_text().await);
        }
        self.clicks.fetch_add(1, Ordering::Relaxed);
    }

    async fn find(&self, by: &str, what: &str) -> String {
        let began = Instant::now();
        loop {
            let found = self.command("element", &json!({"using": by, "value": what})).await;
            if let Ok(found) = found {
                return found[ELEMENT].as_str().unwrap().to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "{what} is not on the page; {}", self.page_text().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// For the message of a failed test.
    async fn page_text(&self) -> String {
        let script = "return location.href + ': ' + document.body.innerText.slice(0, 2000)";
        let shown = self.command("execute/sync", &json!({"script": script, "args": []})).await;
        shown.map_or_else(|error| error, |shown| shown.as_str().unwrap_or_default().to_owned())
    }

    async fn get(&self, path: &str) -> Result<Value, String> {
        let answer = self.http.get(format!("{}/{path}", self.session)).send().await.unwrap();
        value(answer.json().await.unwrap())
    }

    async fn command(&self, path: &str, body: &Value) -> Result<Value, String> {
        let answer = self.http.post(format!("{}/{path}", self.session)).json(body).send().await.unwrap();
        value(answer.json().await.unwrap())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // Ending the session ends Chromium; a driver that is killed leaves it running.
        let (host, path) =
            self.session.trim_start_matches("http://").split_once('/').expect("it is an address");
        if let Ok(mut driver) = TcpStream::connect(host) {
            let _ = driver.set_read_timeout(Some(PATIENCE));
            let _ = write!(driver, "DELETE /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let _ = driver.read(&mut [0; 64]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn button(kind: &str) -> Value {
    json!({"type": kind, "button": 0})
}

fn value(mut answer: Value) -> Result<Value, String> {
    match answer["value"]["error"].as_str() {
        Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
        None => Ok(answer["value"].take()),
    }
}

/// Starts a driver on a free port. One that finds its port taken by another driver gives up; then the next one is
/// tried.
fn start_driver() -> (Child, u16) {
    (0..5).find_map(|_| try_driver()).expect("chromedriver starts")
}

fn try_driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(driver.stdout.take().unwrap());
    let mut ports = said.lines().map_while(Result::ok).filter_map(|line| {
        let (_, port) = line.rsplit_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    let port = ports.next();
    if port.is_none() {
        let _ = driver.wait();
    }
    port.map(|port| (driver, port))
}
