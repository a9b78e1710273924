//! Texts for people.

/// Cuts the text after `most` characters.
pub(crate) fn abbreviate(text: &mut String, most: usize) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
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
