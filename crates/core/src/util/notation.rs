//! Prices, numbers and dates as people of a country write them. A small table instead of a library: shops need no more.

use chrono::{DateTime, Utc};

/// How prices, numbers and dates are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notation {
    /// The ISO 4217 code of prices that do not name theirs.
    currency: String,
    locale: &'static Locale,
}

#[derive(Debug, PartialEq, Eq)]
struct Locale {
    name: &'static str,
    decimal: &'static str,
    group: &'static str,
    currency: SignPlace,
    /// As `chrono` describes it.
    date: &'static str,
}

/// Where the currency's sign is.
#[derive(Debug, PartialEq, Eq)]
enum SignPlace {
    Before,
    BeforeSpace,
    After,
}

const SPACE: &str = "\u{a0}";

const LOCALES: [Locale; 16] = [
    Locale { name: "en", decimal: ".", group: ",", currency: SignPlace::Before, date: "%-d %b %Y" },
    Locale { name: "en-US", decimal: ".", group: ",", currency: SignPlace::Before, date: "%b %-d, %Y" },
    Locale { name: "de", decimal: ",", group: ".", currency: SignPlace::After, date: "%d.%m.%Y" },
    Locale { name: "de-CH", decimal: ".", group: "’", currency: SignPlace::BeforeSpace, date: "%d.%m.%Y" },
    Locale { name: "fr", decimal: ",", group: SPACE, currency: SignPlace::After, date: "%d/%m/%Y" },
    Locale { name: "it", decimal: ",", group: ".", currency: SignPlace::After, date: "%d/%m/%Y" },
    Locale { name: "es", decimal: ",", group: ".", currency: SignPlace::After, date: "%d/%m/%Y" },
    Locale { name: "pt", decimal: ",", group: ".", currency: SignPlace::After, date: "%d/%m/%Y" },
    Locale { name: "nl", decimal: ",", group: ".", currency: SignPlace::BeforeSpace, date: "%d-%m-%Y" },
    Locale { name: "sv", decimal: ",", group: SPACE, currency: SignPlace::After, date: "%Y-%m-%d" },
    Locale { name: "da", decimal: ",", group: ".", currency: SignPlace::After, date: "%d.%m.%Y" },
    Locale { name: "nb", decimal: ",", group: SPACE, currency: SignPlace::After, date: "%d.%m.%Y" },
    Locale { name: "fi", decimal: ",", group: SPACE, currency: SignPlace::After, date: "%d.%m.%Y" },
    Locale { name: "pl", decimal: ",", group: SPACE, currency: SignPlace::After, date: "%d.%m.%Y" },
    Locale { name: "cs", decimal: ",", group: SPACE, currency: SignPlace::After, date: "%d.%m.%Y" },
    Locale { name: "ja", decimal: ".", group: ",", currency: SignPlace::Before, date: "%Y/%m/%d" },
];

impl Notation {
    /// A locale with another region is read as its language: `de-AT` as `de`.
    pub fn new(currency: &str, locale: &str) -> Result<Self, String> {
        if !is_currency(currency) {
            return Err(format!("a currency has three capital letters, such as EUR, found {currency:?}"));
        }
        let language = locale.split('-').next().unwrap_or_default();
        let named = |name: &str| LOCALES.iter().find(|known| known.name == name);
        let locale = named(locale).or_else(|| named(language)).ok_or_else(|| {
            let known: Vec<&str> = LOCALES.iter().map(|known| known.name).collect();
            format!("a locale is one of {}, found {locale:?}", known.join(", "))
        })?;
        Ok(Self { currency: currency.to_owned(), locale })
    }

    /// The code of the currency: that of the price, if it names one, or the shop's.
    pub fn currency<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.filter(|code| is_currency(code)).unwrap_or(&self.currency)
    }

    /// `€316.60`, `€120`. `currency` is the code that the price names, if it does.
    pub fn price(&self, price: f64, currency: Option<&str>) -> String {
        let currency = self.currency(currency);
        let number = self.number(price, decimals(currency));
        let sign = sign(currency);
        match self.locale.currency {
            SignPlace::After => format!("{number}{SPACE}{sign}"),
            SignPlace::Before if !sign.ends_with(char::is_alphabetic) => format!("{sign}{number}"),
            SignPlace::Before | SignPlace::BeforeSpace => format!("{sign}{SPACE}{number}"),
        }
    }

    /// The day of a moment, in UTC.
    pub fn day(&self, millis: i64) -> String {
        moment(millis).format(self.locale.date).to_string()
    }

    /// The day and the minute of a moment, in UTC, which it says.
    pub fn minute(&self, millis: i64) -> String {
        moment(millis).format(&format!("{}, %H:%M UTC", self.locale.date)).to_string()
    }

    /// `546,432`
    pub fn count(&self, number: u64) -> String {
        group_digits(&number.to_string(), self.locale.group)
    }

    /// `0.43 %`: two significant digits, or more for large shares.
    pub fn percent(&self, share: f64) -> String {
        let hundredths = 100.0 * share;
        let text = match hundredths {
            tiny if tiny > 0.0 && tiny < 0.001 => "<0.001".to_owned(),
            large if large >= 10.0 => format!("{large:.0}"),
            small if small >= 1.0 => format!("{small:.1}"),
            smaller if smaller >= 0.1 => format!("{smaller:.2}"),
            smallest => format!("{smallest:.3}"),
        };
        format!("{} %", text.replace('.', self.locale.decimal))
    }

    /// `43.2 %`: to a tenth, for shares whose difference matters.
    pub fn tenths(&self, share: f64) -> String {
        // Adding zero takes the sign off a zero.
        let tenths = (1000.0 * share).round() / 10.0 + 0.0;
        format!("{tenths:.1} %").replace('.', self.locale.decimal)
    }

    /// Whole numbers have no decimals.
    fn number(&self, number: f64, decimals: usize) -> String {
        let text = format!("{number:.decimals$}");
        let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
        let mut written = group_digits(whole, self.locale.group);
        if part.bytes().any(|digit| digit != b'0') {
            written.push_str(self.locale.decimal);
            written.push_str(part);
        }
        written
    }
}

