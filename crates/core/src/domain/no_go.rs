//! Which words of an article say a no-go, in whatever spelling.
//!
//! Both are compared as searches compare words: without case, accents and plurals. A no-go is also found inside a longer text.

use std::collections::BTreeSet;

use super::{singular, tokens, words::is_within_words};

/// The most words of a no-go that is found inside a longer text.
const MOST_TOGETHER: usize = 3;
/// Before a material these words make another one of it: `faux leather`. Not `eco`: that may be leather.
const OTHER_BEFORE: [&str; 11] =
    ["artificial", "fake", "faux", "imitation", "mock", "no", "non", "pu", "synthetic", "vegan", "without"];
/// These may be between the two: `faux patent leather`.
const FINISHES: [&str; 2] = ["nappa", "patent"];
/// The same after it: `leather-free`.
const OTHER_AFTER: [&str; 7] = ["alternative", "effect", "free", "imitation", "like", "look", "substitute"];

/// A no-go, or all of an article's word, as they are compared.
pub fn no_go_key(text: &str) -> String {
    let words: Vec<String> = parts(text).collect();
    if words.is_empty() { text.to_owned() } else { singular(&words.join("-")) }
}

/// The keys of the no-gos that an article's folded word says: itself, and the words in it. A value of several words that is
/// `listed` counts as one word, so `light-blue` does not say `blue`.
pub fn no_go_keys(word: &str, listed: &BTreeSet<String>) -> Vec<String> {
    let mut keys = vec![no_go_key(word)];
    for text in word.split(|c| !is_within_words(c)) {
        let words = join_listed(parts(text).collect(), listed);
        let is = |word: Option<&String>, others: &[&str]| word.is_some_and(|word| others.contains(&&**word));
        let before = |first: usize| words[..first].iter().rfind(|word| !is(Some(*word), &FINISHES));
        for first in (0..words.len()).filter(|first| !is(before(*first), &OTHER_BEFORE)) {
            let ends = first + 1..=words.len().min(first + MOST_TOGETHER);
            for end in ends.filter(|end| !is(words.get(*end), &OTHER_AFTER)) {
                keys.push(singular(&words[first..end].join("-")));
            }
        }
    }
    keys
}

/// The words of a text. Digits are words of their own: `80leather20nylon`.
fn parts(text: &str) -> impl Iterator<Item = String> {
    tokens(text).flat_map(|token| {
        let of_digits = |a: char, b: char| a.is_numeric() == b.is_numeric();
        let chars: Vec<char> = token.chars().collect();
        chars.chunk_by(|a, b| of_digits(*a, *b)).map(String::from_iter).collect::<Vec<_>>()
    })
}

