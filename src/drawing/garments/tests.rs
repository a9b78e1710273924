//! Every garment in every colour, pattern and material that the default schema and the demo world have.

use std::collections::HashSet;

use super::*;
use crate::domain::Schema;

const PATTERNS: [&str; 6] = ["plain", "striped", "checked", "dotted", "floral", "printed"];
const GENDERS: [&str; 3] = ["women", "men", "unisex"];

fn words(feature: &str) -> Vec<String> {
    Schema::default_schema().feature(feature).unwrap().values.clone()
}

fn plain(kind: &str) -> String {
    garment(&Look { kind, ..Look::default() })
}

#[test]
fn every_type_has_a_drawing_of_its_own() {
    let kinds = words("nogo_types");
    assert_eq!(kinds.len(), 43);
    let drawings: HashSet<String> =
        kinds.iter().map(|kind| plain(kind)).chain([plain("spaceship")]).collect();
    assert_eq!(drawings.len(), 44);
    assert_eq!(plain("wool coat"), plain("coat"));
    assert_eq!(plain("Trench-Coat"), plain("trench-coat"));
}

#[test]
fn every_picture_is_small_and_stands_alone() {
    let (colours, materials) = (words("preferred_colours"), words("nogo_materials"));
    for kind in words("nogo_types") {
        for (place, colour) in colours.iter().enumerate() {
            for pattern in PATTERNS {
                let (material, gender) = (&materials[place % materials.len()], GENDERS[place % 3]);
                let svg = garment(&Look { kind: &kind, colour, pattern, material, gender });
                let case = format!("{colour} {pattern} {material} {kind} for {gender}");
                assert!(svg.len() < 3200, "{case}: {} bytes", svg.len());
                assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</g></svg>"), "{case}: {svg}");
                for never in ["<script", "<style", "style=", "href", "NaN", "inf"] {
                    assert!(!svg.contains(never), "{case}: {never} in {svg}");
                }
                assert_eq!(svg.matches('<').count(), svg.matches('>').count(), "{case}");
                // What is filled with a pattern has it, and by a name that says all of it.
                let named = svg.split("url(#").nth(1).and_then(|rest| rest.split(')').next());
                if let Some(name) = named {
                    assert!(svg.contains(&format!("<pattern id=\"{name}\"")), "{case}: {name}");
                } else {
                    assert!(!svg.contains("<pattern"), "{case}: a definition that nothing uses");
                }
            }
        }
    }
}

#[test]
fn colour_pattern_and_material_are_seen() {
    let coat =
        Look { kind: "coat", colour: "navy", pattern: "plain", material: "polyester", gender: "women" };
    let others = [
        Look { colour: "beige", ..coat },
        Look { pattern: "checked", ..coat },
        Look { material: "wool", ..coat },
    ];
    for other in others {
        assert_ne!(garment(&coat), garment(&other), "{other:?}");
    }
    assert_eq!(garment(&coat), garment(&Look { gender: "men", pattern: "unheard-of", ..coat }));
    let watch = |material| garment(&Look { kind: "watch", colour: "grey", material, ..Look::default() });
    assert!(
        watch("metal").contains("#c6c8ca") && !watch("leather").contains("#c6c8ca"),
        "silver is no grey leather"
    );
    let jewellery = |gender| garment(&Look { kind: "jewellery", gender, ..Look::default() });
    assert_ne!(jewellery("women"), jewellery("men"));
    let down = |material| garment(&Look { kind: "parka", material, ..Look::default() });
    assert!(down("down").len() > down("nylon").len(), "down is quilted");
}
