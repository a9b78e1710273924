//! What a page says, by its HTML and by the text that a reader sees.

/// Asks a page's HTML, or other text, for its parts.
pub trait Html {
    /// It has each of these parts.
    fn has<S: AsRef<str>>(&self, parts: impl IntoIterator<Item = S>) -> &Self;

    /// It has none of these parts.
    fn lacks<S: AsRef<str>>(&self, parts: impl IntoIterator<Item = S>) -> &Self;

    /// What follows the mark.
    fn after(&self, mark: &str) -> &str;

    /// What is between the mark and the end, as a browser reads it, each time.
    fn all_between(&self, mark: &str, end: &str) -> Vec<String>;

    /// The same, for the first time.
    fn between(&self, mark: &str, end: &str) -> String;

    /// The address of the first link that ends in this mark.
    fn link_to(&self, mark: &str) -> String;
}

impl Html for str {
    #[track_caller]
    fn has<S: AsRef<str>>(&self, parts: impl IntoIterator<Item = S>) -> &Self {
        for part in parts {
            assert!(self.contains(part.as_ref()), "{} is not in {self}", part.as_ref());
        }
        self
    }

    #[track_caller]
    fn lacks<S: AsRef<str>>(&self, parts: impl IntoIterator<Item = S>) -> &Self {
        for part in parts {
            assert!(!self.contains(part.as_ref()), "{} is in {self}", part.as_ref());
        }
        self
    }

    #[track_caller]
    fn after(&self, mark: &str) -> &str {
        self.split_once(mark).unwrap_or_else(|| panic!("{mark} is not in {self}")).1
    }

    fn all_between(&self, mark: &str, end: &str) -> Vec<String> {
        self.split(mark).skip(1).map(|rest| decoded(rest.split(end).next().unwrap())).collect()
    }

    #[track_caller]
    fn between(&self, mark: &str, end: &str) -> String {
        decoded(self.after(mark).split(end).next().unwrap())
    }

    #[track_caller]
    fn link_to(&self, mark: &str) -> String {
        let (before, _) = self.split_once(mark).unwrap_or_else(|| panic!("{mark} is not in {self}"));
        decoded(before.rsplit("href=\"").next().unwrap().split('"').next().unwrap())
    }
}

fn decoded(text: &str) -> String {
    let entities =
        [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&"), ("&amp;", "&")];
    entities.into_iter().fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}

/// Compares what a reader sees in `<main>` with `tests/it/snapshots/NAME.snap`. Numbers of outfits, times and addresses
/// are redacted. Ask it of articles and customers of the test's own only, so that no model decides what is there.
#[track_caller]
pub fn assert_page(name: &str, html: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, instead) in [
        (r"https?://[^\s\]]+", "[address]"),
        (r"\b\d{1,2} [A-Z][a-z]+ \d{4}\b|\b\d{4}-\d{2}-\d{2}\b", "[day]"),
        (r"\b\d{2}:\d{2}(:\d{2})?\b", "[time]"),
        (r"(?i)\boutfit \d+", "outfit [number]"),
    ] {
        settings.add_filter(pattern, instead);
    }
    settings.bind(|| insta::assert_snapshot!(name, visible(html)));
}

/// One line for each block. A field is shown in brackets, with its value.
fn visible(html: &str) -> String {
    let main = html.after("<main").after(">").split("</main>").next().unwrap();
    let (mut text, mut rest) = (String::new(), main);
    while let Some((before, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        text += &before.replace('\n', " ");
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let value =
            attributes.split_once("value=\"").map_or("", |(_, value)| value.split('"').next().unwrap());
        let is_hidden = ["svg", "script", "style", "template", "nav"].contains(&name)
            || name == "option" && !attributes.contains("selected");
        match name {
            _ if is_hidden => {}
            "input" if attributes.contains("type=\"hidden\"") => {}
            "input" if attributes.contains("checked") => text += " [x] ",
            "input" => text.extend([" [", value, "] "]),
            "textarea" | "option" => text += " [",
            "/textarea" | "/option" => text += "] ",
            "a" | "/a" | "b" | "/b" | "i" | "/i" | "span" | "/span" | "strong" | "/strong" | "time"
            | "/time" => {}
            _ => text += "\n",
        }
        let end = format!("</{name}>");
        rest = if is_hidden { after.split_once(&end).map_or("", |(_, rest)| rest) } else { after };
    }
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    decoded(&lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
}
