//! The one form in which the words of articles, no-gos and filters are compared.

use std::borrow::Cow;

use serde_json::Value;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

const TYPE: &str = "type";
/// The signs between the parts of a no-go. In an article's value all signs separate but those of [`is_within_words`].
const SEPARATORS: [char; 8] = ['/', ',', ';', '|', '+', '\n', '\t', '•'];
/// The words between the parts of an article's list. A no-go keeps them: brands have them in their names.
const CONJUNCTIONS: [&str; 4] = [" - ", " and ", " und ", " et "];
/// The signs of trade and service marks.
const MARKS: [char; 2] = ['™', '℠'];
/// Shops' names for the one size of an article that comes in no other: folded, letters and digits only.
const ONE_SIZE: [&str; 16] = [
    "onesize",
    "onesizefitsall",
    "onesizefitsmost",
    "os",
    "osfa",
    "osfm",
    "unisize",
    "uni",
    "freesize",
    "nosize",
    "einheitsgrösse",
    "einheitsgroesse",
    "tailleunique",
    "tu",
    "tagliaunica",
    "tallaúnica",
];

/// Whether it is shown at all: not what Unicode calls default-ignorable (soft hyphen, zero-width characters, marks of
/// direction, variation selectors), nor another control character.
pub(super) fn is_visible(c: char) -> bool {
    let is_ignorable = matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    !is_ignorable && (!c.is_control() || c.is_whitespace())
}

/// Whether a sign is a part of words and names: `t-shirt`, `Levi's`, the fraction in `42 2⁄3`.
pub(super) fn is_within_words(c: char) -> bool {
    c.is_alphanumeric()
        || is_combining_mark(c)
        || matches!(c, ' ' | '-' | '\u{2010}' | '\'' | '’' | '\u{2044}')
}

/// Whether the text is one plain word, as most are: neither a list nor in need of more than lower case.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The text without case, outer space and invisible characters, in NFKC, with single spaces. ß is ss.
pub fn fold(text: &str) -> String {
    // Most texts are ASCII, and this is a tenth of the work.
    if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        let mut folded = String::with_capacity(text.len());
        for word in text.split_ascii_whitespace() {
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        folded.make_ascii_lowercase();
        return folded;
    }
    squeeze(&fold_characters(text))
}

