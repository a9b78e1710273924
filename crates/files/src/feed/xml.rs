//! The items of a Google Merchant feed in XML: RSS 2.0 or Atom, with Google's namespace.
//!
//! A document type declaration is refused, so there are no entities but those of XML itself. An item has at most
//! [`LONGEST`] bytes, and elements are nested at most [`DEEPEST`] deep.

use std::{
    io::{self, BufRead, Read},
    mem,
};

use quick_xml::{
    NsReader,
    escape::unescape,
    events::{BytesRef, BytesStart, Event},
    name::ResolveResult,
};

use crate::{RowError, Unit, input::Input, row::LONGEST};

/// Google's namespace, which shops write with either scheme.
const GOOGLE: &str = "base.google.com/ns/1.0";
const DEEPEST: usize = 16;
/// The most names of elements in a message, and the most bytes of one.
const MOST_NAMES: usize = 8;
const LONGEST_NAME: usize = 50;

/// Splits a feed into items.
pub(super) struct Items {
    reader: NsReader<Limited>,
    buffer: Vec<u8>,
    /// How many elements are open.
    depth: usize,
    item: Option<Open>,
    /// How many items there were, and the line of the last one.
    count: u64,
    last_line: u64,
    /// Names of elements outside of items, for messages.
    others: Vec<String>,
}

/// An item, and where it begins.
pub(super) struct Item {
    pub(super) line: u64,
    /// Its number in the file, if the item before it begins on the same line.
    pub(super) number: Option<u64>,
    /// Names and texts.
    pub(super) fields: Vec<(String, String)>,
    /// Why they cannot all be read.
    pub(super) wrong: Option<String>,
}

/// The item that is read.
struct Open {
    item: Item,
    depth: usize,
    field: Option<(String, String)>,
    /// Names of its elements, until one is Google's.
    others: Option<Vec<String>>,
}

impl Items {
    pub(super) fn new(input: Input) -> Self {
        let reader = NsReader::from_reader(Limited { input, left: LONGEST, line: 1 });
        Self { reader, buffer: Vec::new(), depth: 0, item: None, count: 0, last_line: 0, others: Vec::new() }
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        self.reader.get_ref().input.progress()
    }

    /// The next item; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Item>, RowError> {
        let mut buffer = mem::take(&mut self.buffer);
        let next = loop {
            if self.item.is_none() {
                self.reader.get_mut().left = LONGEST;
            }
            let line = self.reader.get_ref().line;
            buffer.clear();
            let taken = match self.reader.read_resolved_event_into(&mut buffer) {
                Ok((namespace, event)) => {
                    let is_google = is_google(&namespace);
                    self.take(event, is_google, line)
                }
                Err(error) => Err(format!("not readable as XML: {error}")),
            };
            match taken {
                Ok(Step::Inside) => {}
                Ok(Step::Item(item)) => break Ok(Some(item)),
                Ok(Step::End) => break Ok(None),
                Err(reason) => break Err(RowError::fatal(Unit::Line, line, reason)),
            }
        };
        self.buffer = buffer;
        next
    }

    /// Takes what comes next, in Google's namespace or not.
    fn take(&mut self, event: Event<'_>, is_google: bool, line: u64) -> Result<Step, String> {
        match event {
            Event::Start(start) => self.open(&start, is_google, line)?,
            Event::Empty(start) => self.note_empty(&start, is_google),
            Event::End(_) => return Ok(self.close().map_or(Step::Inside, Step::Item)),
            Event::Text(text) => push(&mut self.item, self.depth, &text.xml10_content()),
            Event::CData(text) => push(&mut self.item, self.depth, &text.xml10_content()),
            Event::GeneralRef(reference) => self.refer(&reference)?,
            Event::DocType(_) => {
                return Err("the file has a document type declaration (<!DOCTYPE …>); remove it".into());
            }
            Event::Decl(declared) => {
                if let Some(Ok(encoding)) = declared.encoding()
                    && !encoding.eq_ignore_ascii_case("utf-8")
                {
                    return Err(format!("the encoding must be UTF-8, found {encoding}"));
                }
            }
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof if self.depth > 0 => return Err("the file ends before its last element".into()),
            Event::Eof if self.count == 0 => {
                let found = if self.others.is_empty() { "nothing".into() } else { self.others.join(", ") };
                return Err(format!(
                    "a Merchant feed has an <item> or <entry> for each variant, found {found}"
                ));
            }
            Event::Eof => return Ok(Step::End),
        }
        Ok(Step::Inside)
    }

    /// Takes the beginning of an element: of an item, of one of its fields, or of something else.
    fn open(&mut self, start: &BytesStart<'_>, is_google: bool, line: u64) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("elements are nested more than {DEEPEST} deep"));
        }
        let name = start.local_name().into_inner();
        if self.depth == 1 && !matches!(name, "rss" | "feed") {
            return Err(format!("a Merchant feed begins with <rss> or <feed>, found <{name}>"));
        }
        match &mut self.item {
            None if is_item(start) => {
                self.count += 1;
                let number = (line == self.last_line).then_some(self.count);
                self.last_line = line;
                let item = Item { line, number, fields: Vec::new(), wrong: None };
                self.item = Some(Open { item, depth: self.depth, field: None, others: Some(Vec::new()) });
            }
            Some(open) if self.depth == open.depth + 1 => {
                open.note(start, is_google);
                open.field = field_name(start, is_google).map(|name| (name, String::new()));
                open.add_link(start);
            }
            None => note_name(&mut self.others, start),
            Some(_) => {}
        }
        Ok(())
    }

    fn note_empty(&mut self, start: &BytesStart<'_>, is_google: bool) {
        match &mut self.item {
            None => {
                self.count += u64::from(is_item(start));
                note_name(&mut self.others, start);
            }
            Some(open) if self.depth == open.depth => {
                open.note(start, is_google);
                open.add_link(start);
            }
            Some(_) => {}
        }
    }

    /// Takes the end of an element. Gives the item that it completes.
    fn close(&mut self) -> Option<Item> {
        self.depth = self.depth.saturating_sub(1);
        let open = self.item.as_mut()?;
        if self.depth < open.depth {
            return self.item.take().map(Open::finish);
        }
        if self.depth == open.depth {
            open.close_field();
        }
        None
    }

    /// Takes a reference to a character. Another entity spoils the item that it is in.
    fn refer(&mut self, reference: &BytesRef<'_>) -> Result<(), String> {
        if let Some(c) = resolve(reference) {
            push(&mut self.item, self.depth, c.encode_utf8(&mut [0; 4]));
            return Ok(());
        }
        let reason = format!("the entity &{}; is not one of XML's own", &**reference);
        let Some(open) = &mut self.item else { return Err(reason) };
        open.item.wrong = Some(reason);
        open.field = None;
        Ok(())
    }
}

