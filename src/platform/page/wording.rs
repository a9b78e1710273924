//! A customer in words, as in the paper's figure 2: "female, 28, 58 kg, 172 cm, gray/red/black, slim, no heels".

use atelier_core::domain::{Feature, FeatureValue, Features, Kind, Schema};

/// One feature in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileWord {
    /// The feature's label, which the words may omit.
    pub(crate) label: String,
    pub(crate) words: String,
}

/// In the schema's order. Features outside the schema are omitted: models do not see them either.
pub(crate) fn describe(features: &Features, schema: &Schema) -> Vec<ProfileWord> {
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
pub(crate) fn line(features: &Features, schema: &Schema) -> String {
    let words: Vec<String> = describe(features, schema).into_iter().map(|word| word.words).collect();
    words.join(", ")
}

/// The features that articles must fit, such as sizes: the values alone, with their labels.
pub(crate) fn sizes(features: &Features, schema: &Schema) -> Vec<ProfileWord> {
    let requiring = schema.features().iter().filter(|feature| !feature.requires.is_empty());
    let word = |feature: &Feature| {
        let words = value_words(feature, features.get(&feature.name)?);
        Some(ProfileWord { label: feature.label.clone(), words })
    };
    requiring.filter_map(word).collect()
}

/// By which of their features articles fit a customer, for people; empty if the schema requires nothing.
pub(crate) fn fitting(features: &Features, schema: &Schema) -> String {
    let requiring = schema.features().iter().filter(|feature| !feature.requires.is_empty());
    let (known, unknown): (Vec<&Feature>, Vec<&Feature>) =
        requiring.partition(|feature| features.get(&feature.name).is_some());
    let labels = |features: &[&Feature], last: &str| {
        let labels: Vec<String> = features.iter().map(|feature| feature.label.clone()).collect();
        list(&labels, last)
    };
    let mut sentences = Vec::new();
    if !known.is_empty() {
        sentences.push(format!("Suggestions fit the customer’s {}.", labels(&known, "and")));
    }
    if !unknown.is_empty() {
        sentences.push(format!("Without {} in the profile, any fits.", labels(&unknown, "or")));
    }
    sentences.join(" ")
}

/// A value, with the feature's label if the value alone could belong to another feature.
pub(crate) fn words(feature: &Feature, value: &FeatureValue, schema: &Schema) -> String {
    let bare = value_words(feature, value);
    if feature.excludes.is_some() {
        let each = no_gos(feature, value).into_iter().map(|word| format!("no {word}"));
        return each.collect::<Vec<_>>().join(", ");
    }
    if let Some(words) = price_words(feature, value) {
        return words;
    }
    match (&feature.kind, value) {
        (Kind::Category, FeatureValue::Text(word)) if is_ambiguous(feature, word, schema) => {
            format!("{} {bare}", feature.label)
        }
        _ => bare,
    }
}

/// As the end of "because": `their fit is slim`, `they never wear heels`, `they prefer lower-priced tops`.
pub(crate) fn clause(feature: &Feature, value: &FeatureValue, whose: &str) -> String {
    let (label, words) = (&feature.label, value_words(feature, value));
    match feature.kind {
        _ if feature.excludes.is_some() => {
            format!("they never wear {}", list(&no_gos(feature, value), "or"))
        }
        _ if let Some(words) = price_words(feature, value) => format!("they prefer {words}"),
        Kind::Set => format!("{whose} {label} are {words}"),
        Kind::Category | Kind::Number { .. } => format!("{whose} {label} is {words}"),
    }
}

/// Each word that the value excludes, in words: types are in the plural.
fn no_gos(feature: &Feature, value: &FeatureValue) -> Vec<String> {
    let is_type = feature.excludes.as_deref() == Some("type");
    let words = value.words().iter().map(|word| spaced(word));
    words.map(|word| if is_type { plural(&word) } else { word }).collect()
}

/// `lower-priced tops`, if the feature is the price of something.
fn price_words(feature: &Feature, value: &FeatureValue) -> Option<String> {
    let (things, FeatureValue::Text(word)) = (feature.label.strip_prefix("price for ")?, value) else {
        return None;
    };
    let word = spaced(word);
    Some(match word.as_str() {
        "budget" | "luxury" => format!("{word} {things}"),
        "middle" => format!("mid-priced {things}"),
        "upper" => format!("higher-priced {things}"),
        _ => format!("{word}-priced {things}"),
    })
}

/// A problem's text, which begins small, as a sentence of a page.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let end = if text.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    first.chain(letters).chain(end.chars()).collect()
}

/// A type of articles in the English plural: `coats`, `trench coats`, `dresses`, `jeans`.
pub(crate) fn plural(kind: &str) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| kind.ends_with(ending));
    match () {
        () if ends(&["ss", "sh", "ch", "x", "z"]) => format!("{kind}es"),
        () if kind.is_empty() || ends(&["s", "wear", "ery"]) => kind.to_owned(),
        () if ends(&["ay", "ey", "oy", "uy"]) => format!("{kind}s"),
        () if let Some(stem) = kind.strip_suffix('y') => format!("{stem}ies"),
        () if let Some(stem) = kind.strip_suffix("rf") => format!("{stem}rves"),
        () => format!("{kind}s"),
    }
}

