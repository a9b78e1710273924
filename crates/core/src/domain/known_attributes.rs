//! The attributes of articles that Atelier knows, whatever the schema says. A new one is a row here, and what it means in
//! [`Article`](super::Article).

/// Atelier's use of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The service reads it: filters, prices, sizes and stock.
    Read,
    /// It says nothing about how an article looks and fits, so no model sees it.
    Unseen,
    /// Anyone may read it, unless the shop says otherwise.
    Public,
    /// Saved outfits keep it, for pages that show them once the article is gone.
    Kept,
}

/// Each with what shops call its column, in the order of preference and without case, accents and signs.
pub static KNOWN_ATTRIBUTES: [(&str, &[Use], &str); 17] = {
    use Use::{Kept, Public, Read, Unseen};
    [
        (
            "name",
            &[Unseen, Public, Kept],
            "name bezeichnung artikelbezeichnung artikelname produktname nom nombre nome naam",
        ),
        ("brand", &[Public, Kept], "brand marke hersteller markenname manufacturer marque marca merk"),
        (
            "price",
            &[Read, Public],
            "price preis preiseur vk vkpreis vkbrutto verkaufspreis bruttopreis einzelpreis saleprice retailprice unitprice prix \
             precio prezzo preco prijs uvp",
        ),
        ("currency", &[Public, Kept], ""),
        ("image", &[Unseen, Public, Kept], "image bild bildurl bildlink foto photo imageurl imagelink"),
        ("url", &[Unseen, Public], ""),
        ("variants", &[Read, Unseen, Public], ""),
        ("colour", &[Kept], "colour color farbe farbname couleur kleur colore cor"),
        ("gender", &[Kept], "gender geschlecht sex sexe genre genere genero geslacht"),
        (
            "sizes",
            &[Read],
            "sizes size groesse groessen konfektionsgroesse taille tailles talla tallas taglia taglie maat maten",
        ),
        (
            "stock",
            &[Read, Unseen],
            "stock bestand lagerbestand lagermenge quantity inventory voorraad existencias giacenza",
        ),
        (
            "in_stock",
            &[Read, Unseen],
            "instock verfuegbar lieferbar available availability disponible disponibile beschikbaar",
        ),
        ("material", &[Kept], "material obermaterial materiau materiale materiaal"),
        ("pattern", &[Kept], ""),
        ("description", &[Unseen], ""),
        ("availability", &[Unseen], ""),
        ("embedding", &[Read, Unseen], ""),
    ]
};

/// The names of those with a use.
pub fn attributes_with(wanted: Use) -> impl Iterator<Item = &'static str> {
    KNOWN_ATTRIBUTES.iter().filter(move |(_, uses, _)| uses.contains(&wanted)).map(|(name, ..)| *name)
}

/// Whether an attribute has a use.
pub fn is_used(name: &str, wanted: Use) -> bool {
    attributes_with(wanted).any(|one| one == name)
}