/// The words, where those that are a listed value together are one.
fn join_listed(words: Vec<String>, listed: &BTreeSet<String>) -> Vec<String> {
    if listed.is_empty() || words.len() < 2 {
        return words;
    }
    let (mut joined, mut rest) = (Vec::with_capacity(words.len()), &words[..]);
    while !rest.is_empty() {
        let mut values = (2..=rest.len().min(MOST_TOGETHER))
            .rev()
            .map(|count| (singular(&rest[..count].join("-")), count));
        let found = values.find(|(value, _)| listed.contains(value));
        let (word, count) = found.unwrap_or_else(|| (rest[0].clone(), 1));
        joined.push(word);
        rest = &rest[count..];
    }
    joined
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{Article, ArticleId};

    fn says(material: &str, no_go: &str, listed: &[&str]) -> bool {
        let serde_json::Value::Object(attributes) = json!({"material": material}) else { unreachable!() };
        let article = Article::new(ArticleId::new("a").unwrap(), "coat", attributes).unwrap();
        let listed = listed.iter().map(|value| no_go_key(value)).collect();
        let words = article.folded_words("material");
        words.iter().flat_map(|word| no_go_keys(word, &listed)).any(|key| key == no_go_key(no_go))
    }

    #[test]
    fn a_no_go_is_found_in_ordinary_spellings() {
        // Of case, widths, invisible characters, accents, possession, marks, lists, shares and more words.
        let spellings = [
            "leather¦Leather¦LEATHER¦ leather ¦\u{a0}Leather¦Ｌｅａｔｈｅｒ¦𝐥𝐞𝐚𝐭𝐡𝐞𝐫¦ⓛⓔⓐⓣⓗⓔⓡ",
            "lea\u{ad}ther¦lea\u{200b}ther¦lea\u{2060}ther¦\u{feff}leather¦leather\u{200e}",
            "lea\u{fe0f}ther¦leather\u{1f}nylon¦lea\u{e0041}ther",
            "lëather¦le\u{301}ather¦léáthër¦l\u{336}e\u{336}a\u{336}t\u{336}h\u{336}e\u{336}r\u{336}",
            "le\u{338}ather¦l\u{20dd}eather¦leathe\u{20e3}r",
            "leathers¦Real Leathers¦leather's¦leather’s¦leathers'",
            "leather™¦leather®¦leather©¦leather℠¦Leather™ Nylon",
            "leather/nylon¦nylon/leather¦leather,nylon¦leather, nylon¦leather;nylon¦leather|nylon",
            "leather+nylon¦leather&nylon¦leather & nylon¦leather and nylon¦nylon and leather",
            "leather und nylon¦leather et nylon¦leather - nylon¦leather – nylon¦leather—nylon",
            "leather-nylon¦nylon-leather¦leather\u{2010}nylon¦leather\u{2011}nylon¦leather_nylon",
            "leather.nylon¦leather:nylon¦leather\nnylon¦leather\tnylon¦leather•nylon¦leather·nylon",
            "leather\\nylon¦leather=nylon¦leather→nylon¦leather~nylon¦(leather)¦[leather]¦{leather}",
            "\"leather\"¦«leather»¦“leather”¦*leather*¦#leather¦leather!¦leather?",
            "80% leather¦leather 80%¦80% leather 20% nylon¦80 % Leather, 20 % Nylon¦80leather20nylon",
            "80%leather20%nylon¦leather80¦100leather",
            "real leather¦genuine leather¦soft lamb leather¦leather upper¦leather nylon",
            "upper: leather, lining: nylon¦faux fur and leather¦leatherNylon¦nylonLeather",
            "softLeatherNylon¦eco leather¦eco-leather¦bonded leather¦vegetable-tanned leather",
            "PU coated leather¦faux croc leather¦chrome-free leather¦non-slip leather¦patent leather",
            "faux fur, patent leather¦no lining, nappa leather¦leather effect on leather",
        ];
        let spellings: Vec<&str> = spellings.iter().flat_map(|line| line.split('¦')).collect();
        let passing: Vec<_> = spellings.iter().filter(|spelling| !says(spelling, "leather", &[])).collect();
        assert!(passing.is_empty() && spellings.len() > 81, "{passing:?}");
        // Other materials; one word, as dictionaries have it; letters of another script.
        let others = [
            "faux leather¦fauxLeather¦vegan-leather¦faux patent leather¦Vegan Nappa Leather¦non-leather",
            "leather alternative¦100% PU leather¦leather-free¦leather look¦imitation leather¦no leather",
            "leatherette¦pleather¦leatherwood¦lеather¦leder¦nylon¦¦%",
        ];
        let others = others.iter().flat_map(|line| line.split('¦')).map(|material| (material, "leather"));
        for (material, no_go) in others.chain([
            ("leather", "Real-Leathers"),
            ("lambskin", "lamb"),
            ("Lederimitat", "leder"),
            ("wool, silk", "wool-silk coat"),
            ("McQueen", "queen"),
        ]) {
            assert!(!says(material, no_go, &[]), "{material} says no {no_go}");
        }
    }

    #[test]
    fn a_no_go_of_several_words_is_found_and_a_listed_value_is_one_word() {
        let listed = ["light-blue", "red"];
        for (colour, no_go, is_said) in [
            ("light-blue", "blue", false),
            ("Light Blue", "blue", false),
            ("light blues", "light-blue", true),
            ("red/light-blue", "red", true),
            ("light-blue and blue", "blue", true),
            ("sky-blue", "blue", true),
            ("very light blue", "light-blue", true),
            ("light", "light-blue", false),
            ("Dolce&Gabbana", "Dolce & Gabbana", true),
            ("Dolce & Gabbana Kids", "dolce", true),
            ("★", "★", true),
            ("★", "☆", false),
            ("1200", "1200", true),
        ] {
            assert_eq!(says(colour, no_go, &listed), is_said, "{colour} and {no_go}");
        }
    }
}
