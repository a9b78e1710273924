//! The world's rows as the domain's: what the three tables say of an article, a customer, an outfit.

use atelier::domain::{Article, ArticleId, Customer, CustomerId, FeatureValue, Features, Outfit, Split};
use serde_json::{Map, Value, json};

use super::{
    brands::BRANDS,
    catalogue::ArticleTraits,
    lexicon::{ArticleType, Material, Occasion, Pattern, Word},
    profile::Profile,
};

pub(crate) fn article_id(number: usize) -> ArticleId {
    ArticleId::new(format!("a-{:05}", number + 1)).expect("such an id is sound; this is a bug")
}

pub(crate) fn customer_id(number: usize) -> CustomerId {
    CustomerId::new(format!("c-{:06}", number + 1)).expect("such an id is sound; this is a bug")
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
    Article::new(article_id(number), traits.kind.word(), attributes)
        .expect("the world's articles are sound; this is a bug")
}

/// Short and human: "Fjell wool coat", "Juno floral viscose dress".
fn name(traits: &ArticleTraits) -> String {
    let mut words = vec![BRANDS[usize::from(traits.brand)].name.to_owned()];
    if traits.pattern != Pattern::Plain {
        words.push(traits.pattern.word().to_owned());
    }
    let told = matches!(traits.material, Material::Metal)
        || matches!(
            traits.kind,
            ArticleType::Jeans
                | ArticleType::DenimJacket
                | ArticleType::LeatherJacket
                | ArticleType::Sunglasses
        );
    if !told {
        words.push(traits.material.word().to_owned());
    }
    words.push(traits.kind.word().replace('-', " "));
    words.join(" ")
}

pub(crate) fn customer(number: usize, profile: &Profile) -> Customer {
    Customer { id: customer_id(number), features: profile.features() }
}

pub(crate) fn outfit(
    customer: CustomerId,
    articles: Vec<ArticleId>,
    split: Split,
    occasion: Option<Occasion>,
) -> Outfit {
    let features: Features = occasion
        .map(|occasion| ("occasion".to_owned(), FeatureValue::Text(occasion.word().to_owned())))
        .into_iter()
        .collect();
    Outfit::new(customer, articles, Some(split), features)
        .expect("the stylist lays four to eight different articles; this is a bug")
}
