//! CSV files for spreadsheets (RFC 4180), in which no cell can run as a formula.

pub(super) struct Lines(String);

impl Lines {
    pub(super) fn new(head: &[&str]) -> Self {
        let mut lines = Self(String::new());
        lines.push(head);
        lines
    }

    pub(super) fn push(&mut self, cells: &[&str]) {
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
                self.0.push(',');
            }
            self.cell(cell);
        }
        self.0.push_str("\r\n");
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn cell(&mut self, cell: &str) {
        // Only a number may begin with a minus.
        let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
        let quoted = formula || cell.contains([',', '"', '\n', '\r']);
        if !quoted {
            self.0.push_str(cell);
            return;
        }
        self.0.push('"');
        if formula {
            self.0.push('\'');
        }
        self.0.push_str(&cell.replace('"', "\"\""));
        self.0.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_disarmed() {
        let mut lines = Lines::new(&["a", "b"]);
        lines.push(&["plain", "with \"quotes\", and more"]);
        lines.push(&["=1+1", "-0.5"]);
        lines.push(&["-x", "@y\n"]);
        assert_eq!(
            lines.into_text(),
            "a,b\r\nplain,\"with \"\"quotes\"\", and more\"\r\n\"'=1+1\",-0.5\r\n\"'-x\",\"'@y\n\"\r\n"
        );
    }
}
