//! What a database URL names, and what of it may be shown.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::any::AnyConnectOptions;

use super::StoreError;

/// What a database URL names.
#[derive(Debug, PartialEq)]
pub(super) enum Address {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" || path.contains('?') {
                return Err(StoreError::Url {
                    reason: "it names no file: write sqlite:PATH, without parameters".into(),
                });
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.into()));
        }
        let reason = match shown(url) {
            scheme if scheme.is_empty() => "it has no scheme".into(),
            shown => format!("{shown} is of another kind"),
        };
        Err(StoreError::Url { reason })
    }
}

/// The URL as it may be shown: user, host, port and database. Of one that cannot be read, only the
/// scheme.
///
/// Parameters may hold a password, so none is shown. A password whose owner forgot to encode a `/`, `?`
/// or `#` in it spills over into what comes after the host; an `@` there gives it away.
pub(super) fn shown(url: &str) -> String {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
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
        let parse = |url| Address::parse(url).map_err(|error| error.to_string());
        assert_eq!(parse("sqlite:data/a.db"), Ok(Address::Sqlite("data/a.db".into())));
        assert_eq!(parse("sqlite:///var/a b.db"), Ok(Address::Sqlite("/var/a b.db".into())));
        assert_eq!(parse("postgres://h/d"), Ok(Address::Postgres("postgres://h/d".into())));
        for refused in ["sqlite:", "sqlite::memory:", "sqlite:a.db?mode=ro", "mysql://h/d", "atelier.db", ""]
        {
            assert!(parse(refused).unwrap_err().contains("sqlite:PATH"), "{refused}");
        }
        for other in ["mysql://u:secret@h/d", "u:secret@h/d", "secret@h/d"] {
            assert!(!parse(other).unwrap_err().contains("secret"), "{other}");
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
            ("secret@db", ""),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}
