//! Where the columns of a flat file (CSV, Parquet) stand in a row's fields, and the other way round.

use std::{borrow::Cow, collections::HashSet};

use super::{
    table::Wire,
    value::{Fields, Value, twice},
};

const FEATURES: &str = "features";
const PREFIX: &str = "features.";

/// Where a column's value belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The row's field of this name: one of the table's own, or an article's attribute.
    Field(String),
    Feature(String),
}

impl Place {
    pub(super) fn of<T: Wire>(column: &str) -> Self {
        let own = column == FEATURES || T::FIELDS.iter().any(|field| field.name == column);
        if !T::FEATURES || own {
            Self::Field(column.to_owned())
        } else {
            Self::Feature(column.strip_prefix(PREFIX).unwrap_or(column).to_owned())
        }
    }
}

/// The places of a header's columns.
///
/// # Errors
/// The reason why these columns are not those of the table.
pub(super) fn places<'c, T: super::Table>(
    columns: impl Iterator<Item = &'c str> + Clone,
) -> Result<Vec<Place>, String> {
    let (mut places, mut seen) = (Vec::new(), HashSet::new());
    for (number, column) in (1..).zip(columns.clone()) {
        if column.is_empty() {
            return Err(format!(
                "column {number} has no name; name it or leave it out (pandas: `index=False`)"
            ));
        }
        let place = Place::of::<T>(column);
        if !seen.insert(place.clone()) {
            return Err(format!("column {column:?} stands in it twice"));
        }
        places.push(place);
    }
    for field in T::FIELDS.iter().filter(|field| field.required) {
        if !columns.clone().any(|column| column == field.name) {
            let found: Vec<String> = columns.map(|column| format!("{column:?}")).collect();
            let (name, table) = (field.name, T::NAME);
            let found = found.join(", ");
            return Err(format!("{table} need a column {name:?}, found {found}"));
        }
    }
    Ok(places)
}

/// Gathers the cells of one flat row into its fields.
#[derive(Debug, Default)]
pub(super) struct Gathered<'a> {
    fields: Fields<'a>,
    features: Fields<'a>,
}

impl<'a> Gathered<'a> {
    /// `inside` names the objects within the place that the value belongs into, if any.
    pub(super) fn put(&mut self, place: &'a Place, inside: &'a [String], value: Value<'a>) {
        match (place, value) {
            (_, Value::Null) => {}
            (Place::Field(name), value) => insert(&mut self.fields, name, inside, value),
            (Place::Feature(name), value) => insert(&mut self.features, name, inside, value),
        }
    }

    /// # Errors
    /// If a feature stands both in a column of its own and in the column `features`.
    pub(super) fn finish<T: Wire>(mut self) -> Result<Fields<'a>, String> {
        if T::FEATURES {
            match self.fields.iter_mut().find(|(name, _)| name == FEATURES) {
                Some((_, Value::Object(nested))) => {
                    nested.append(&mut self.features);
                    if let Some(name) = twice(nested) {
                        return Err(format!("feature {name:?} is given in two columns"));
                    }
                }
                // No object: the table will say so.
                Some(_) => {}
                None => self.fields.push((FEATURES.into(), Value::Object(self.features))),
            }
        }
        Ok(self.fields)
    }
}

fn insert<'a>(fields: &mut Fields<'a>, name: &'a str, inside: &'a [String], value: Value<'a>) {
    let [inner, deeper @ ..] = inside else { return fields.push((name.into(), value)) };
    let place = fields.iter().position(|(other, _)| other == name).unwrap_or_else(|| {
        fields.push((name.into(), Value::Object(Fields::new())));
        fields.len() - 1
    });
    if let Value::Object(nested) = &mut fields[place].1 {
        insert(nested, inner, deeper, value);
    }
}

/// A row's fields as flat columns: features stand beside the table's own fields, under their plain
/// names unless those are taken.
pub(super) fn flatten<T: Wire>(fields: Fields<'_>) -> impl Iterator<Item = (Cow<'_, str>, Value<'_>)> {
    fields.into_iter().flat_map(|(name, value)| match value {
        Value::Object(features) if T::FEATURES && name == FEATURES => {
            features.into_iter().map(|(name, value)| (column::<T>(name), value)).collect()
        }
        value => vec![(name, value)],
    })
}

fn column<T: Wire>(feature: Cow<'_, str>) -> Cow<'_, str> {
    if Place::of::<T>(&feature) == Place::Feature(feature.clone().into_owned()) {
        feature
    } else {
        format!("{PREFIX}{feature}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Article, Customer, Outfit};

    #[test]
    fn a_columns_name_says_where_it_belongs() {
        let field = |name: &str| Place::Field(name.into());
        let feature = |name: &str| Place::Feature(name.into());
        assert_eq!(Place::of::<Article>("features.age"), field("features.age"));
        assert_eq!(Place::of::<Customer>("id"), field("id"));
        assert_eq!(Place::of::<Customer>("age"), feature("age"));
        assert_eq!(Place::of::<Customer>("features.age"), feature("age"));
        assert_eq!(Place::of::<Customer>("features.id"), feature("id"));
        assert_eq!(Place::of::<Outfit>("id"), feature("id"));
        for name in ["age", "id", "features", "features.age", "features.features.age"] {
            assert_eq!(Place::of::<Customer>(&column::<Customer>(name.into())), feature(name), "{name}");
        }
    }

    #[test]
    fn a_wrong_header_says_what_is_wrong() {
        let said = |columns: &[&str]| places::<Customer>(columns.iter().copied()).unwrap_err();
        assert_eq!(
            said(&["id", ""]),
            "column 2 has no name; name it or leave it out (pandas: `index=False`)"
        );
        assert_eq!(said(&["id", "age", "features.age"]), "column \"features.age\" stands in it twice");
        assert_eq!(said(&["id;age"]), "customers need a column \"id\", found \"id;age\"");
    }
}