/// The characters as they are compared, with all spaces and line breaks.
fn fold_characters(text: &str) -> String {
    let visible = text.nfkc().filter(|c| is_visible(*c));
    // Through upper case, which turns ß into SS; ẞ is only upper case's own form of ß.
    let upper = visible.flat_map(char::to_lowercase).flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfkc().collect()
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The folded text as searches compare it, without accents: Müller, Mueller and Muller are the same.
pub fn search_key(text: &str) -> String {
    let folded = fold(text);
    let plain = |c: char| match c {
        'ø' | 'œ' => 'o',
        'ł' => 'l',
        'đ' => 'd',
        'æ' => 'a',
        other => other,
    };
    let mut key = String::with_capacity(folded.len());
    // German writes ae for ä where a keyboard lacks it.
    let mut push = |c: char| {
        if c != 'e' || !key.ends_with(['a', 'o', 'u']) {
            key.push(c);
        }
    };
    if folded.is_ascii() {
        folded.chars().for_each(push);
    } else {
        folded.nfd().filter(|c| !is_combining_mark(*c)).map(plain).for_each(&mut push);
    }
    key
}

/// A word of an attribute as it is compared: folded, and a number has one form.
fn fold_word(text: &str) -> String {
    with_whole_numbers(&fold(text)).into_owned()
}

/// A word of an attribute, or of the field `type`, as it is compared. A type is in the English singular and without hyphens:
/// a feed writes `Rain Jackets`, and a schema lists `rain-jacket`.
pub fn fold_for(attribute: &str, text: &str) -> String {
    let word = fold_word(text);
    if attribute == TYPE { type_form(&word) } else { word }
}

/// A folded word as types are compared.
fn type_form(word: &str) -> String {
    singular(&word.replace('-', " "))
}

/// The parts of a no-go such as `Leather/Nylon`, folded; a text that is no list has one.
pub fn fold_parts(text: &str) -> Vec<String> {
    parts(&fold_characters(text), |c| SEPARATORS.contains(&c))
}

/// The parts of a folded text. In a text with percentages the numbers separate parts, too: `80% Wool 20% Nylon`.
fn parts(text: &str, separates: impl Fn(char) -> bool) -> Vec<String> {
    let has_percentages = text.contains('%');
    let separates = |c: char| separates(c) || (has_percentages && (c == '%' || c.is_ascii_digit()));
    let text = if has_percentages { Cow::Borrowed(text) } else { with_whole_numbers(text) };
    text.split(separates).map(squeeze).filter(|part| !part.is_empty()).collect()
}

/// The text with numbers in which nothing separates: `40,5` is `40.5`, and `42 2/3` has a fraction's own slash. Before more
/// than one digit both signs separate, as in `38,39` and `32/34`.
fn with_whole_numbers(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is = |at: Option<usize>, test: fn(&u8) -> bool| at.and_then(|at| bytes.get(at)).is_some_and(test);
    let is_digit = |at| is(at, u8::is_ascii_digit);
    let is_within =
        |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)) && !is_digit(Some(at + 2));
    let is_of_fraction = |at: usize| {
        is_within(at) && is(at.checked_sub(2), |byte| *byte == b' ') && is_digit(at.checked_sub(3))
    };
    let other_form = |at: usize, c: char| match c {
        ',' if is_within(at) => Some('.'),
        '/' if is_of_fraction(at) => Some('\u{2044}'),
        _ => None,
    };
    if !text.char_indices().any(|(at, c)| other_form(at, c).is_some()) {
        return Cow::Borrowed(text);
    }
    text.char_indices().map(|(at, c)| other_form(at, c).unwrap_or(c)).collect()
}

/// Whether a folded word names the size of an article that comes in one for everyone.
pub(super) fn is_one_size(word: &str) -> bool {
    // Nearly all sizes begin with another letter or with a digit.
    if !word.starts_with(['e', 'f', 'n', 'o', 't', 'u']) {
        return false;
    }
    let letters = || word.chars().filter(|c| c.is_alphanumeric());
    ONE_SIZE.iter().any(|name| name.chars().eq(letters()))
}

/// The order in which people read folded sizes: `xs`, `s`, `m`, `xl`, then numbers, then the rest by the alphabet.
pub fn size_order(word: &str) -> (u8, i32, &str) {
    let (count, rest) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()));
    let size = rest.trim_start_matches('x');
    let xs = rest.len() - size.len();
    let xs = i32::try_from(if xs == 1 { count.parse().unwrap_or(xs) } else { xs }).unwrap_or(i32::MAX);
    match size {
        "s" if count.is_empty() || xs > 0 => (0, (-1_i32).saturating_sub(xs), word),
        "m" if count.is_empty() && xs == 0 => (0, 0, word),
        "l" if count.is_empty() || xs > 0 => (0, xs.saturating_add(1), word),
        _ => match word.parse::<f32>() {
            #[expect(clippy::cast_possible_truncation, reason = "a size of clothes is small")]
            Ok(number) if number.is_finite() => (1, (number * 100.0) as i32, word),
            _ => (2, 0, word),
        },
    }
}

/// Without the ending of an English plural; not always a word, but the same for both numbers.
pub fn singular(word: &str) -> String {
    let cut = |ending: &str| word.strip_suffix(ending).filter(|rest| rest.chars().count() > 2);
    match () {
        () if word.ends_with("ss") => word.to_owned(),
        () if let Some(rest) = cut("ies").or_else(|| cut("ie")) => format!("{rest}y"),
        () if let Some(rest) = cut("sses") => format!("{rest}ss"),
        () if let Some(rest) = cut("shes") => format!("{rest}sh"),
        () if let Some(rest) = cut("ches") => format!("{rest}ch"),
        () if let Some(rest) = cut("xes") => format!("{rest}x"),
        () => cut("s").unwrap_or(word).to_owned(),
    }
}

