//! Draws every garment in every colour, pattern and material of the default schema and the demo world.

use std::collections::HashSet;

use super::*;
use crate::domain::Schema;

const PATTERNS: [&str; 6] = ["plain", "striped", "checked", "dotted", "floral", "printed"];
const GENDERS: [&str; 3] = ["women", "men", "unisex"];

fn values(feature: &str) -> Vec<String> {
    Schema::default_schema().feature(feature).unwrap().values.clone()
}

fn plain(kind: &str) -> String {
    garment(&Look { kind, ..Look::default() })
}

#[test]
fn every_type_has_a_drawing_of_its_own() {
    let kinds = values("nogo_types");
    assert_eq!(kinds.len(), 43);
    let drawings: HashSet<String> =
        kinds.iter().map(|kind| plain(kind)).chain([plain("spaceship")]).collect();
    assert_eq!(drawings.len(), 44);
    assert_eq!(plain("wool coat"), plain("coat"));
    assert_eq!(plain("Trench-Coat"), plain("trench-coat"));
}

#[test]
fn every_picture_is_small_and_self_contained() {
    let (colours, materials) = (values("preferred_colours"), values("nogo_materials"));
    for kind in values("nogo_types") {
        for (index, colour) in colours.iter().enumerate() {
            for pattern in PATTERNS {
                let (material, gender) = (&materials[index % materials.len()], GENDERS[index % 3]);
                let svg = garment(&Look { kind: &kind, colour, pattern, material, gender });
                let case = format!("{colour} {pattern} {material} {kind} for {gender}");
                assert!(svg.len() < 3200, "{case}: {} bytes", svg.len());
                assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</g></svg>"), "{case}: {svg}");
                for never in ["<script", "<style", "style=", "href", "NaN", "inf"] {
                    assert!(!svg.contains(never), "{case}: {never} in {svg}");
                }
                assert_eq!(svg.matches('<').count(), svg.matches('>').count(), "{case}");
                // The picture defines the pattern that it uses, and no other.
                let used = svg.split("url(#").nth(1).and_then(|rest| rest.split(')').next());
                if let Some(name) = used {
                    assert!(svg.contains(&format!("<pattern id=\"{name}\"")), "{case}: {name}");
                } else {
                    assert!(!svg.contains("<pattern"), "{case}: an unused definition");
                }
            }
        }
    }
}

/// Colours and patterns are asked of addresses.
#[test]
fn material_and_gender_change_the_picture() {
    let look = |kind, colour, material, gender| {
        garment(&Look { kind, colour, material, gender, pattern: "unheard-of" })
    };
    let coat = |material, gender| look("coat", "navy", material, gender);
    assert_ne!(coat("polyester", "women"), coat("wool", "women"));
    assert_eq!(coat("wool", "women"), coat("wool", "men"));
    let silver = |material| look("watch", "grey", material, "").contains("#c6c8ca");
    assert!(silver("metal") && !silver("leather"), "silver is not grey leather");
    assert_ne!(look("jewellery", "", "", "women"), look("jewellery", "", "", "men"));
    let parka = |material| look("parka", "", material, "");
    assert!(parka("down").len() > parka("nylon").len(), "down is quilted");
}

#[test]
fn every_part_of_every_drawing_is_painted() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/drawing/garments/svg");
    let drawings: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "svg"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(drawings.len(), 47);
    for drawing in drawings {
        assert!(
            drawing.contains(" class=\"across\">") || drawing.contains(" class=\"upright\">"),
            "{drawing}"
        );
        assert_eq!(
            paint::parts(&drawing).count(),
            drawing.matches("<path").count(),
            "one part a line: {drawing}"
        );
        paint::paint(&drawing, &Look::default());
    }
}
