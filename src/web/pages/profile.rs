//! A customer in words, as in the paper's figure 2: "female, 28, 58 kg, 172 cm, gray/red/black, slim, no heels".

use crate::domain::{Feature, FeatureValue, Features, Kind, Schema};

/// One feature in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProfileWord {
    /// The feature's label, which the words may omit.
    pub(super) label: String,
    pub(super) words: String,
}

/// In the schema's order. Features outside the schema are omitted: models do not see them either.
pub(super) fn describe(features: &Features, schema: &Schema) -> Vec<ProfileWord> {
    schema
        .features()
        .iter()
        .filter_map(|feature| {
            let words = words(feature, features.get(&feature.name)?, schema);
            (!words.is_empty()).then(|| ProfileWord { label: feature.label.clone(), words })
        })
        .collect()
}

/// The same on one line.
pub(super) fn line(features: &Features, schema: &Schema) -> String {
    let words: Vec<String> = describe(features, schema).into_iter().map(|word| word.words).collect();
    words.join(", ")
}

/// What articles must fit, such as sizes: the values alone, with their labels.
pub(super) fn sizes(features: &Features, schema: &Schema) -> Vec<ProfileWord> {
    let requiring = schema.features().iter().filter(|feature| !feature.requires.is_empty());
    let word = |feature: &Feature| {
        let words = value_words(feature, features.get(&feature.name)?);
        Some(ProfileWord { label: feature.label.clone(), words })
    };
    requiring.filter_map(word).collect()
}

/// By which of their features articles fit a customer, for people; empty if the schema requires nothing.
pub(super) fn fitting(features: &Features, schema: &Schema) -> String {
    let requiring = schema.features().iter().filter(|feature| !feature.requires.is_empty());
    let (known, unknown): (Vec<&Feature>, Vec<&Feature>) =
        requiring.partition(|feature| features.get(&feature.name).is_some());
    let list = |features: &[&Feature], last: &str| {
        let labels: Vec<&str> = features.iter().map(|feature| feature.label.as_str()).collect();
        match &labels[..] {
            [] => String::new(),
            [only] => (*only).to_owned(),
            [others @ .., end] => format!("{} {last} {end}", others.join(", ")),
        }
    };
    let mut sentences = Vec::new();
    if !known.is_empty() {
        sentences.push(format!("Suggestions fit the customer’s {}.", list(&known, "and")));
    }
    if !unknown.is_empty() {
        sentences.push(format!("Without {} in the profile, any fits.", list(&unknown, "or")));
    }
    sentences.join(" ")
}

/// A value, with the feature's label if the value alone could belong to another feature.
pub(super) fn words(feature: &Feature, value: &FeatureValue, schema: &Schema) -> String {
    let bare = value_words(feature, value);
    if feature.excludes.is_some() {
        let each = bare.split('/').filter(|word| !word.is_empty()).map(|word| format!("no {word}"));
        return each.collect::<Vec<_>>().join(", ");
    }
    match (&feature.kind, value) {
        (Kind::Category, FeatureValue::Text(word)) if is_ambiguous(feature, word, schema) => {
            format!("{} {bare}", feature.label)
        }
        _ => bare,
    }
}

/// As the end of "because": `their fit is slim`, `they never wear heel`.
pub(super) fn clause(feature: &Feature, value: &FeatureValue, whose: &str) -> String {
    let (label, words) = (&feature.label, value_words(feature, value));
    match feature.kind {
        _ if feature.excludes.is_some() => format!("they never wear {words}"),
        Kind::Set => format!("{whose} {label} are {words}"),
        Kind::Category | Kind::Number { .. } => format!("{whose} {label} is {words}"),
    }
}

/// The value without a label: `navy/blue`, `58 kg`.
pub(super) fn value_words(feature: &Feature, value: &FeatureValue) -> String {
    match (value, &feature.kind) {
        (FeatureValue::Text(word), _) => spaced(word),
        (FeatureValue::Many(words), _) => words.iter().map(|word| spaced(word)).collect::<Vec<_>>().join("/"),
        // "28" is an age by itself; other numbers need their unit.
        (FeatureValue::Number(number), Kind::Number { unit, .. }) if !unit.is_empty() && unit != "years" => {
            format!("{number} {unit}")
        }
        (FeatureValue::Number(number), _) => number.to_string(),
    }
}

/// `trench-coat` as `trench coat`.
pub(super) fn spaced(word: &str) -> String {
    word.replace(['-', '_'], " ")
}

fn is_ambiguous(feature: &Feature, word: &str, schema: &Schema) -> bool {
    let short = word.chars().count() <= 3;
    let others =
        schema.features().iter().filter(|other| other.name != feature.name && other.excludes.is_none());
    short || others.flat_map(|other| &other.values).any(|value| value == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_customer_reads_as_in_the_paper() {
        let text = |text: &str| FeatureValue::Text(text.into());
        let many = |words: &[&str]| FeatureValue::Many(words.iter().map(ToString::to_string).collect());
        let features: Features = [
            ("gender".into(), text("female")),
            ("age".into(), FeatureValue::Number(28.0)),
            ("weight".into(), FeatureValue::Number(58.0)),
            ("height".into(), FeatureValue::Number(172.0)),
            ("preferred_colours".into(), many(&["grey", "red", "black"])),
            ("fit".into(), text("slim")),
            ("nogo_types".into(), many(&["heel", "trench-coat"])),
            ("price_tops".into(), text("lower")),
            ("top_size".into(), text("M")),
            ("unknown".into(), text("left out")),
        ]
        .into_iter()
        .collect();
        assert_eq!(
            line(&features, &Schema::default_schema()),
            "female, 28, 172 cm, 58 kg, slim, grey/red/black, no heel, no trench coat, top size M, \
             price for tops lower"
        );
    }

    #[test]
    fn people_read_by_which_features_articles_fit() {
        let text = |text: &str| FeatureValue::Text(text.into());
        let mut features: Features = [("gender".to_owned(), text("female"))].into_iter().collect();
        let schema = Schema::default_schema();
        assert_eq!(
            fitting(&features, &schema),
            "Suggestions fit the customer’s gender. Without top size, bottom size or shoe size in the profile, any fits."
        );
        let sizes = ["top_size", "bottom_size", "shoe_size"].map(|name| (name.to_owned(), text("38")));
        features = features.overridden_by(sizes.into_iter().collect());
        let known: Vec<String> =
            super::sizes(&features, &schema).into_iter().map(|word| word.words).collect();
        assert_eq!(known, ["female", "38", "38", "38"]);
        assert_eq!(
            fitting(&features, &schema),
            "Suggestions fit the customer’s gender, top size, bottom size and shoe size."
        );
        let plain =
            Schema::parse("name = \"s\"\n[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"b\"]");
        assert_eq!(fitting(&features, &plain.unwrap()), "");
    }
}
