//! The one form in which the words of articles, no-gos and filters are compared.

use unicode_normalization::UnicodeNormalization;

/// The signs between the parts of a list.
const SEPARATORS: [char; 7] = ['/', ',', ';', '|', '+', '\n', '•'];
/// The words between the parts of an article's list. A no-go keeps them: brands have them in their names.
const CONJUNCTIONS: [&str; 4] = [" & ", " and ", " und ", " et "];

/// Drops invisible characters: soft hyphen, zero-width space and joiners, byte order mark.
fn is_visible(c: char) -> bool {
    !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// Whether the text is one plain word, as most are: neither a list nor in need of more than lower case.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The text without case, outer space and invisible characters, in NFC, with single spaces. ß is ss.
pub fn fold(text: &str) -> String {
    // Most texts are ASCII, and this is a tenth of the work.
    if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        return words.join(" ").to_ascii_lowercase();
    }
    fold_unicode(text)
}

fn fold_unicode(text: &str) -> String {
    let visible = text.chars().filter(|c| is_visible(*c));
    // Through upper case, which turns ß into SS; ẞ is only upper case's own form of ß.
    let upper = visible.flat_map(char::to_lowercase).flat_map(char::to_uppercase);
    let folded: String = upper.flat_map(char::to_lowercase).nfc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The parts of a list such as `Leather/Nylon`, folded; a text that is no list has one. In a text with percentages the
/// numbers separate parts, too: `80% Wool 20% Nylon`.
pub fn fold_parts(text: &str) -> Vec<String> {
    let has_percentages = text.contains('%');
    let separates =
        |c: char| SEPARATORS.contains(&c) || (has_percentages && (c == '%' || c.is_ascii_digit()));
    text.split(separates).map(fold).filter(|part| !part.is_empty()).collect()
}

/// All that an article's value says: the whole, its parts, and the parts of those in words: `wool and silk`.
pub(super) fn fold_value(text: &str) -> Vec<String> {
    if is_plain(text) {
        return vec![text.to_ascii_lowercase()];
    }
    let mut words = fold_parts(text);
    for conjunction in CONJUNCTIONS {
        let parts = words.iter().filter(|word| word.contains(conjunction));
        let parts: Vec<String> =
            parts.flat_map(|word| word.split(conjunction)).map(|part| part.trim().to_owned()).collect();
        words.extend(parts);
    }
    words.push(fold(text));
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_case_and_space() {
        for text in ["Grün-Weiß", " GRÜN-WEISS", "gru\u{308}n-weiẞ\u{a0}", "grün-\u{200b}we\u{ad}iß"] {
            assert_eq!(fold(text), "grün-weiss", "{text:?}");
        }
        assert_eq!(fold("light  blue"), fold("Light Blue"));
        assert_ne!(fold("light-blue"), fold("light blue"));
    }

    #[test]
    fn ascii_is_folded_as_unicode_is() {
        for text in ["", "  ", "a", "Light  BLUE ", " 80% Wool/20% Nylon", "don't-STOP", "{[~|]}"] {
            assert_eq!(fold(text), fold_unicode(text), "{text:?}");
        }
    }

    #[test]
    fn a_list_says_each_of_its_parts() {
        assert_eq!(fold_parts(" Leder/Nylon "), ["leder", "nylon"]);
        assert_eq!(fold_parts("Leder"), ["leder"]);
        assert_eq!(fold_parts("80% Wolle 20% Nylon"), ["wolle", "nylon"]);
        assert_eq!(fold_parts("Wolle 80 %, Nylon 20 %"), ["wolle", "nylon"]);
        assert_eq!(fold_parts("Dolce & Gabbana"), ["dolce & gabbana"]);
        assert!(fold_parts(" / ").is_empty());
        for (value, words) in [
            ("Wolle und Seide", &["wolle und seide", "wolle", "seide"][..]),
            ("a & b and c", &["a & b and c", "a", "b", "c"]),
            ("H&M", &["h&m"]),
            ("denim-jacket", &["denim-jacket"]),
            ("501, blue", &["501, blue", "501", "blue"]),
        ] {
            let found = fold_value(value);
            assert!(words.iter().all(|word| found.iter().any(|other| other == word)), "{value}: {found:?}");
        }
    }
}
