//! Turns the world's articles, customers and outfits into rows of the domain.

use atelier_core::domain::{Article, ArticleId, Customer, CustomerId, FeatureValue, Features, Outfit};
use serde_json::{Map, Value, json};

use super::{
    NumberedOutfit,
    brands::BRANDS,
    catalogue::ArticleTraits,
    lexicon::{ArticleType, Colour, Material, Pattern, Word},
    profile::Profile,
};

fn article_id(number: usize) -> ArticleId {
    ArticleId::new(format!("a-{:05}", number + 1)).expect("the id is valid")
}

fn customer_id(number: usize) -> CustomerId {
    CustomerId::new(format!("c-{:06}", number + 1)).expect("the id is valid")
}

pub(crate) fn article(number: usize, traits: &ArticleTraits) -> Article {
    let mut attributes = Map::new();
    let mut put = |name: &str, value: Value| {
        attributes.insert(name.to_owned(), value);
    };
    put("name", json!(name(traits)));
    put("brand", json!(BRANDS[usize::from(traits.brand)].name));
    put("colour", json!(traits.colour.word()));
    put("pattern", json!(traits.pattern.word()));
    put("material", json!(traits.material.word()));
    put("style", json!(traits.style.word()));
    if let Some(fit) = traits.fit {
        put("fit", json!(fit.word()));
    }
    put("gender", json!(traits.wearer.word()));
    if let (Some((first, last)), Some(scale)) = (traits.sizes, traits.kind.family().size_scale()) {
        put("sizes", json!(scale.sizes()[usize::from(first)..=usize::from(last)]));
    }
    put("price", json!(f64::from(traits.price_cents) / 100.0));
    put("in_stock", json!(traits.in_stock));
    Article::new(article_id(number), traits.kind.word(), attributes).expect("the world's articles are valid")
}

/// A short name: "Fjell wool coat", "Juno floral viscose dress".
fn name(traits: &ArticleTraits) -> String {
    let mut words = vec![BRANDS[usize::from(traits.brand)].name.to_owned()];
    if traits.pattern != Pattern::Plain {
        words.push(traits.pattern.word().to_owned());
    }
    match (traits.material, traits.colour) {
        (Material::Metal, Colour::Yellow) => words.push("gold".to_owned()),
        (Material::Metal, Colour::Grey) => words.push("silver".to_owned()),
        (Material::Metal, _) => {}
        _ if implies_material(traits.kind) => {}
        (material, _) => words.push(material.word().to_owned()),
    }
    let kind = traits.kind.word();
    let (first, last) = kind.split_once('-').unwrap_or((kind, ""));
    // A trench coat is two words; a t-shirt and a lace-up are one.
    words.push(if matches!(last, "coat" | "jacket") { format!("{first} {last}") } else { kind.to_owned() });
    words.join(" ")
}

/// Whether the type implies the material, so that the name leaves it out.
fn implies_material(kind: ArticleType) -> bool {
    use ArticleType as T;
    matches!(kind, T::Jeans | T::DenimJacket | T::LeatherJacket | T::Sunglasses)
}

pub(crate) fn customer(number: usize, profile: &Profile) -> Customer {
    Customer { id: customer_id(number), features: profile.features() }
}

pub fn outfit(numbered: &NumberedOutfit) -> Outfit {
    let occasion = numbered.occasion.map(|occasion| FeatureValue::Text(occasion.word().to_owned()));
    let features: Features = occasion.map(|value| ("occasion".to_owned(), value)).into_iter().collect();
    let articles = numbered.articles.iter().map(|number| article_id(*number as usize)).collect();
    Outfit::new(customer_id(numbered.customer), articles, Some(numbered.split), features)
        .expect("the stylist picks different articles")
}
