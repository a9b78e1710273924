//! The signed-in person. A handler's argument names the role that its page requires.

use std::{convert::Infallible, net::IpAddr, time::Duration};

use atelier_core::domain::Role;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, Method, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
};

use crate::{
    people::{Lifetimes, Token, sql::people::Person},
    platform::{
        db::{Actor, Author},
        http::{AppState, Kind, Problem, https::is_https, peer::Peer},
        page::{
            session::{COOKIE, HOST_COOKIE, read_cookie, token},
            shell::{Frame, Page, Shell, SignedIn},
        },
    },
};

/// The cookies of a device that has signed in with a password, which sign-outs leave there.
const DEVICE_COOKIE: &str = "atelier_device";
const HOST_DEVICE_COOKIE: &str = "__Host-atelier_device";
/// The longest that browsers keep a cookie.
const DEVICE: Duration = Duration::from_hours(24 * 400);

pub(crate) struct Visitor {
    pub(crate) person: Person,
    pub(crate) token: Token,
    /// By which they call the shop.
    pub(crate) host: String,
    peer: Option<IpAddr>,
    demo: bool,
}

impl Visitor {
    /// The frame of a page in the navigation.
    pub(crate) fn shell(&self, page: Page) -> Shell {
        Shell::signed_in(Some(page), self.signed_in(), self.demo)
    }

    /// The frame of a page outside the navigation.
    pub(crate) fn plain_shell(&self) -> Shell {
        Shell::signed_in(None, self.signed_in(), self.demo)
    }

    fn signed_in(&self) -> SignedIn {
        SignedIn { name: self.person.name.to_string(), role: self.person.role, csrf: self.csrf() }
    }

    pub(crate) fn csrf(&self) -> String {
        self.token.form_token()
    }

    pub(crate) fn author(&self) -> Author {
        Author { actor: Actor::Person(self.person.id), peer: self.peer }
    }
}

/// Handler arguments for people with at least a role. Other people are refused, or sent to sign in.
macro_rules! roles {
    ($($role:ident),+) => {
        $(
            #[doc = concat!("A person with at least the role `", stringify!($role), "`.")]
            pub(crate) struct $role(pub(crate) Visitor);

            impl FromRequestParts<AppState> for $role {
                type Rejection = Response;

                async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
                    at_least(Role::$role, parts, state).await.map(Self)
                }
            }
        )+
    };
}

roles!(Stylist, Analyst, Merchandiser, Admin);

async fn at_least(role: Role, parts: &mut Parts, state: &AppState) -> Result<Visitor, Response> {
    let Guest(visitor) =
        Guest::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?;
    match visitor {
        Some(visitor) if visitor.person.role >= role => Ok(visitor),
        Some(visitor) => {
            let detail = format!("this page requires the role {role}, yours is {}", visitor.person.role);
            Err(Problem::new(Kind::Forbidden, detail).into_response())
        }
        None if matches!(parts.method, Method::GET | Method::HEAD) => {
            let here = parts.uri.path_and_query().map_or("/", |place| place.as_str());
            let next: String = form_urlencoded::byte_serialize(here.as_bytes()).collect();
            let sign_in = format!("/sign-in?next={next}");
            // A part that reloads itself would be replaced by the sign-in page: htmx must leave the whole page.
            if parts.headers.contains_key("hx-request") {
                let go = [(HeaderName::from_static("hx-redirect"), sign_in)];
                return Err((go, Problem::new(Kind::SignIn, "you are no longer signed in")).into_response());
            }
            Err(Redirect::to(&sign_in).into_response())
        }
        None => Err(signed_out().into_response()),
    }
}

/// The problem of a form that was sent after the session ended.
pub(crate) fn signed_out() -> Problem {
    Problem::new(Kind::SignIn, "nothing was changed; sign in at /sign-in and try again")
}

pub(crate) struct Guest(pub(crate) Option<Visitor>);

impl FromRequestParts<AppState> for Guest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Some(token) = token(&parts.headers, &parts.extensions) else { return Ok(Self(None)) };
        let session = state.access().session(&token, state.now()).await?;
        let peer = Peer::ip(&parts.extensions);
        let demo = state.is_demo();
        let host = read_host(&parts.headers);
        let visitor = session.map(|session| Visitor { person: session.person, token, host, peer, demo });
        if let (Some(visitor), Some(frame)) = (&visitor, parts.extensions.get::<Frame>()) {
            frame.set(visitor.signed_in());
        }
        Ok(Self(visitor))
    }
}

/// Someone who signs in: their address is known, and perhaps their device, but not yet who they are.
pub(crate) struct Stranger {
    pub(crate) author: Author,
    pub(crate) host: String,
    pub(crate) device: Option<Token>,
}

impl<S: Send + Sync> FromRequestParts<S> for Stranger {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let https = is_https(&parts.headers, &parts.extensions);
        let device = read_cookie(&parts.headers, if https { HOST_DEVICE_COOKIE } else { DEVICE_COOKIE });
        let author = Author { actor: Actor::Visitor, peer: Peer::ip(&parts.extensions) };
        Ok(Self { author, host: read_host(&parts.headers), device })
    }
}

fn read_host(headers: &HeaderMap) -> String {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned()
}

/// The `Set-Cookie` value that keeps a session, or ends it without a token.
pub(crate) fn cookie(session: Option<(&Token, Lifetimes)>, https: bool) -> String {
    let name = if https { HOST_COOKIE } else { COOKIE };
    match session {
        Some((token, lifetimes)) => set_cookie(name, token.as_str(), lifetimes.session, https),
        None => set_cookie(name, "", Duration::ZERO, https),
    }
}

/// The `Set-Cookie` value by which a device is known after its session.
pub(crate) fn device_cookie(device: &Token, https: bool) -> String {
    let name = if https { HOST_DEVICE_COOKIE } else { DEVICE_COOKIE };
    set_cookie(name, device.as_str(), DEVICE, https)
}

fn set_cookie(name: &str, value: &str, lifetime: Duration, https: bool) -> String {
    let (seconds, secure) = (lifetime.as_secs(), if https { "; Secure" } else { "" });
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}
