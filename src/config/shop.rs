//! How the pages write prices and dates, and words that mean the same.

use std::path::PathBuf;

use atelier_core::{
    domain::{Use, attributes_with},
    util::{notation::Notation, zone::Zone},
};
use atelier_files::NotWorn;
use serde::Deserialize;

/// The section `[shop]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shop {
    /// The ISO 4217 code of prices whose article names no currency.
    pub currency: String,
    /// Whose signs separate digits and dates, such as `en` or `de-CH`.
    pub locale: String,
    /// The IANA time zone in which people write when a rule starts and ends.
    pub time_zone: String,
    /// A file of words that searches take as the same.
    pub synonyms: Option<PathBuf>,
    /// The types that imports leave out of feeds; without a list, gift cards and the like.
    pub not_worn: Option<Vec<String>>,
    /// The attributes of articles that anyone may read.
    pub public_attributes: Vec<String>,
}

impl Default for Shop {
    fn default() -> Self {
        Self {
            currency: "EUR".into(),
            locale: "en".into(),
            time_zone: "UTC".into(),
            synonyms: None,
            not_worn: None,
            public_attributes: attributes_with(Use::Public).map(Into::into).collect(),
        }
    }
}

impl Shop {
    pub fn notation(&self) -> Notation {
        let notation = Notation::new(&self.currency, &self.locale);
        notation.expect("checked when it was read; this is a bug")
    }

    pub fn zone(&self) -> Zone {
        Zone::new(&self.time_zone).expect("checked when it was read; this is a bug")
    }

    pub fn not_worn(&self) -> NotWorn {
        self.not_worn.as_deref().map_or_else(NotWorn::default, NotWorn::new)
    }

    /// # Errors
    /// Which setting is unknown.
    pub(super) fn check(&self) -> Result<(), String> {
        Notation::new(&self.currency, "en").map_err(|reason| format!("shop.currency: {reason}"))?;
        Notation::new(&self.currency, &self.locale).map_err(|reason| format!("shop.locale: {reason}"))?;
        Zone::new(&self.time_zone).map_err(|reason| format!("shop.time_zone: {reason}"))?;
        if self.public_attributes.iter().any(|name| name == "stock") {
            return Err("shop.public_attributes has stock, and pages may not see how many there are; remove it. Pages see \
                        whether each variant is in stock"
                .to_owned());
        }
        Ok(())
    }
}
