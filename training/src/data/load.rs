//! Reading a data folder.

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result, bail};
use atelier::{
    domain::{Article, Customer, CustomerId, Outfit, Schema, Split, Vocabulary},
    exchange::{self, Checker, Files, Table, schema_of},
};

use super::{Data, Outfits, features::FeatureTable, fingerprint::Fingerprint, outfits::place, split::Splits};

impl Data {
    /// Reads the folder's three tables, in whichever format, and its schema (else the built-in one).
    ///
    /// # Errors
    /// If a table is missing or a row is bad: `import` makes a folder of which this cannot be said.
    pub fn load(folder: &Path) -> Result<Self> {
        let schema = schema_of(folder)?;
        let files = Files::in_folder(folder)?;
        let mut fingerprint = Fingerprint::new();
        fingerprint.text(schema.source());
        let mut reader = Reader { folder, schema: &schema, checker: Checker::new([], []) };
        let (vocabulary, types, type_of) = reader.articles(files.articles.as_deref(), &mut fingerprint)?;
        let (customers, profiles) = reader.customers(files.customers.as_deref(), &mut fingerprint)?;
        let index: HashMap<&CustomerId, u32> = customers.iter().zip(0..).collect();
        let (outfits, named) =
            reader.outfits(files.outfits.as_deref(), &vocabulary, &index, &mut fingerprint)?;
        let splits = Splits::new(&outfits, &named, customers.len());
        let name = name_of(folder)?;
        Ok(Self {
            name,
            schema,
            vocabulary,
            types,
            type_of,
            customers,
            profiles,
            outfits,
            splits,
            fingerprint: fingerprint.finish(),
        })
    }
}

/// The folder's own name, even where it is given as `.`.
fn name_of(folder: &Path) -> Result<String> {
    let whole = folder.canonicalize().with_context(|| folder.display().to_string())?;
    Ok(whole.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

struct Reader<'a> {
    folder: &'a Path,
    schema: &'a Schema,
    checker: Checker,
}

impl Reader<'_> {
    fn articles(
        &mut self,
        path: Option<&Path>,
        fingerprint: &mut Fingerprint,
    ) -> Result<(Vocabulary, Vec<String>, Vec<u32>)> {
        let mut ids = Vec::new();
        let mut kinds = Vec::new();
        self.each(path, |article: Article| {
            fingerprint.text(article.id.as_str());
            fingerprint.text(article.kind());
            kinds.push(article.kind().to_owned());
            ids.push(article.id);
        })?;
        let mut types = kinds.clone();
        types.sort_unstable();
        types.dedup();
        let place_of = |of: &String| place(types.binary_search(of).expect("it is among them; this is a bug"));
        let type_of = kinds.iter().map(place_of).collect();
        let vocabulary = Vocabulary::new(ids).with_context(|| self.folder.display().to_string())?;
        Ok((vocabulary, types, type_of))
    }

    fn customers(
        &mut self,
        path: Option<&Path>,
        fingerprint: &mut Fingerprint,
    ) -> Result<(Vec<CustomerId>, FeatureTable)> {
        let schema = self.schema;
        let mut ids = Vec::new();
        let mut profiles = FeatureTable::new(schema.features().len());
        self.each(path, |customer: Customer| {
            let encoding = schema.encode(&customer.features).expect("checked when read; this is a bug");
            fingerprint.text(customer.id.as_str());
            encoding.indices.iter().for_each(|values| fingerprint.values(values));
            profiles.push(&encoding.indices);
            ids.push(customer.id);
        })?;
        Ok((ids, profiles))
    }

    fn outfits(
        &mut self,
        path: Option<&Path>,
        vocabulary: &Vocabulary,
        customers: &HashMap<&CustomerId, u32>,
        fingerprint: &mut Fingerprint,
    ) -> Result<(Outfits, Vec<Split>)> {
        let schema = self.schema;
        let mut outfits = Outfits::default();
        let mut named = Vec::new();
        self.each(path, |outfit: Outfit| {
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
        })?;
        Ok((outfits, named))
    }

    /// Hands every row of a table over; one bad row refuses the folder.
    fn each<T: Table>(&mut self, path: Option<&Path>, mut take: impl FnMut(T)) -> Result<()> {
        let folder = self.folder.display();
        let path = path.with_context(|| {
            format!("{folder} has no file of {}; `atelier-training import` makes a whole folder", T::NAME)
        })?;
        for row in self.checker.check(exchange::read::<T>(path, self.schema)?) {
            take(row?);
        }
        let report = self.checker.report();
        if let Some(first) = report.errors.first() {
            bail!(
                "{} rows are bad, the first is {first}; mend them, or leave them out with \
                 `atelier-training import --skip-bad`",
                report.bad
            );
        }
        Ok(())
    }
}
