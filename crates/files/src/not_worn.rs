//! Rows that feeds have but nobody wears, such as gift cards. They are left out.

use atelier_core::domain::{fold, fold_for};

/// The types of things that nobody wears: those that the shop lists, or else common names of gift cards and similar items.
#[derive(Debug, Clone, Default)]
pub struct NotWorn(Option<Vec<String>>);

/// Parts of types in shops' languages, folded, of which only the letters count: `Online-Gutschein`, `gift_card`.
const NOT_WORN_PARTS: [&str; 24] = [
    "giftcard",
    "giftvoucher",
    "giftcertificate",
    "gutschein",
    "geschenkkarte",
    "cartecadeau",
    "cartescadeau",
    "chèquecadeau",
    "chèquescadeau",
    "chequecadeau",
    "chequescadeau",
    "boncadeau",
    "bonscadeau",
    "tarjetaregalo",
    "tarjetasregalo",
    "tarjetaderegalo",
    "tarjetasderegalo",
    "buonoregalo",
    "buoniregalo",
    "cadeaubon",
    "giftwrap",
    "geschenkverpackung",
    "shippingprotection",
    "versandschutz",
];
/// Whole types: what contains them may be worn.
const NOT_WORN_TYPES: [&str; 6] = ["voucher", "vouchers", "donation", "donations", "spende", "spenden"];
/// Google's number of gift cards, alone and as a type.
const NOT_WORN_NUMBERS: [&str; 2] = ["53", "category 53"];

impl NotWorn {
    /// Types are compared as everywhere: in the English singular, without case and hyphens.
    pub fn new(types: &[impl AsRef<str>]) -> Self {
        Self(Some(types.iter().map(|kind| fold_for("type", kind.as_ref())).collect()))
    }

    /// Whether a type, or a part of a path such as `Gifts > Gift Cards`, is one of them.
    pub(super) fn has(&self, path: &str) -> bool {
        path.split('>').any(|part| match &self.0 {
            Some(types) => types.contains(&fold_for("type", part)),
            None => is_not_worn(part),
        })
    }
}

fn is_not_worn(kind: &str) -> bool {
    let folded = fold(kind);
    let letters: String = folded.chars().filter(|c| c.is_alphabetic()).collect();
    // A gift cardigan is worn.
    let has = |part: &&str| letters.contains(part) && !letters.contains("cardigan");
    NOT_WORN_NUMBERS.contains(&folded.as_str())
        || NOT_WORN_TYPES.contains(&letters.as_str())
        || NOT_WORN_PARTS.iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gift_cards_have_many_names() {
        let standard = NotWorn::default();
        for (kinds, has) in [
            (
                "Gift Cards & Certificates, gift_card, Giftcards, E-Geschenkgutschein, Wertgutscheine, \
                 Digitaler Gutschein, Geschenkkarte (digital), Geschenk-Gutschein, Home > Online-Gutschein > 50, \
                 Bons cadeaux, Chèques-cadeaux, Tarjetas regalo, Gift Wrapping, Spenden, Vouchers, Versandschutz, 53, \
                 category 53",
                true,
            ),
            (", Coats, Gift Cardigans, Hosenspender, category 533, 5, Gifts > Cardigans", false),
        ] {
            for kind in kinds.split(", ") {
                assert_eq!(standard.has(kind), has, "{kind}");
            }
        }
        let own = NotWorn::new(&["Gift Card"]);
        assert!(own.has("gift-cards") && !own.has("gift_card") && !own.has("Digital gift card"));
        assert!(!NotWorn::new(&[""; 0]).has("Gift Card"));
    }
}