/// Where a feed is after one more event.
enum Step {
    Inside,
    Item(Item),
    End,
}

/// Keeps the first few names of elements.
fn note_name(names: &mut Vec<String>, start: &BytesStart<'_>) {
    let name = format!("<{}>", start.name().into_inner());
    if names.len() < MOST_NAMES && name.len() < LONGEST_NAME && !names.contains(&name) {
        names.push(name);
    }
}

/// Adds text to the field that is open, if there is one.
fn push(item: &mut Option<Open>, depth: usize, text: &str) {
    if let Some(open) = item
        && depth == open.depth + 1
        && let Some((_, field)) = &mut open.field
    {
        field.push_str(text);
    }
}

impl Open {
    fn finish(mut self) -> Item {
        if let (Some(others), None) = (self.others, &self.item.wrong) {
            let found = if others.is_empty() { "none".into() } else { others.join(", ") };
            self.item.wrong = Some(format!(
                "expected elements of Google's namespace, as in <g:price> with xmlns:g=\"http://{GOOGLE}\" in the \
                 first element, found {found}"
            ));
        }
        self.item
    }

    fn note(&mut self, start: &BytesStart<'_>, is_google: bool) {
        if is_google {
            self.others = None;
        } else if let Some(others) = &mut self.others {
            note_name(others, start);
        }
    }

    fn close_field(&mut self) {
        if let Some((name, text)) = self.field.take() {
            self.item.fields.push((name, text.trim().to_owned()));
        }
    }

    /// Atom has the address of a page in an attribute.
    fn add_link(&mut self, start: &BytesStart<'_>) {
        if let Ok(Some(href)) = start.try_get_attribute("href")
            && let Ok(address) = unescape(&href.value)
            && start.local_name().into_inner() == "link"
        {
            self.item.fields.push(("feed link".to_owned(), address.into_owned()));
        }
    }
}

/// Some feeds do not declare the usual prefix.
fn is_google(namespace: &ResolveResult<'_>) -> bool {
    match namespace {
        ResolveResult::Bound(bound) => {
            let name = bound.into_inner();
            let name = name.strip_prefix("http://").or_else(|| name.strip_prefix("https://"));
            name.is_some_and(|name| name.trim_end_matches('/') == GOOGLE)
        }
        ResolveResult::Unknown(prefix) => prefix == "g",
        ResolveResult::Unbound => false,
    }
}

/// In whatever namespace: some feeds have Google's as the default.
fn is_item(start: &BytesStart<'_>) -> bool {
    matches!(start.local_name().into_inner(), "item" | "entry")
}

/// The attribute that an element holds. Titles and links may also be RSS's or Atom's own; Google's are preferred.
fn field_name(start: &BytesStart<'_>, is_google: bool) -> Option<String> {
    let name = start.local_name().into_inner();
    if is_google {
        return Some(name.to_owned());
    }
    matches!(name, "id" | "title" | "link").then(|| format!("feed {name}"))
}

/// The character of a reference, if it is one of XML's own.
fn resolve(reference: &BytesRef<'_>) -> Option<char> {
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

/// Counts lines, and ends at an item that is too long.
struct Limited {
    input: Input,
    left: usize,
    line: u64,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Limited {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left = self.left;
        let filled = self.input.fill_buf()?;
        if left == 0 && !filled.is_empty() {
            return Err(io::Error::other(format!("an item is longer than {} MiB", LONGEST >> 20)));
        }
        Ok(&filled[..filled.len().min(left)])
    }

    fn consume(&mut self, length: usize) {
        if length > 0
            && let Ok(filled) = self.input.fill_buf()
        {
            self.line += filled[..length].iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
            self.input.consume(length);
            self.left -= length;
        }
    }
}