/// A whole number with its thousands apart.
pub fn group_digits(digits: &str, separator: &str) -> String {
    let mut written = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push_str(separator);
        }
        written.push(digit);
    }
    written
}

fn moment(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Whether it looks like an ISO 4217 code.
pub fn is_currency(code: &str) -> bool {
    code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn sign(currency: &str) -> &str {
    match currency {
        "EUR" => "€",
        "USD" => "$",
        "GBP" => "£",
        "JPY" => "¥",
        "INR" => "₹",
        "KRW" => "₩",
        "TRY" => "₺",
        "PLN" => "zł",
        "CZK" => "Kč",
        "HUF" => "Ft",
        "SEK" | "NOK" | "DKK" => "kr",
        code => code,
    }
}

/// How many decimals prices in a currency have.
pub fn decimals(currency: &str) -> usize {
    match currency {
        "JPY" | "KRW" | "HUF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_written_as_in_the_country() {
        for (currency, locale, some, whole) in [
            ("EUR", "en", "€1,316.60", "€120"),
            ("USD", "en-US", "$1,316.60", "$120"),
            ("CHF", "en", "CHF\u{a0}1,316.60", "CHF\u{a0}120"),
            ("EUR", "de-AT", "1.316,60\u{a0}€", "120\u{a0}€"),
            ("CHF", "de-CH", "CHF\u{a0}1’316.60", "CHF\u{a0}120"),
            ("EUR", "nl", "€\u{a0}1.316,60", "€\u{a0}120"),
            ("SEK", "sv", "1\u{a0}316,60\u{a0}kr", "120\u{a0}kr"),
            ("JPY", "ja", "¥1,317", "¥120"),
            ("KWD", "en", "KWD\u{a0}1,316.600", "KWD\u{a0}120"),
        ] {
            let notation = Notation::new(currency, locale).unwrap();
            let written = [1316.6, 120.0].map(|price| notation.price(price, None));
            assert_eq!(written, [some, whole], "{currency} {locale}");
        }
        let euros = Notation::new("EUR", "en").unwrap();
        assert_eq!(euros.price(89.9, Some("GBP")), "£89.90");
        assert_eq!(euros.price(0.0, Some("gold")), "€0");
        assert!(Notation::new("euro", "en").unwrap_err().contains("three capital letters"));
        assert!(Notation::new("EUR", "tlh").unwrap_err().contains("found \"tlh\""));
    }

    #[test]
    fn counts_and_shares_are_written_as_in_the_country() {
        for (locale, count, percent) in [
            ("en", "1,316,600", "4.3 %"),
            ("de", "1.316.600", "4,3 %"),
            ("de-CH", "1’316’600", "4.3 %"),
            ("fr", "1\u{a0}316\u{a0}600", "4,3 %"),
        ] {
            let notation = Notation::new("EUR", locale).unwrap();
            assert_eq!(
                (&*notation.count(1_316_600), &*notation.percent(0.043)),
                (count, percent),
                "{locale}"
            );
        }
        let english = Notation::new("EUR", "en").unwrap();
        assert_eq!([0, 999, 1_500].map(|number| english.count(number)), ["0", "999", "1,500"]);
        let shares = [0.43, 0.043, 0.0043, 0.00043, 4e-6, 0.0].map(|share| english.percent(share));
        assert_eq!(shares, ["43 %", "4.3 %", "0.43 %", "0.043 %", "<0.001 %", "0.000 %"]);
    }

    #[test]
    fn compared_shares_are_written_to_a_tenth() {
        let german = Notation::new("EUR", "de").unwrap();
        let shares = [0.4321, 1.0, 0.0, -1e-17, -0.012].map(|share| german.tenths(share));
        assert_eq!(shares, ["43,2 %", "100,0 %", "0,0 %", "0,0 %", "-1,2 %"]);
    }

    #[test]
    fn days_are_written_as_in_the_country() {
        let day = |locale| Notation::new("EUR", locale).unwrap().day(1_795_268_096_900);
        let written = ["en", "en-US", "de", "fr", "nl", "sv", "ja"].map(day).join(" | ");
        let expected =
            "21 Nov 2026 | Nov 21, 2026 | 21.11.2026 | 21/11/2026 | 21-11-2026 | 2026-11-21 | 2026/11/21";
        assert_eq!(written, expected);
        let english = Notation::new("EUR", "en").unwrap();
        assert_eq!(
            [english.day(0), english.minute(1_795_268_096_900)],
            ["1 Jan 1970", "21 Nov 2026, 13:34 UTC"]
        );
    }
}
