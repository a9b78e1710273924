//! Texts for people.

use std::error::Error;

/// Cuts the text after `most` characters.
pub fn abbreviate(text: &mut String, most: usize) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
}

/// The error and its causes. Some errors repeat their causes, which are then left out.
pub fn describe_error(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let causes = std::iter::successors(Some(error), |&error| error.source());
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let cut = |text: &str| {
            let mut text = text.to_owned();
            abbreviate(&mut text, 3);
            text
        };
        assert_eq!((cut("äöü"), cut("äöüß"), cut("")), ("äöü".into(), "äöü…".into(), String::new()));
    }
}
