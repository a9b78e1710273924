//! The session of a page's visitor, in the browser's cookies.

use axum::http::{Extensions, HeaderMap, header};

use crate::platform::{http::https::is_https, token::Token};

pub(crate) const COOKIE: &str = "atelier_session";
/// Over https. Browsers accept this name only from the host itself and over https, so neither another host of the
/// domain nor anyone on the network can plant a session.
pub(crate) const HOST_COOKIE: &str = "__Host-atelier_session";

pub(crate) fn token(headers: &HeaderMap, extensions: &Extensions) -> Option<Token> {
    read_cookie(headers, if is_https(headers, extensions) { HOST_COOKIE } else { COOKIE })
}

pub(crate) fn read_cookie(headers: &HeaderMap, expected: &str) -> Option<Token> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == expected).then(|| Token::parse(value)).flatten())
}
