//! Passwords that guessers try first, found by zxcvbn: common passwords, words and names, dates, keys in a row, repetitions,
//! also with capitals, digits for letters, or backwards. Its lists take 8 MB from the first new password on.

use zxcvbn::{Score, feedback::Warning, zxcvbn};

/// More than 10^10 guesses. Three is met by any password of three parts, such as `password-password` or `Sommer2026!!`.
const LEAST_SCORE: Score = Score::Four;
/// A shorter name is part of many words.
const LEAST_NAME: usize = 3;

/// Words of the service, and common ones that zxcvbn's English lists lack.
const WORDS: &str = "atelier stylist analyst admin outfit fashion \
    passwort kennwort geheim willkommen frühling fruehling sommer herbst schweiz deutschland österreich zürich zuerich \
    schatzi prinzessin sonnenschein fussball fußball ichliebedich bienvenue suisse contraseña";
/// Each is a single guess, however its words are joined.
const PHRASES: [&str; 5] = [
    "correct horse battery staple",
    "the quick brown fox",
    "to be or not to be",
    "may the force be with you",
    "ich liebe dich",
];

/// Why the password is too easy to guess; None if it is not.
pub(super) fn find_weakness(password: &str, name: &str) -> Option<&'static str> {
    let phrases =
        PHRASES.iter().flat_map(|phrase| ["", " ", "-", "_", "."].map(|gap| phrase.replace(' ', gap)));
    let phrases: Vec<String> = phrases.collect();
    let names = name.split_whitespace().chain([name]);
    let inputs: Vec<&str> =
        names.chain(WORDS.split_whitespace()).chain(phrases.iter().map(String::as_str)).collect();
    let estimate = zxcvbn(password, &inputs);
    (estimate.score() < LEAST_SCORE)
        .then(|| explain(estimate.feedback().and_then(zxcvbn::feedback::Feedback::warning)))
}

fn explain(warning: Option<Warning>) -> &'static str {
    match warning {
        Some(Warning::StraightRowsOfKeysAreEasyToGuess | Warning::ShortKeyboardPatternsAreEasyToGuess) => {
            "it has keys in a row"
        }
        Some(
            Warning::RepeatsLikeAaaAreEasyToGuess | Warning::RepeatsLikeAbcAbcAreOnlySlightlyHarderToGuess,
        ) => "it repeats itself",
        Some(Warning::SequencesLikeAbcAreEasyToGuess) => "it has letters or digits in a row",
        Some(
            Warning::ThisIsATop10Password
            | Warning::ThisIsATop100Password
            | Warning::ThisIsACommonPassword
            | Warning::ThisIsSimilarToACommonlyUsedPassword,
        ) => "it is close to a common password",
        Some(Warning::RecentYearsAreEasyToGuess | Warning::DatesAreOftenEasyToGuess) => {
            "it has a date or a year"
        }
        Some(
            Warning::NamesAndSurnamesByThemselvesAreEasyToGuess
            | Warning::CommonNamesAndSurnamesAreEasyToGuess,
        ) => "it is close to a common name",
        Some(Warning::AWordByItselfIsEasyToGuess) | None => "it has too few words, or very common ones",
    }
}

/// Whether the password contains the person's name, in any case and spacing.
pub(super) fn contains_name(password: &str, name: &str) -> bool {
    let letters =
        |text: &str| -> String { text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect() };
    let name = letters(name);
    name.chars().count() >= LEAST_NAME && letters(password).contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_in_any_case_and_spacing() {
        assert!(contains_name("i am ADA.LOVELACE, really", "Ada Lovelace"));
        assert!(contains_name("çiğdem çiğdem", "Çiğdem"));
        assert!(!contains_name("general relativity", "Al"), "a short name is part of other words");
        assert!(!contains_name("anything", "--"));
    }
}
