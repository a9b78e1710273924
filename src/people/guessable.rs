//! Passwords that guessers try first, found by zxcvbn: common passwords, words and names, dates, keys in a row, repetitions,
//! also with capitals, digits for letters, or backwards. Its lists take 8 MB from the first new password on.

use std::collections::HashSet;

use zxcvbn::{Score, feedback::Warning, zxcvbn};

/// More than 10^10 guesses. Three is met by any password of three parts, such as `password-password` or `Sommer2026!!`.
const LEAST_SCORE: Score = Score::Four;
/// A shorter name is part of many words.
const LEAST_NAME: usize = 3;

/// Words of the service, and common ones that zxcvbn's English lists lack.
const WORDS: &str = "atelier stylist analyst admin outfit fashion mode boutique shop laden geschäft magasin \
    passwort kennwort geheim willkommen hallo guten morgen abend \
    frühling fruehling sommer herbst winter printemps été automne hiver \
    montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche \
    schweiz deutschland österreich oesterreich zürich zuerich berlin hamburg münchen muenchen köln koeln frankfurt stuttgart \
    wien basel bern genf genève geneve lausanne paris lyon marseille france allemagne suisse europa \
    bayern dortmund schalke borussia werder juventus chelsea arsenal \
    schatz schatzi prinzessin sonnenschein fussball fußball liebe liebling engel \
    ich du wir mein meine meinen meiner dein deine unser unsere ist bin der die das und immer \
    hund katze pferd maus hase bello mutter mama papa vater oma opa kind kinder sohn tochter bruder schwester familie \
    haus garten auto urlaub ferien schule büro buero kaffee schokolade blumen sonne stern \
    mon ma mes le la les je tu amour coeur cœur soleil chien chat maison famille fille fils maman bonjour bienvenue \
    motdepasse azerty secret contraseña hola amor \
    ichliebedich ichliebe ichliebemein ichliebemeine ichliebemeinen jetaime jaime jaimemon jaimema ilove ilovemy iloveour \
    welcometo letmein meinhund meinkatze";
/// Each is a single guess, however its words are joined.
const PHRASES: [&str; 5] = [
    "correct horse battery staple",
    "the quick brown fox",
    "to be or not to be",
    "may the force be with you",
    "ich liebe dich",
];

/// In English, German and French.
const MONTHS: &str = "january february march april may june july august september october november december \
    januar jänner jaenner februar märz maerz marz mai juni juli oktober dezember \
    janvier février fevrier mars avril juin juillet août aout septembre octobre novembre décembre decembre";
/// Shorter words are also parts of others.
const LONG: usize = 6;

/// Why the password is too easy to guess; None if it is not. The person's name and the `shop`'s are among a guesser's first
/// words. The password must be hard to guess as it is, and also without what guessers vary: see [`what_counts`].
pub(super) fn find_weakness(password: &str, name: &str, shop: &str) -> Option<&'static str> {
    let phrases =
        PHRASES.iter().flat_map(|phrase| ["", " ", "-", "_", "."].map(|gap| phrase.replace(' ', gap)));
    let phrases: Vec<String> = phrases.collect();
    let names = name.split_whitespace().chain(shop.split_whitespace()).chain([name]);
    let inputs: Vec<&str> = names
        .chain([WORDS, MONTHS].into_iter().flat_map(str::split_whitespace))
        .chain(phrases.iter().map(String::as_str))
        .collect();
    let weakness = |text: &str| {
        let estimate = zxcvbn(text, &inputs);
        (estimate.score() < LEAST_SCORE)
            .then(|| explain(estimate.feedback().and_then(zxcvbn::feedback::Feedback::warning)))
    };
    weakness(password).or_else(|| {
        weakness(&what_counts(password, shop))
            .map(|_| "without years, months, repetitions and the shop's name, too little is left")
    })
}

/// The password without years, names of months and of the shop, and what it repeats.
fn what_counts(password: &str, shop: &str) -> String {
    let names = shop.split_whitespace().filter(|name| name.len() >= LEAST_NAME);
    let left = MONTHS
        .split_whitespace()
        .chain(names)
        .fold(password.to_lowercase(), |left, word| remove_word(&left, word));
    let kind = |c: &char| (c.is_alphabetic(), c.is_numeric());
    let letters: Vec<char> = left.chars().collect();
    let (mut kept, mut seen) = (String::new(), HashSet::new());
    for part in letters.chunk_by(|one, next| kind(one) == kind(next)) {
        let part = halve(part);
        let text: String = part.iter().collect();
        let is_year = part.len() == 4 && matches!(text.parse(), Ok(1900..=2099));
        let is_new = !part.iter().all(|c| c.is_alphanumeric()) || seen.insert(text.clone());
        if is_new && !is_year {
            kept.push_str(&text);
        }
    }
    let kept: Vec<char> = kept.trim_matches(|c: char| !c.is_alphanumeric()).chars().collect();
    halve(&kept).iter().collect()
}

/// Half of a text whose halves are the same.
fn halve(text: &[char]) -> &[char] {
    let (first, second) = text.split_at(text.len() / 2);
    if first == second && !first.is_empty() { halve(first) } else { text }
}

fn remove_word(text: &str, word: &str) -> String {
    let (mut left, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        left.push_str(before);
        let beside = [left.chars().next_back(), after.chars().next()];
        if word.len() < LONG && beside.into_iter().flatten().any(char::is_alphabetic) {
            left.push_str(word);
        }
        rest = after;
    }
    left + rest
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

    #[test]
    fn a_weakness_is_named() {
        for (password, reason) in [
            ("password1234", "close to a common password"),
            ("p4$$w0rdp4$$w0rd", "repeats itself"),
            ("password-password", "too few words"),
            ("zxcvbnm,./asdfgh", "keys in a row"),
            ("0123456789012", "letters or digits in a row"),
            ("elizabeth1234", "close to a common name"),
            ("stylist16121976", "date or a year"),
        ] {
            let found = find_weakness(password, "Some stylist", "").unwrap_or_default();
            assert!(found.contains(reason), "{password}: {found}");
        }
    }

    #[test]
    fn guessable_passwords_are_weak_and_good_ones_are_not() {
        let lines = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
        let guessable = lines(include_str!("../../tests/fixtures/passwords/guessable.txt"));
        let passed: Vec<&str> = guessable
            .filter(|password| find_weakness(password, "Ada", "boutique rosenrot").is_none())
            .collect();
        assert_eq!(passed, [""; 0]);
        let good = lines(include_str!("../../tests/fixtures/passwords/good.txt"));
        let refused =
            good.filter_map(|password| Some((password, find_weakness(password, "Ada", "boutique")?)));
        assert_eq!(refused.collect::<Vec<_>>(), []);
    }
}
