//! A data folder as indices.

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result};
use atelier::domain::{ArticleId, CustomerId, Split, Vocabulary};

use super::{
    Attributes, Data, Folder, Outfits, attributes::AttributesBuilder, features::FeatureTable,
    fingerprint::Fingerprint, outfits::place, split::Splits,
};

impl Data {
    /// Reads the folder's three tables, in whichever format, and its schema (else the built-in one).
    ///
    /// # Errors
    /// If a table is missing or a row is bad: `import` makes a folder of which this cannot be said.
    pub fn load(path: &Path) -> Result<Self> {
        let mut folder = Folder::open(path)?;
        let mut fingerprint = Fingerprint::new();
        fingerprint.text(folder.schema().source());
        let (ids, kinds, attributes) = articles(&mut folder, &mut fingerprint)?;
        let vocabulary = Vocabulary::new(ids).with_context(|| path.display().to_string())?;
        let (types, type_of) = numbered(&kinds);
        let (customers, profiles) = customers(&mut folder, &mut fingerprint)?;
        let index: HashMap<&CustomerId, u32> = customers.iter().zip(0..).collect();
        let (outfits, named) = outfits(&mut folder, &vocabulary, &index, &mut fingerprint)?;
        let splits = Splits::new(&outfits, &named, customers.len());
        Ok(Self {
            name: name_of(path)?,
            schema: folder.schema().clone(),
            vocabulary,
            types,
            type_of,
            attributes,
            customers,
            profiles,
            outfits,
            splits,
            fingerprint: fingerprint.finish(),
        })
    }
}

/// Their ids, their types, and what they share.
fn articles(
    folder: &mut Folder,
    fingerprint: &mut Fingerprint,
) -> Result<(Vec<ArticleId>, Vec<String>, Attributes)> {
    let (mut ids, mut kinds, mut attributes) = (Vec::new(), Vec::new(), AttributesBuilder::default());
    folder.articles(|article| {
        fingerprint.text(article.id.as_str());
        fingerprint.text(article.kind());
        kinds.push(article.kind().to_owned());
        attributes.push(&article);
        ids.push(article.id);
        Ok(())
    })?;
    Ok((ids, kinds, attributes.finish()))
}

/// The types, sorted, and each article's place among them.
fn numbered(kinds: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut types = kinds.to_vec();
    types.sort_unstable();
    types.dedup();
    let place_of = |of: &String| place(types.binary_search(of).expect("it is among them; this is a bug"));
    let type_of = kinds.iter().map(place_of).collect();
    (types, type_of)
}

fn customers(folder: &mut Folder, fingerprint: &mut Fingerprint) -> Result<(Vec<CustomerId>, FeatureTable)> {
    let schema = folder.schema().clone();
    let mut ids = Vec::new();
    let mut profiles = FeatureTable::new(schema.features().len());
    folder.customers(|customer| {
        let encoding = schema.encode(&customer.features).expect("checked when read; this is a bug");
        fingerprint.text(customer.id.as_str());
        encoding.indices.iter().for_each(|values| fingerprint.values(values));
        profiles.push(&encoding.indices);
        ids.push(customer.id);
        Ok(())
    })?;
    Ok((ids, profiles))
}

fn outfits(
    folder: &mut Folder,
    vocabulary: &Vocabulary,
    customers: &HashMap<&CustomerId, u32>,
    fingerprint: &mut Fingerprint,
) -> Result<(Outfits, Vec<Split>)> {
    let schema = folder.schema().clone();
    let mut outfits = Outfits::default();
    let mut named = Vec::new();
    folder.outfits(|outfit| {
        let known = "the checker knows every id of the folder; this is a bug";
        let customer = *customers.get(&outfit.customer).expect(known);
        let articles: Vec<u32> =
            outfit.articles().iter().map(|id| vocabulary.index_of(id.as_str()).expect(known)).collect();
        let encoding = schema.encode(&outfit.features).expect("checked when read; this is a bug");
        // Given with an unknown value is given: such an outfit's occasion is not the profile's.
        let given = schema.features().iter().map(|feature| outfit.features.get(&feature.name).is_some());
        let overrides: Vec<(usize, Vec<u32>)> = given
            .zip(encoding.indices)
            .enumerate()
            .filter_map(|(place, (given, values))| given.then_some((place, values)))
            .collect();
        let split = outfit.split.unwrap_or(Split::Train);
        fingerprint.number(customer.into());
        fingerprint.values(&articles);
        fingerprint.text(split.as_str());
        fingerprint.number(overrides.len() as u64);
        for (feature, values) in &overrides {
            fingerprint.number(*feature as u64);
            fingerprint.values(values);
        }
        outfits.push(customer, articles, overrides);
        named.push(split);
        Ok(())
    })?;
    Ok((outfits, named))
}

/// The folder's own name, even where it is given as `.`.
fn name_of(folder: &Path) -> Result<String> {
    let whole = folder.canonicalize().with_context(|| folder.display().to_string())?;
    Ok(whole.file_name().unwrap_or_default().to_string_lossy().into_owned())
}
