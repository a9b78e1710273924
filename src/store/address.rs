//! What a database URL names, and what of it may be shown.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::any::AnyConnectOptions;

/// What a database URL names.
#[derive(Debug, PartialEq)]
pub(super) enum Address {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Address {
    /// Or why it names nothing.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" || path.contains('?') {
                return Err("it takes a file's path after sqlite: and no parameters".into());
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.into()));
        }
        Err("it begins with neither sqlite: nor postgres://".into())
    }
}

/// The URL as it may be shown: user, host, port and database. Of one that cannot be read, only the
/// scheme.
///
/// Parameters may hold a password, so none is shown. A password whose owner forgot to encode a `/`, `?`
/// or `#` in it spills over into what comes after the host; an `@` there gives it away.
pub(super) fn shown(url: &str) -> String {
    let scheme = scheme(url);
    let Ok(AnyConnectOptions { database_url: parsed, .. }) = AnyConnectOptions::from_str(url) else {
        return scheme.into();
    };
    let spilt = parsed.path().contains('@')
        || parsed.fragment().is_some()
        || parsed.query().is_some_and(|query| {
            query.split('&').any(|pair| pair.split('=').next().is_some_and(|name| name.contains('@')))
        });
    if spilt || parsed.cannot_be_a_base() {
        return scheme.into();
    }
    let mut shown = format!("{}://", parsed.scheme());
    if !parsed.username().is_empty() {
        shown.push_str(parsed.username());
        shown.push('@');
    }
    shown.push_str(parsed.host_str().unwrap_or_default());
    if let Some(port) = parsed.port() {
        write!(shown, ":{port}").expect("writing to a String never fails; this is a bug");
    }
    shown.push_str(parsed.path());
    shown
}

/// Parameters of a Postgres URL that sqlx understands, `options[…]` aside.
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

/// Takes the other parameters out, and says how many they were. Not which: a password that was not encoded may have
/// spilled into them.
pub(super) fn leave_out_unknown(options: &mut AnyConnectOptions) -> usize {
    let url = &mut options.database_url;
    let given: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let is_known = |name: &str| PARAMETERS.contains(&name) || name.starts_with("options[");
    let known: Vec<_> = given.iter().filter(|(name, _)| is_known(name)).collect();
    let left_out = given.len() - known.len();
    if left_out > 0 {
        url.set_query(None);
        // Even an empty list of pairs would leave a `?` behind.
        if !known.is_empty() {
            url.query_pairs_mut().extend_pairs(known);
        }
    }
    left_out
}

/// What stands before the colon, if that may be a scheme. A text with nothing in it that parts a URL may
/// be shown whole.
fn scheme(url: &str) -> &str {
    let first = url.split(':').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-._/".contains(c);
    if first.chars().all(plain) { first } else { "" }
}

/// The file as a URL of sqlx's, which decodes what is encoded here.
pub(super) fn sqlite_url(path: &Path) -> Option<String> {
    let mut url = String::from("sqlite://");
    for byte in path.to_str()?.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            write!(url, "%{byte:02x}").expect("writing to a String never fails; this is a bug");
        }
    }
    Some(url)
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
    fn parameters_that_nobody_reads_are_left_out() {
        let left = |url: &str| {
            let mut options = AnyConnectOptions::from_str(url).unwrap();
            (leave_out_unknown(&mut options), options.database_url.to_string())
        };
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
            assert_eq!(left(url), (count, kept.to_owned()));
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
            ("postgres://db/atelier?user=ada&password=secret", "postgres://db/atelier"),
            ("postgres://localhost/d?user=u&password=sec@ret", "postgres://localhost/d"),
            ("postgres://localhost/d?password=sec@ret/x@y&user=u", "postgres://localhost/d"),
            // What an `@` that was not encoded makes of the rest, nobody can tell.
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
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}
