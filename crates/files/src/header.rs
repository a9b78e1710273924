//! Shops' names for the columns that tables need, to propose how a header that does not fit is read.

use atelier_core::domain::{KNOWN_ATTRIBUTES, Schema, search_key};

use super::Table;

/// Atelier's columns, and theirs in the order of preference, compared by their [`key`].
type Names = &'static [(&'static str, &'static str)];

/// Before the known attributes.
const ARTICLES: Names = &[
    (
        "id",
        "id artikelnummer artikelnr artikelno artnr artno artikelid sku articlenumber articleno articleid itemnumber itemno \
         itemid productid productnumber productcode produktnummer produktnr produktid stylenumber nummer nr number code \
         reference referenz referencia riferimento ref codigo codice codearticle numeroarticle artikel article ean gtin barcode",
    ),
    (
        "type",
        "type typ warengruppe artikelgruppe produktgruppe kategorie produktart artikelart produkttyp artikeltyp category \
         producttype productcategory productgroup itemtype categorie typeproduit typearticle categoria tipo soort productsoort art",
    ),
];

const CUSTOMER: &str = "customer kundennummer kundennr kundenid kdnr kdnummer kunde customerid customernumber customerno \
                        clientid clientnumber numeroclient client cliente codigocliente codicecliente klant klantnummer userid";

const CUSTOMERS: Names = &[
    ("id", CUSTOMER),
    ("id", "id nummer nr number code user"),
    ("gender", "gender geschlecht sex sexe genre genere genero geslacht"),
    ("age", "age alter leeftijd edad eta"),
    ("country", "country land pays pais paese"),
    ("height", "height koerpergroesse groessecm lichaamslengte estatura altezza"),
    ("weight", "weight gewicht koerpergewicht poids peso"),
    ("hair_colour", "haircolour haircolor haarfarbe"),
    ("fit", "fit passform"),
    ("preferred_brands", "preferredbrands lieblingsmarken lieblingsmarke"),
    ("preferred_colours", "preferredcolours preferredcolors lieblingsfarben lieblingsfarbe"),
    ("top_size", "topsize oberteilgroesse"),
    ("bottom_size", "bottomsize hosengroesse"),
    ("shoe_size", "shoesize schuhgroesse pointure schoenmaat"),
];

const OUTFITS: Names = &[
    ("customer", CUSTOMER),
    (
        "articles",
        "articles artikel artikelnummern artikelnr artikelliste articleids items itemids skus sku products produkte positionen \
         outfit articulos articoli productos prodotti produits artikelen",
    ),
    ("occasion", "occasion anlass"),
];

const ORDERS: Names = &[
    (
        "order",
        "order bestellnummer bestellnr bestellung auftragsnummer auftragsnr auftrag belegnummer belegnr rechnungsnummer ordernumber          orderno orderid commande numerocommande pedido ordine bestelling",
    ),
    ("customer", CUSTOMER),
    (
        "article",
        "article artikelnummer artikelnr artnr artikel articleid articlenumber productid itemid itemnumber",
    ),
    ("variant", "variant variante variantid variantsku lineitemsku sku"),
    (
        "time",
        "time datum bestelldatum auftragsdatum rechnungsdatum zeitpunkt zeit date orderdate createdat fecha data timestamp",
    ),
    ("returned", "returned retoure retourniert rueckgabe retour refunded"),
];

/// Which columns of a header would be which of the table's, if they were called so.
pub(super) fn propose<'c, T: Table>(columns: &[&'c str], schema: &Schema) -> Vec<(&'c str, &'static str)> {
    let known =
        KNOWN_ATTRIBUTES.iter().filter(|(_, _, columns)| T::NAME == "articles" && !columns.is_empty());
    let known = known.map(|(name, _, columns)| (*name, *columns));
    let names = match T::NAME {
        "articles" => ARTICLES,
        "customers" => CUSTOMERS,
        "orders" | "events" => ORDERS,
        _ => OUTFITS,
    };
    let keys: Vec<String> = columns.iter().map(|column| key(column)).collect();
    let mut proposals: Vec<(&str, &str)> = Vec::new();
    for (name, theirs) in names.iter().copied().chain(known) {
        let is_known = !T::FEATURES
            || T::FIELDS.iter().any(|field| field.name == name)
            || schema.feature(name).is_some();
        let is_there = columns.contains(&name) || proposals.iter().any(|(_, proposed)| *proposed == name);
        if !is_known || is_there {
            continue;
        }
        let column = theirs.split(' ').map(key).find_map(|their| keys.iter().position(|own| *own == their));
        let column = column.map(|column| columns[column]);
        let is_free = |column: &&str| {
            proposals.iter().all(|(taken, _)| taken != column)
                && (!T::FEATURES || schema.feature(column).is_none())
        };
        proposals.extend(column.filter(is_free).map(|column| (column, name)));
    }
    proposals
}

/// Columns that are probably others, in a header that fits.
pub(crate) struct Hint {
    /// A note about them, with the flags that map them.
    pub(crate) note: String,
    /// Which others.
    pub(crate) names: Vec<&'static str>,
}

pub(super) fn propose_others<T: Table>(columns: &[&str], schema: &Schema) -> Option<Hint> {
    let proposals = propose::<T>(columns, schema);
    let flags: Vec<String> = proposals.iter().map(|(from, to)| map_flag::<T>(from, to)).collect();
    (!flags.is_empty()).then(|| {
        let names: Vec<String> =
            proposals.iter().map(|(from, to)| format!("{from:?} may be the {to}")).collect();
        let note = format!("{}; if so, add: {}", names.join(", "), flags.join(" "));
        Hint { note, names: proposals.iter().map(|(_, to)| *to).collect() }
    })
}

/// The flag that maps a column of the table, as a shell takes it.
pub(super) fn map_flag<T: Table>(from: &str, to: &str) -> String {
    let mapping = format!("{}.{}={to}", T::NAME, from.split_whitespace().collect::<Vec<_>>().join(" "));
    if mapping.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '=')) {
        format!("--map {mapping}")
    } else {
        format!("--map '{}'", mapping.replace('\'', r"'\''"))
    }
}

/// The name without case, accents, signs and what is in brackets: `Art.-Nr.` is `artnr`. `Größe (EU)`, `groesse` and `grosse` are
/// the same.
fn key(name: &str) -> String {
    let name = name.split(['(', '[']).next().unwrap_or_default();
    search_key(name).chars().filter(|c| c.is_alphanumeric()).collect()
}
