//! Reading database URLs, and hiding their passwords.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    str::FromStr,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sqlx::any::AnyConnectOptions;

#[derive(Debug, PartialEq)]
pub(crate) enum Address {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" || path.contains('?') {
                return Err("expected a file path after sqlite: and no parameters".into());
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.into()));
        }
        Err("expected sqlite: or postgres:// at the beginning".into())
    }
}

/// The URL without secrets: user, host, port and database, or only the scheme if the URL cannot be read.
///
/// Parameters may contain a password, so all are hidden. A `/`, `?` or `#` that was not encoded in a password moves the
/// rest of the password behind the host, where an `@` gives it away.
pub(crate) fn redact(url: &str) -> String {
    let scheme = scheme(url);
    let Ok(AnyConnectOptions { database_url: parsed, .. }) = AnyConnectOptions::from_str(url) else {
        return scheme.into();
    };
    let misplaced = parsed.path().contains('@')
        || parsed.fragment().is_some()
        || parsed.query().is_some_and(|query| {
            query.split('&').any(|pair| pair.split('=').next().is_some_and(|name| name.contains('@')))
        });
    if misplaced || parsed.cannot_be_a_base() {
        return scheme.into();
    }
    let mut redacted = format!("{}://", parsed.scheme());
    if !parsed.username().is_empty() {
        redacted.push_str(parsed.username());
        redacted.push('@');
    }
    redacted.push_str(parsed.host_str().unwrap_or_default());
    if let Some(port) = parsed.port() {
        write!(redacted, ":{port}").expect("writing to a String never fails");
    }
    redacted.push_str(parsed.path());
    redacted
}

/// The parameters of a Postgres URL that sqlx supports, besides `options[…]`.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// Removes other parameters, and counts them. Their names are not shown: part of an unencoded password may be among
/// them.
pub(crate) fn remove_unknown_parameters(options: &mut AnyConnectOptions) -> usize {
    let url = &mut options.database_url;
    let given: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let is_supported = |name: &str| PARAMETERS.contains(&name) || name.starts_with("options[");
    let supported: Vec<_> = given.iter().filter(|(name, _)| is_supported(name)).collect();
    let removed = given.len() - supported.len();
    if removed > 0 {
        url.set_query(None);
        // Even an empty list of pairs would leave a `?` behind.
        if !supported.is_empty() {
            url.query_pairs_mut().extend_pairs(supported);
        }
    }
    removed
}

/// The text before the first colon, if it may be a scheme. A text without delimiters has no secret part.
fn scheme(url: &str) -> &str {
    let first = url.split(':').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-._/".contains(c);
    if first.chars().all(plain) { first } else { "" }
}

/// The file as a URL for sqlx, which decodes it.
pub(crate) fn sqlite_url(path: &Path) -> Option<String> {
    const PLAIN: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    Some(format!("sqlite://{}", utf8_percent_encode(path.to_str()?, PLAIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_file_or_a_server() {
        for (url, names) in [
            ("sqlite:data/a.db", Address::Sqlite("data/a.db".into())),
            ("sqlite:///var/a b.db", Address::Sqlite("/var/a b.db".into())),
            ("postgres://h/d", Address::Postgres("postgres://h/d".into())),
        ] {
            assert_eq!(Address::parse(url), Ok(names));
        }
        for refused in ["sqlite:", "sqlite::memory:", "sqlite:a.db?mode=ro", "mysql://h/d", "atelier.db", ""]
        {
            assert!(Address::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn unknown_parameters_are_removed() {
        for (url, count, kept) in [
            ("postgres://u:p@h/d", 0, "postgres://u:p@h/d"),
            ("postgres://u:p@h/d?sslmode=require", 0, "postgres://u:p@h/d?sslmode=require"),
            ("postgres://h/d?channel_binding=x&apikey=secret", 2, "postgres://h/d"),
            (
                "postgres://h/d?x=secret&password=a%26b&options[a]=b",
                1,
                "postgres://h/d?password=a%26b&options%5Ba%5D=b",
            ),
        ] {
            let mut options = AnyConnectOptions::from_str(url).unwrap();
            assert_eq!(remove_unknown_parameters(&mut options), count, "{url}");
            assert_eq!(options.database_url.as_str(), kept);
        }
    }

    #[test]
    fn no_password_is_shown() {
        for (url, expected) in [
            ("postgres://ada:secret@db:5432/atelier", "postgres://ada@db:5432/atelier"),
            ("postgresql://ada:s%40cret@db/atelier?x=1", "postgresql://ada@db/atelier"),
            ("postgres://ada:sec@ret@db/atelier", "postgres://ada@db/atelier"),
            ("postgres://ada@db/atelier", "postgres://ada@db/atelier"),
            ("postgres://[::1]:5432", "postgres://[::1]:5432"),
            ("postgres://%2Frun%2Fpostgres/atelier", "postgres://%2Frun%2Fpostgres/atelier"),
            ("postgres:///atelier?host=/run/postgres", "postgres:///atelier"),
            ("postgres://localhost/d?user=u&password=sec@ret", "postgres://localhost/d"),
            ("postgres://localhost/d?password=sec@ret/x@y&user=u", "postgres://localhost/d"),
            // An `@` that was not encoded makes the rest ambiguous.
            ("postgres://ada:sec/r@et@db/atelier?x=1", "postgres"),
            ("postgres://ada:12/sec@db/atelier", "postgres"),
            ("postgres://ada:12?sec@db/atelier", "postgres"),
            ("postgres://ada:12#sec@db/atelier", "postgres"),
            ("postgres://db:99999/atelier?password=secret", "postgres"),
            ("postgres:ada:secret@db", "postgres"),
            ("mysql://ada:secret@db/atelier", "mysql://ada@db/atelier"),
            ("ada:secret@db/atelier", "ada"),
            ("secret@db:5432/atelier", ""),
            ("data/atelier.db", "data/atelier.db"),
        ] {
            assert_eq!(redact(url), expected, "{url}");
        }
    }
}
