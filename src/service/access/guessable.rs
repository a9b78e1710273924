//! Passwords that guessers try first. At twelve characters and more these are common words, names, years, digits and keys
//! in a row, strung together.
//!
//! A list of our own instead of the zxcvbn crate: that one brings ten more crates, and its dictionaries are mostly of
//! passwords that are too short here.

use std::collections::BTreeSet;

/// How many different letters must be left when everything common is taken away.
const LEAST_LETTERS: usize = 5;
/// A shorter name is part of many words.
const LEAST_NAME: usize = 3;
/// A shorter run of keys is part of many words.
const LEAST_RUN: usize = 4;

/// Whole words in lower case, which people put into passwords most, in the languages of shops.
const WORDS: &str = "\
    1q2w3e4r5t6y 1q2w3e4r 1qaz2wsx3edc 1qaz2wsx qazwsxedc qazwsx zaq12wsx q1w2e3r4t5y6 q1w2e3r4 abc abcd xyz \
    password passwords passwort passwoerter passwd passw passcode passphrase pass pwd kennwort parole motdepasse \
    contrasena contraseña senha secret secrets geheim geheimnis login logon signin account konto changeme change letmein \
    default temp temporary example sample test tester testing demo guest user username admin administrator root master \
    system server service shop store fashion mode outfit style stylist stylists analyst atelier \
    welcome willkommen bienvenue bienvenido hello hallo bonjour salut ciao iloveyou ilove loveyou love lovely liebe \
    ichliebedich schatz jetaime amore teamo forever princess prinzessin queen king angel engel baby babygirl honey \
    sunshine sonnenschein flower blume rainbow star stars diamond dragon monkey tiger eagle phoenix unicorn butterfly \
    chocolate cookie cheese banana orange apple computer internet google facebook samsung microsoft windows linux \
    football fussball fußball soccer baseball basketball hockey liverpool arsenal chelsea barcelona realmadrid \
    superman batman spiderman pokemon starwars naruto minecraft ninja samurai shadow killer hunter ranger warrior \
    trustno one two three four five six seven eight nine zero eins zwei drei vier \
    spring summer autumn fall winter frühling fruehling sommer herbst \
    january february march april may june july august september october november december \
    januar februar märz maerz mai juni juli oktober dezember \
    monday tuesday wednesday thursday friday saturday sunday \
    montag dienstag mittwoch donnerstag freitag samstag sonntag \
    michael daniel jessica ashley jennifer thomas charlie jordan matthew andrew michelle anthony joshua nicole \
    switzerland schweiz suisse zurich zürich deutschland germany berlin france paris london america usa \
    the and you for our new old first last please this that all qwerty qwertz azerty asdf";

/// Keys and letters in a row.
const ROWS: [&str; 9] = [
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "qwertzuiopü",
    "azertyuiop",
    "asdfghjklöä",
    "qsdfghjklm",
    "zxcvbnm",
    "yxcvbnm",
    "wxcvbn",
];

/// Whether little is left of a password without what everyone can guess. Reads `p4ssw0rd` as `password`, too.
pub(super) fn is_guessable(password: &str, name: &str) -> bool {
    let plain = password.to_lowercase();
    let read: String = plain.chars().map(read_digit).collect();
    [plain, read].iter().any(|text| count_letters(text, name) < LEAST_LETTERS)
}

/// Whether the password contains the person's name, in any case and spacing.
pub(super) fn contains_name(password: &str, name: &str) -> bool {
    let letters =
        |text: &str| -> String { text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect() };
    let name = letters(name);
    name.chars().count() >= LEAST_NAME && letters(password).contains(&name)
}

fn read_digit(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        c => c,
    }
}

/// How many different letters are outside of common words, the name and runs of keys.
fn count_letters(text: &str, name: &str) -> usize {
    let name = name.to_lowercase();
    let names = name.split_whitespace().filter(|word| word.chars().count() >= LEAST_NAME);
    let mut words: Vec<&str> = WORDS.split_whitespace().chain(names).collect();
    // The longest first: `passwort` before `pass`.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let text = words.iter().fold(text.to_owned(), |text, word| text.replace(word, " "));
    let chars: Vec<char> = text.chars().collect();
    let (mut letters, mut rest) = (BTreeSet::new(), &chars[..]);
    while let [first, after @ ..] = rest {
        let run = measure_run(rest);
        if run >= LEAST_RUN {
            rest = &rest[run..];
            continue;
        }
        if first.is_alphabetic() {
            letters.insert(*first);
        }
        rest = after;
    }
    letters.len()
}

/// The length of the run of keys at the beginning, forwards or backwards.
fn measure_run(text: &[char]) -> usize {
    let common = |row: &[char]| {
        let begins =
            (0..row.len()).map(|from| text.iter().zip(&row[from..]).take_while(|(a, b)| a == b).count());
        begins.max().unwrap_or(0)
    };
    let longest = ROWS.iter().map(|row| {
        let mut row: Vec<char> = row.chars().collect();
        let forwards = common(&row);
        row.reverse();
        forwards.max(common(&row))
    });
    longest.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_that_guessers_try_first_are_refused() {
        for password in [
            "password1234",
            "Passw0rd2026!",
            "p4$$w0rdp4$$w0rd",
            "passwordpassword",
            "Willkommen2026!",
            "123456789012",
            "8201935746201",
            "qwertyuiop12",
            "poiuytrewq!!",
            "1q2w3e4r5t6y",
            "abcdefghijklm",
            "aaaaaaaaaaaaaaaa",
            "abababababab",
            "iloveyou2026",
            "Summer-Winter-26",
            "Atelier-2026-1357",
            "atelieratelier",
            "Lovelace18151210",
            "            ",
        ] {
            assert!(is_guessable(password, "Ada Lovelace"), "{password}");
        }
        for password in [
            "a horse in Zurich",
            "correct horse battery",
            "kv7!pQz2mWx9",
            "ein Alpaka am Zürichsee",
            "мой дядя самых честных",
        ] {
            assert!(!is_guessable(password, "Ada Lovelace"), "{password}");
        }
    }

    #[test]
    fn a_name_counts_in_any_case_and_spacing() {
        assert!(contains_name("i am ADA.LOVELACE, really", "Ada Lovelace"));
        assert!(contains_name("çiğdem çiğdem", "Çiğdem"));
        assert!(!contains_name("general relativity", "Al"), "a short name is part of other words");
        assert!(!contains_name("anything", "--"));
    }
}