/// `a`, `a or b`, `a, b or c`
pub(crate) fn list(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., end] => format!("{} {last} {end}", others.join(", ")),
    }
}

/// The most words of a set that pages show.
const MOST_WORDS: usize = 8;

/// The value without a label: `navy/blue`, `58 kg`.
pub(crate) fn value_words(feature: &Feature, value: &FeatureValue) -> String {
    match (value, &feature.kind) {
        (FeatureValue::Text(word), _) => spaced(word),
        (FeatureValue::Many(words), _) => {
            let shown = if words.len() > MOST_WORDS + 1 { &words[..MOST_WORDS] } else { words };
            let text = shown.iter().map(|word| spaced(word)).collect::<Vec<_>>().join("/");
            match words.len() - shown.len() {
                0 => text,
                more => format!("{text} and {more} more"),
            }
        }
        // "28" is an age by itself; other numbers need their unit.
        (FeatureValue::Number(number), Kind::Number { unit, .. }) if !unit.is_empty() && unit != "years" => {
            format!("{number} {unit}")
        }
        (FeatureValue::Number(number), _) => number.to_string(),
    }
}

/// A feature's label, or the name of one that the schema does not have.
pub(crate) fn label(name: &str, schema: &Schema) -> String {
    schema.feature(name).map_or_else(|| spaced(name), |feature| feature.label.clone())
}

/// `trench-coat` as `trench coat`. A hyphen after a single letter stays: `t-shirt`.
pub(crate) fn spaced(word: &str) -> String {
    let mut letters = 0;
    let space = |c: char| {
        let after_one = letters == 1;
        letters = if c.is_alphanumeric() { letters + 1 } else { 0 };
        match c {
            '-' if after_one => '-',
            '-' | '_' => ' ',
            other => other,
        }
    };
    word.chars().map(space).collect()
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
    use crate::platform::db::json::{parse_feature, parse_features};

    #[test]
    fn the_papers_customer_reads_as_in_the_paper() {
        let features = r#"{"gender": "female", "age": 28, "weight": 58, "height": 172, "fit": "slim", "top_size": "M",
            "preferred_colours": ["grey", "red", "black"], "nogo_types": ["heel", "trench-coat"],
            "price_tops": "lower", "unknown": "left out"}"#;
        assert_eq!(
            line(&parse_features(features).unwrap(), &Schema::default_schema()),
            "female, 28, 172 cm, 58 kg, slim, grey/red/black, no heels, no trench coats, top size M, \
             lower-priced tops"
        );
    }

    #[test]
    fn reasons_read_as_a_stylist_says_them() {
        let schema = Schema::default_schema();
        for (name, value, expected) in [
            ("price_tops", r#""lower""#, "they prefer lower-priced tops"),
            ("price_shoes", r#""middle""#, "they prefer mid-priced shoes"),
            ("price_outerwear", r#""luxury""#, "they prefer luxury outerwear"),
            ("nogo_types", r#"["heel", "dress"]"#, "they never wear heels or dresses"),
            ("nogo_materials", r#"["leather"]"#, "they never wear leather"),
            ("fit", r#""slim""#, "their fit is slim"),
        ] {
            let value = parse_feature(value).unwrap();
            assert_eq!(clause(schema.feature(name).unwrap(), &value, "their"), expected);
        }
    }

    #[test]
    fn long_sets_are_cut() {
        let source = "name = \"s\"\n[[feature]]\nname = \"had\"\nkind = \"set\"\nvalues = [\"1\"]";
        let schema = Schema::parse(source).unwrap();
        let words = |count: u32| {
            let value = FeatureValue::Many((1..=count).map(|number| number.to_string()).collect());
            value_words(&schema.features()[0], &value)
        };
        assert_eq!(words(9), "1/2/3/4/5/6/7/8/9");
        assert_eq!(words(100), "1/2/3/4/5/6/7/8 and 92 more");
        assert_eq!(fitting(&Features::default(), &schema), "", "no feature is a size");
    }

    #[test]
    fn types_have_a_plural() {
        let all = "coat, trench coat, dress, jeans, tights, scarf, hoody, beanie, tote bag, jewellery";
        let plurals =
            "coats, trench coats, dresses, jeans, tights, scarves, hoodies, beanies, tote bags, jewellery";
        assert_eq!(all.split(", ").map(plural).collect::<Vec<_>>().join(", "), plurals);
        let names = ["t-shirt", "rain-jacket", "u_v-neck", "-x"].map(spaced);
        assert_eq!(names, ["t-shirt", "rain jacket", "u v-neck", " x"]);
    }
}
