use sha2::{Digest, Sha256};

use super::*;
use crate::domain::fold_for;

fn text(word: &str) -> FeatureValue {
    FeatureValue::Text(word.into())
}

fn many(words: &[&str]) -> FeatureValue {
    FeatureValue::Many(words.iter().map(ToString::to_string).collect())
}

fn refused(toml: &str) -> String {
    Schema::parse(toml).unwrap_err().to_string()
}

fn profile(given: &[(&str, FeatureValue)]) -> Features {
    given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

const SMALL: &str = r#"
    name = "small"
    feature = [
        {name = "gender", kind = "category", values = ["female", "male"]},
        {name = "colours", kind = "set", values = ["red", "green", "blue"]},
        {name = "age", kind = "number", edges = [18, 30]},
        {name = "never", kind = "set", values = ["coat", "hat"], excludes = "type"},
    ]
"#;

#[test]
fn a_profile_becomes_indices() {
    let schema = Schema::parse(SMALL).unwrap();
    let given = profile(&[
        ("gender", text("male")),
        ("colours", many(&["blue", "red", "blue"])),
        ("age", FeatureValue::Number(18.0)),
    ]);
    let encoding = schema.encode(&given).unwrap();
    assert_eq!(encoding.indices, [vec![2], vec![1, 3], vec![2], vec![]]);
    assert_eq!(encoding.warnings, []);
    for (age, bucket) in [(-5.0, 1), (17.9, 1), (18.0, 2), (29.9, 2), (30.0, 3), (1e9, 3)] {
        let encoding = schema.encode(&profile(&[("age", FeatureValue::Number(age))])).unwrap();
        assert_eq!(encoding.indices[2], [bucket], "age {age}");
    }
    assert!(schema.encode(&profile(&[("age", FeatureValue::Number(f64::NAN))])).is_err());
    assert_eq!(schema.features().iter().map(Feature::rows).collect::<Vec<_>>(), [3, 4, 4, 3]);
}

#[test]
fn a_whole_number_is_a_word_where_words_are_expected() {
    let schema = Schema::parse(
        r#"
        name = "shoes"
        feature = [
            {name = "size", kind = "category", values = ["37", "38"]},
            {name = "floors", kind = "set", values = ["0", "-1"], excludes = "floor"},
        ]
        "#,
    )
    .unwrap();
    let number = FeatureValue::Number;
    let encode = |name, value| schema.encode(&profile(&[(name, value)]));
    for (name, value, rows) in [
        ("size", number(38.0), [vec![2], vec![]]),
        ("size", text("38"), [vec![2], vec![]]),
        ("size", number(99.0), [vec![], vec![]]),
        ("floors", number(-1.0), [vec![], vec![2]]),
        ("floors", number(-0.0), [vec![], vec![1]]),
    ] {
        assert_eq!(encode(name, value).unwrap().indices, rows, "{name}");
    }
    for (name, value, said) in [
        ("size", number(38.5), "a string or a whole number, found the number 38.5"),
        ("size", number(1e16), "a string or a whole number, found the number 10000000000000000"),
        ("size", many(&["38"]), "a string or a whole number, found a list of 1"),
        ("floors", number(f64::NAN), "a list of strings or whole numbers, found the number NaN"),
    ] {
        let errors = encode(name, value).unwrap_err();
        assert_eq!(errors[0].to_string(), format!("feature {name:?} takes {said}"));
    }
    for (name, given, kept) in
        [("size", 38.0, text("38")), ("size", 38.5, number(38.5)), ("floors", 3.0, many(&["3"]))]
    {
        assert_eq!(*schema.feature(name).unwrap().normalise(Cow::Owned(number(given))), kept);
    }
    let never = profile(&[("floors", number(-1.0))]);
    assert_eq!(schema.exclusions(&never).collect::<Vec<_>>(), [("floor", "-1".into())]);
    assert_eq!(schema.exclusions(&profile(&[])).count(), 0);
}

#[test]
fn an_invalid_schema_says_why() {
    assert_eq!(refused("name = \"x\""), "a schema has at least one [[feature]], found none");
    assert!(refused("nmae = 1").contains("nmae"), "names the field");
    let name = "a feature's name contains only";
    let no_number = "feature \"a\": only a number takes edges or a unit";
    let of_number = "feature \"a\": a number ";
    for (feature, said) in [
        ("name = \"Ä\"\nkind = \"set\"\nvalues = [\"a\"]", name),
        ("name = \"id\"\nkind = \"set\"\nvalues = [\"a\"]", name),
        ("name = \"a\"\nkind = \"number\"\nedges = [2, 1]", "edges must be finite and increase"),
        ("name = \"a\"\nkind = \"set\"", "needs values"),
        ("name = \"a\"\nkind = \"set\"\nvalues = []", "needs values"),
        ("name = \"a\"\nkind = \"category\"\nvalues = [\"b\", \"b\"]", "twice"),
        ("name = \"a\"\nkind = \"set\"\nvalues = [\"b\"]\nedges = [1]", no_number),
        ("name = \"a\"\nkind = \"category\"\nvalues = [\"b\"]\nunit = \"cm\"", no_number),
        ("name = \"a\"\nkind = \"number\"\nedges = [1]\nvalues = [\"b\"]", of_number),
        ("name = \"a\"\nkind = \"number\"\nedges = [1]\nexcludes = \"type\"", of_number),
        (
            "name = \"a\"\nkind = \"number\"\nedges = [1]\nrequires = {attribute = \"b\"}",
            "feature \"a\": a number cannot require",
        ),
        ("name = \"a\"\nkind = \"set\"\nvalues = [\"a\"]\ntypes = []", "leave it out for all"),
    ] {
        let message = refused(&format!("name = \"x\"\n[[feature]]\n{feature}"));
        assert!(message.contains(said), "{feature}: {message}");
    }
    for (requires, said) in [
        ("3", "is a table such as {attribute = \"sizes\", types = [\"jeans\"]}, or a list of tables"),
        ("{}", "attribute"),
        ("{attribute = \"sizes\", type = [\"jeans\"]}", "unknown field `type`"),
        ("{attribute = \" \"}", "names no attribute"),
        ("{attribute = \"sizes\", types = []}", "leave it out for all"),
        (
            "{attribute = \"sizes\", values = {wide = \"XL\"}}",
            "maps \"wide\", which is not one of the feature's values",
        ),
        ("{attribute = \"sizes\", values = {slim = []}}", "maps \"slim\" to no word"),
        ("{attribute = \"sizes\", values = {slim = 3}}", "a word or a list of words"),
        ("[]", "an empty list"),
    ] {
        let cut = "name = \"cut\"\nkind = \"category\"\nvalues = [\"slim\"]";
        let message = refused(&format!("name = \"x\"\n[[feature]]\n{cut}\nrequires = {requires}"));
        assert!(message.starts_with("feature \"cut\": ") && message.contains(said), "{requires}: {message}");
    }
    let two = "name = \"x\"\n[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"a\"]\n".to_owned()
        + "[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"a\"]";
    assert_eq!(refused(&two), "the schema has two features named \"a\"");
}

const SIZED: &str = r#"
    name = "sized"
    [[feature]]
    name = "gender"
    kind = "category"
    values = ["female", "male"]
    # Women's and men's articles.
    requires = {attribute = "Gender", values = {female = ["Women", "unisex"], male = "men"}}

    # What fits.
    [[feature]]
    name = "size"
    kind = "set"
    values = ["M", "L", "38"]
    requires = [
        {attribute = "sizes", types = ["T-Shirt", "coat"]},
        {attribute = "type"},
    ]
"#;

#[test]
fn a_feature_requires_words_of_articles() {
    let schema = Schema::parse(SIZED).unwrap();
    let [gender, size] = schema.features() else { panic!("two features") };
    let [requirement] = &gender.requires[..] else { panic!("one requirement") };
    assert_eq!((requirement.attribute.as_str(), requirement.types.len()), ("Gender", 0));
    assert!(!requirement.is_of_sizes());
    assert_eq!(requirement.fitting_words(&text("female")), ["unisex", "women"]);
    assert_eq!(requirement.fitting_words(&text("Male ")), ["men"], "compared as no-gos are");
    assert_eq!(requirement.fitting_words(&text("divers")), ["divers"], "a value without an entry is itself");
    assert_eq!(requirement.fitting_words(&many(&["female", "male"])), ["men", "unisex", "women"]);
    let [sizes, of_type] = &size.requires[..] else { panic!("two requirements") };
    assert!(sizes.is_of_sizes() && !of_type.is_of_sizes());
    assert_eq!(sizes.types, ["t shirt", "coat"], "as types are compared");
    let is_about = |kind: &str| sizes.is_about(&[fold_for("type", kind)]);
    assert!(is_about("Coats") && is_about("T Shirts") && !is_about("hat"));
    let excludes_some =
        |words: &[&str]| sizes.excludes_some(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert!(
        excludes_some(&["s", "m"]) && !excludes_some(&[]) && !excludes_some(&["o", "s", "o/s"]),
        "one size fits all"
    );
    assert!(gender.requires[0].excludes_some(&["uni".into()]), "only of sizes");
    assert_eq!(sizes.fitting_words(&text("40,5")), ["40.5"]);
    assert_eq!(of_type.fitting_words(&text("Parkas")), ["parka"]);
    assert_eq!(sizes.fitting_words(&FeatureValue::Number(38.0)), ["38"]);
    assert_eq!(sizes.fitting_words(&many(&["M", " ", "L"])), ["l", "m"]);
    assert!(sizes.fitting_words(&many(&[])).is_empty(), "an absent value excludes nothing");
}

#[test]
fn models_do_not_depend_on_what_features_require() {
    let schema = Schema::parse(SIZED).unwrap();
    let is_plain = |line: &&str| {
        !["requires", "# Women", "{attribute", "]"].iter().any(|start| line.trim().starts_with(start))
    };
    let plain = SIZED.lines().filter(is_plain).collect::<Vec<_>>().join("\n") + "\n";
    assert_eq!(schema.learned_source(), plain);
    assert_eq!(Schema::parse(&plain).unwrap().learned_source(), plain, "as it was before");
    assert_eq!(schema.features().len(), 2);
    let given = profile(&[("gender", text("male")), ("size", many(&["L"]))]);
    assert_eq!(schema.encode(&given), Schema::parse(&plain).unwrap().encode(&given));
    // In this notation a line may hold more than the requirement.
    let tables = "name = \"x\"\nfeature = [{name = \"a\", kind = \"set\", values = [\"b\"], requires = {attribute = \"c\"}}]";
    assert_eq!(Schema::parse(tables).unwrap().learned_source(), tables);
    let default = Schema::default_schema();
    let digest = hex::encode(Sha256::digest(default.learned_source()));
    assert_eq!(digest, "58f5d466152ff20443b7cddff8d35ad857dd841bd801152223c4bb4c043b4b89", "as runs know it");
    assert_eq!(default.features().iter().filter(|feature| !feature.requires.is_empty()).count(), 4);
}

#[test]
fn a_schema_says_which_features_are_of_outfits() {
    let of_outfits = |schema: &Schema| -> Vec<String> {
        let found = schema.features().iter().filter(|feature| feature.of_outfit);
        found.map(|feature| feature.name.clone()).collect()
    };
    assert_eq!(of_outfits(&Schema::default_schema()), ["occasion"], "an older schema does not say so");
    let feature = |name: &str, more: &str| {
        format!("[[feature]]\nname = \"{name}\"\nkind = \"category\"\nvalues = [\"a\"]\n{more}")
    };
    let plain = format!("name = \"x\"\n{}{}", feature("occasion", ""), feature("season", ""));
    let said = format!(
        "name = \"x\"\n{}{}",
        feature("occasion", "of = \"customer\"\n"),
        feature("season", "# Worn then.\nof = \"outfit\"\nrequires = {attribute = \"season\"}\n")
    );
    let schema = Schema::parse(&said).unwrap();
    assert_eq!(of_outfits(&schema), ["season"]);
    assert_eq!(schema.learned_source(), plain, "models do not depend on it");
    assert_eq!(Schema::parse(&plain).unwrap().learned_source(), plain);
    let wrong = said.replace("\"outfit\"", "\"shop\"");
    assert!(refused(&wrong).contains("`customer` or `outfit`"));
}

#[test]
fn a_schema_says_what_people_call_a_customer() {
    let name = |display: &str, given: &[(&str, &str)]| {
        let given: Vec<(&str, FeatureValue)> = given.iter().map(|(name, word)| (*name, text(word))).collect();
        Schema::parse(&format!("{display}{SMALL}")).unwrap().display_name(&profile(&given))
    };
    assert_eq!(name("", &[("name", "Jana Müller")]).as_deref(), Some("Jana Müller"));
    assert_eq!(name("", &[("gender", "female")]), None);
    let both = "display = \"{first_name} {last_name}\"\n";
    let given = [("first_name", "Jana"), ("last_name", "Müller")];
    assert_eq!(name(both, &given).as_deref(), Some("Jana Müller"));
    assert_eq!(name(both, &given[1..]).as_deref(), Some("Müller"), "what is missing leaves no gap");
    let schema = Schema::parse(&format!("{both}{SMALL}")).unwrap();
    let given = profile(&[("first_name", text("Jana")), ("photo", text("https://x"))]);
    assert_eq!(schema.encode(&given).unwrap().warnings, [], "these are for people");
    assert_eq!(schema.learned_source(), Schema::parse(SMALL).unwrap().learned_source());
    for wrong in ["name", "{", "{a", "a}", "{}", "{{a}}"] {
        let message = refused(&format!("display = \"{wrong}\"\n{SMALL}"));
        assert!(message.contains("names features in braces"), "{wrong}: {message}");
    }
}

#[test]
fn a_schema_says_which_articles_a_feature_is_about() {
    let schema = Schema::default_schema();
    let concerns = |name: &str, kind: &str| {
        schema.feature(name).unwrap().concerns(&many(&["hat"]), &[fold_for("type", kind)])
    };
    for (name, about, other) in [
        ("top_size", "Dresses", "sandal"),
        ("shoe_size", "sandal", "dress"),
        ("price_shoes", "Sandals", "bag"),
        ("price_bottoms", "jumpsuit", "coat"),
        ("body_type", "coat", "bag"),
        ("nogo_types", "hats", "coat"),
    ] {
        assert!(concerns(name, about) && !concerns(name, other), "{name}");
    }
    assert!(concerns("gender", "bag") && concerns("age", "bag"), "what says nothing is about everything");
}

#[test]
fn a_schema_says_how_large_outfits_are() {
    let said = |line: &str| {
        format!("{line}\nname = \"x\"\n[[feature]]\nname = \"a\"\nkind = \"set\"\nvalues = [\"b\"]\n")
    };
    let unsaid = said("");
    let (new, released) = (Schema::parse(&unsaid).unwrap(), Schema::parse_released(&unsaid).unwrap());
    assert_eq!(new.outfit_size(), OutfitSize { least: 2, most: 12 });
    assert_eq!(released.outfit_size(), OutfitSize { least: 4, most: 8 });
    for schema in [new, released] {
        assert_eq!(schema.learned_source(), unsaid, "models do not depend on it");
        let read = Schema::parse(schema.source()).unwrap();
        assert_eq!(
            read,
            Schema { learned: read.learned.clone(), ..schema },
            "it says its size wherever it is copied to"
        );
        assert_eq!(read.learned_source(), unsaid);
    }
    let narrow = Schema::parse_released(&said("outfit = {least = 2, most = 3}")).unwrap();
    assert_eq!(narrow.outfit_size(), OutfitSize { least: 2, most: 3 });
    for (least, most) in [(1, 8), (4, 13), (5, 4)] {
        let message = refused(&said(&format!("outfit = {{least = {least}, most = {most}}}")));
        let found = format!(
            "`outfit` is a range within 2 to 12, such as {{least = 2, most = 6}}; found {{least = {least}, most = {most}}}"
        );
        assert_eq!(message, found);
    }
    assert_eq!(Schema::paper_schema().outfit_size(), OutfitSize::PAPER);
    assert_eq!(Schema::paper_schema().learned_source(), Schema::default_schema().learned_source());
}

#[test]
fn rows_of_features_have_names() {
    let schema = Schema::default_schema();
    for (feature, row, name) in [
        ("gender", 0, "not given"),
        ("gender", 2, "male"),
        ("age", 1, "under 18 years"),
        ("age", 2, "18 to under 22 years"),
        ("age", 13, "70 and over years"),
    ] {
        assert_eq!(schema.feature(feature).unwrap().row_name(row), name);
    }
    let rows = |feature: &str, value: FeatureValue| schema.feature(feature).unwrap().rows_of(Some(&value));
    assert_eq!(rows("age", FeatureValue::Number(18.0)), [2]);
    assert_eq!(rows("gender", text("male")), [2]);
    assert_eq!(rows("gender", text("unheard of")), [0]);
    assert_eq!(schema.feature("gender").unwrap().rows_of(None), [0]);
}
