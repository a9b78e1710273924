//! Writing CSV (RFC 4180).

use std::borrow::Cow;

/// CSV text, built record by record.
#[derive(Debug)]
pub struct Lines {
    text: String,
    for_spreadsheets: bool,
}

impl Lines {
    /// For spreadsheets: lines end in CRLF, and no cell is run as a formula, also where a semicolon or a tab separates
    /// cells.
    pub fn new<C: AsRef<str>>(header: &[C]) -> Self {
        let mut lines = Self { text: String::new(), for_spreadsheets: true };
        lines.push(header);
        lines
    }

    /// For programs: lines end in LF, and a reader gets back every cell as it is given.
    pub fn exact() -> Self {
        Self { text: String::new(), for_spreadsheets: false }
    }

    pub fn push<C: AsRef<str>>(&mut self, cells: &[C]) {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.push_cell(cell.as_ref());
        }
        self.text.push_str(if self.for_spreadsheets { "\r\n" } else { "\n" });
    }

    /// Takes out the text so far, for a writer that keeps no whole file in memory.
    pub fn drain(&mut self) -> std::string::Drain<'_> {
        self.text.drain(..)
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn push_cell(&mut self, cell: &str) {
        let cell = if self.for_spreadsheets { disarm(cell) } else { cell.into() };
        let special: &[char] = if self.for_spreadsheets {
            &[',', '"', '\n', '\r', '\'', ';', '\t']
        } else {
            &[',', '"', '\n', '\r']
        };
        if !cell.contains(special) {
            self.text.push_str(&cell);
            return;
        }
        self.text.push('"');
        self.text.push_str(&cell.replace('"', "\"\""));
        self.text.push('"');
    }
}

/// Ends a cell for a program that expects another separator, and takes no notice of quotes inside a cell.
const ENDS: [char; 4] = [';', '\t', '\n', '\r'];

/// Puts an apostrophe before each part of the cell that such a program would run.
fn disarm(cell: &str) -> Cow<'_, str> {
    if !cell.contains(|c| is_formula_sign(c) || ENDS.contains(&c)) {
        return cell.into();
    }
    let mut safe = String::with_capacity(cell.len() + 1);
    if cell.starts_with(['\t', '\r']) {
        safe.push('\'');
    }
    for part in cell.split_inclusive(ENDS) {
        let text = part.trim_matches(|c: char| c == '"' || c.is_whitespace() || ENDS.contains(&c));
        // A number may begin with a minus; a formula may not.
        if text.starts_with(is_formula_sign) && text.parse::<f64>().is_err() {
            safe.push('\'');
        }
        safe.push_str(part);
    }
    safe.into()
}

/// Also the wide forms, which spreadsheets of East Asia read alike.
fn is_formula_sign(c: char) -> bool {
    matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_formula_and_nothing_breaks_out() {
        let mut lines = Lines::new(&["a", "b"]);
        lines.push(&["plain", "with \"quotes\", and more"]);
        lines.push(&["=1+1", "-0.5"]);
        lines.push(&["-x", "@y\n"]);
        assert_eq!(
            lines.into_text(),
            "a,b\r\nplain,\"with \"\"quotes\"\", and more\"\r\n\"'=1+1\",-0.5\r\n\"'-x\",\"'@y\n\"\r\n"
        );
        let mut lines = Lines::exact();
        lines.push(&["=1+1", "a,b", ";=1"]);
        assert_eq!(lines.into_text(), "=1+1,\"a,b\",;=1\n");
    }

    #[test]
    fn no_separator_of_another_country_starts_a_formula() {
        for (cell, written) in [
            (";=1+1", "\";'=1+1\""),
            ("a; =1+1;b", "\"a;' =1+1;b\""),
            ("a\t=1", "\"a\t'=1\""),
            ("a\n\"@x", "\"a\n'\"\"@x\""),
            ("\t=1", "\"'\t'=1\""),
            (" =1", "\"' =1\""),
            ("＝1+x", "\"'＝1+x\""),
            ("a;-0.5", "\"a;-0.5\""),
            ("a;b", "\"a;b\""),
            ("t-shirt", "t-shirt"),
            ("-3", "-3"),
        ] {
            let mut lines = Lines::new(&[cell]);
            assert_eq!(lines.drain().as_str(), format!("{written}\r\n"), "{cell}");
        }
    }
}