/// An article's types, as [`fold_for`] compares types.
pub(super) fn fold_type(text: &str) -> Vec<String> {
    fold_value(text).iter().map(|word| type_form(word)).collect()
}

/// Calls `each` with every text in a JSON value, at any depth, and with the digits of every number. The names of an object's
/// fields are texts, too.
pub(super) fn visit_words<'v>(value: &'v Value, each: &mut impl FnMut(Cow<'v, str>)) {
    match value {
        Value::String(text) => each(text.into()),
        Value::Number(number) => each(number.to_string().into()),
        Value::Array(values) => values.iter().for_each(|value| visit_words(value, each)),
        Value::Object(fields) => {
            for (name, value) in fields {
                visit_words(value, each);
                each(name.into());
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The text with a space before the capitals inside its words, as in `leatherNylon`; None if it has none. Both words have three
/// letters at least, so `McQueen` is one.
pub(super) fn separate_capitals(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let begins = |at: &usize| {
        let Some([before @ .., first, second, third]) = chars.get(at.wrapping_sub(3)..at + 3) else {
            return false;
        };
        before.iter().all(|c| c.is_alphabetic())
            && before.last().is_some_and(|c| c.is_lowercase())
            && first.is_uppercase()
            && second.is_lowercase()
            && third.is_lowercase()
    };
    let places: Vec<usize> = (3..chars.len()).filter(begins).collect();
    let space = |at: usize| places.binary_search(&at).is_ok().then_some(' ');
    let spaced = || chars.iter().enumerate().flat_map(|(at, c)| space(at).into_iter().chain([*c])).collect();
    (!places.is_empty()).then(spaced)
}

/// All that an article's value says: the whole, its parts, and the parts of those in words: `wool and silk`.
pub(super) fn fold_value(text: &str) -> Vec<String> {
    if is_plain(text) {
        return vec![text.to_ascii_lowercase()];
    }
    // In their usual form these are letters, too.
    if text.contains(MARKS) {
        return fold_value(&text.replace(MARKS, " "));
    }
    let has_digits = text.contains(char::is_numeric);
    let folded = fold_characters(text);
    let mut words = parts(&folded, |c| !is_within_words(c) && (c != '.' || !has_digits));
    // Nobody sees whether they are inside a word or between two.
    if text.contains(|c| !is_visible(c)) {
        words.extend(fold_value(&text.replace(|c| !is_visible(c), "\n")));
    }
    for conjunction in CONJUNCTIONS {
        let parts = words.iter().filter(|word| word.contains(conjunction));
        let parts: Vec<String> =
            parts.flat_map(|word| word.split(conjunction)).map(|part| part.trim().to_owned()).collect();
        words.extend(parts);
    }
    words.push(with_whole_numbers(&squeeze(&folded)).into_owned());
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_case_and_space() {
        for text in [
            "Grün-Weiß",
            " GRÜN-WEISS",
            "gru\u{308}n-weiẞ\u{a0}",
            "grün-\u{200b}we\u{ad}iß",
            "Ｇｒüｎ－Ｗｅiß",
        ] {
            assert_eq!(fold(text), "grün-weiss", "{text:?}");
        }
        for c in "\u{ad}\u{34f}\u{61c}\u{180e}\u{200b}\u{200d}\u{200e}\u{200f}\u{202e}\u{2063}\u{2066}\u{3164}\u{fe0f}\u{feff}\u{1}\u{e0041}".chars() {
            assert_eq!(fold(&format!("{c}Lea{c}ther{c}")), "leather", "{c:?}");
        }
        assert_eq!(fold("light  blue"), fold("Light Blue"));
        assert_ne!(fold("light-blue"), fold("light blue"));
    }

    #[test]
    fn ascii_is_folded_as_unicode_is() {
        for text in ["", "  ", "a", "Light  BLUE ", " 80% Wool/20% Nylon", "don't-STOP", "{[~|]}"] {
            assert_eq!(fold(text), squeeze(&fold_characters(text)), "{text:?}");
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
            ("Leather&Nylon", &["leather", "nylon"]),
            ("Shell: Leather\tNylon", &["shell", "leather", "nylon"]),
            ("Leather.Nylon – (Wool)", &["leather", "nylon", "wool"]),
            ("Ｌｅａｔｈｅｒ／Nylon", &["leather", "nylon"]),
            ("Lea\u{200b}ther", &["leather"]),
            ("Leather\u{1f}Nylon", &["leather", "nylon"]),
        ] {
            let found = fold_value(value);
            assert!(words.iter().all(|word| found.iter().any(|other| other == word)), "{value}: {found:?}");
        }
    }

    #[test]
    fn searches_take_a_name_in_each_of_its_spellings() {
        for (spellings, key) in [
            (&["Müller", "MUELLER", "muller"][..], "muller"),
            (&["Jørgensen", "Joergensen", "jorgensen"], "jorgensen"),
            (&["Strauß", "Strauss"], "strauss"),
            (&["Chloé", "chloe"], "chlo"),
        ] {
            for spelling in spellings {
                assert_eq!(search_key(spelling), key);
                assert_eq!(search_key(key), key, "a key is its own");
            }
        }
        assert_eq!(search_key("queen"), search_key("queeen"));
    }

    #[test]
    fn a_number_is_one_word() {
        for (value, words) in [
            ("40,5", &["40.5"][..]),
            ("40.5", &["40.5"]),
            ("36,5/37", &["36.5", "37", "36.5/37"]),
            ("EU 40,5, UK 7", &["eu 40.5", "uk 7", "eu 40.5, uk 7"]),
            ("42 2/3", &["42 2\u{2044}3"]),
            ("38,39,40", &["38", "39", "40", "38,39,40"]),
            ("32/34", &["32", "34", "32/34"]),
            ("8/9", &["8", "9", "8/9"]),
            ("1/2 ,5", &["1", "2", "5", "1/2 ,5"]),
        ] {
            let mut found = fold_value(value);
            found.dedup();
            assert_eq!(found, words, "{value}");
            let whole = fold_for("sizes", value);
            assert_eq!(Some(&whole), found.last(), "{value}");
        }
        assert_eq!(fold_parts("80,5% Wolle, 19,5% Nylon"), ["wolle", "nylon"]);
    }

    #[test]
    fn one_size_has_many_names() {
        for (names, is_one) in [
            ("One Size, one-size, ONESIZE, OS, O/S, OSFA, One size fits all, TU, uni, Einheitsgröße", true),
            (", one, S, 38, university, XOS", false),
        ] {
            for name in names.split(", ") {
                assert_eq!(fold_value(name).iter().any(|word| is_one_size(word)), is_one, "{name}");
            }
        }
    }

    #[test]
    fn sizes_are_in_the_order_of_people() {
        let sizes: Vec<_> = "xxs xs s m l xl 2xl 3xl 9.5 36 38 104 onesize w28 w30".split(' ').collect();
        let mut sorted = sizes.clone();
        sorted.sort_unstable();
        sorted.sort_by(|a, b| size_order(a).cmp(&size_order(b)));
        assert_eq!(sorted, sizes);
        for odd in " x 0 -1 inf nan 9999999999999999999999xl 2147483647xl xxxxxxxxxxx 1s ß".split(' ') {
            let _ = size_order(odd);
        }
    }

    #[test]
    fn types_are_compared_in_the_singular() {
        for (plural, kind) in [
            ("Parkas", "parka"),
            ("DRESSES", "dress"),
            ("Jeans", "jeans"),
            ("Hoodies", "hoodie"),
            ("Rain Jackets", "rain-jacket"),
            ("T-Shirts", "t-shirt"),
            ("Watches", "watch"),
            ("Ties", "tie"),
        ] {
            assert_eq!(fold_for("type", plural), fold_for("type", kind));
        }
        assert_ne!(fold_for("type", "dress shirt"), fold_for("type", "shirt"));
        assert_eq!(fold_for("colour", "Parkas"), "parkas");
        assert_eq!(fold_type("Coats & Jackets"), ["coat", "jacket", "coats & jacket"]);
    }
}
