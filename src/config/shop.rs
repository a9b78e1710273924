//! How the pages write prices and dates, and words that mean the same.

use std::path::PathBuf;

use atelier_core::{
    domain::{Use, attributes_with},
    util::{notation::Notation, zone::Zone},
};
use atelier_files::NotWorn;
use serde::Deserialize;

settings! {
    #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
    pub struct Shop {
        currency: String = "EUR".into(),
        locale: String = "en".into(),
        time_zone: String = "UTC".into(),
        synonyms: Option<PathBuf> = None,
        not_worn: Option<Vec<String>> = None,
        bought_again: Vec<String> = Vec::new(),
        public_attributes: Vec<String> = attributes_with(Use::Public).map(Into::into).collect(),
    }
}

impl Shop {
    pub fn notation(&self) -> Notation {
        let notation = Notation::new(&self.currency, &self.locale);
        notation.expect("checked when it was read")
    }

    pub fn zone(&self) -> Zone {
        Zone::new(&self.time_zone).expect("checked when it was read")
    }

    pub fn not_worn(&self) -> NotWorn {
        self.not_worn.as_deref().map_or_else(NotWorn::default, NotWorn::new)
    }

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
