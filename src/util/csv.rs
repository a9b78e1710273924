//! Writing CSV (RFC 4180).

/// CSV text, built record by record.
#[derive(Debug)]
pub struct Lines {
    text: String,
    for_spreadsheets: bool,
}

impl Lines {
    /// For spreadsheets: lines end in CRLF, and no cell is run as a formula.
    pub fn new(header: &[&str]) -> Self {
        let mut lines = Self { text: String::new(), for_spreadsheets: true };
        lines.push(header);
        lines
    }

    /// For programs: lines end in LF, and a reader gets back every cell as it is given.
    pub fn exact() -> Self {
        Self { text: String::new(), for_spreadsheets: false }
    }

    pub fn push<C: AsRef<str>>(&mut self, cells: &[C]) {
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
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
        // A number may begin with a minus; a formula may not.
        let formula = self.for_spreadsheets
            && cell.starts_with(['=', '+', '-', '@', '\t', '\r'])
            && cell.parse::<f64>().is_err();
        if !formula && !cell.contains([',', '"', '\n', '\r']) {
            self.text.push_str(cell);
            return;
        }
        self.text.push('"');
        if formula {
            self.text.push('\'');
        }
        self.text.push_str(&cell.replace('"', "\"\""));
        self.text.push('"');
    }
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
        lines.push(&["=1+1", "a,b"]);
        assert_eq!(lines.into_text(), "=1+1,\"a,b\"\n");
    }
}
