//! Renders each problem: as JSON (RFC 9457) for programs, as a page for browsers. Also the page that explains every
//! kind of problem.

use std::{sync::LazyLock, time::Duration};

use askama::Template;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, header},
    response::{Html, IntoResponse, Response},
};
use utoipa_axum::routes;

use super::shell::{Frame, Shell};
use crate::platform::http::{
    AppState, Finding, KINDS, Kind, Problem, ProblemBody, RequestId,
    conditions::{ASK_AGAIN, Conditions, Document, ReadHeaders},
    problem::{PublicProblem, status},
    routes::Routes,
};

#[derive(Template)]
#[template(path = "platform/problem.html")]
struct ProblemPage<'a> {
    shell: Shell,
    kind: Kind,
    detail: &'a str,
    findings: &'a [Finding],
    /// Whether a customer reads it, who has no Studio.
    is_for_customer: bool,
    /// The page that a form was on.
    back: &'a str,
    request_id: &'a str,
}

impl ProblemPage<'_> {
    fn heading(&self) -> &'static str {
        match self.kind.status() {
            404 => "There is nothing here",
            // A form of another session is forbidden, too, whatever its sender may do.
            400 | 403 | 422 => "That didn’t work",
            _ => self.kind.title(),
        }
    }
}

/// How to render the problem that a request may end in.
#[derive(Debug)]
pub(crate) struct Rendering {
    wants_page: bool,
    is_for_customer: bool,
    back: String,
    frame: Frame,
}

impl Rendering {
    pub(crate) fn new(request: &mut Request, demo: bool) -> Self {
        let wants_page = wants_page(request.headers());
        let frame = Frame::new(demo);
        request.extensions_mut().insert(frame.clone());
        let is_for_customer = request.uri().path().starts_with("/shared/");
        let back = form_page(request).unwrap_or_default();
        Self { wants_page, is_for_customer, back, frame }
    }

    pub(crate) fn render(self, mut response: Response, id: &RequestId) -> Response {
        let Some(problem) = response.extensions_mut().remove::<PublicProblem>() else { return response };
        let Self { wants_page, is_for_customer, back, frame } = self;
        let (kind, retry_after) = (problem.kind, problem.retry_after);
        let mut rendered = if wants_page {
            let (detail, findings) = (&*problem.detail, &problem.findings[..]);
            let (shell, request_id) = (frame.shell(), id.as_str());
            let back = &back;
            let page = ProblemPage { shell, kind, detail, findings, is_for_customer, back, request_id };
            Html(page.render().expect("writing to a String never fails")).into_response()
        } else {
            let body = ProblemBody::new(problem, id);
            let json = serde_json::to_vec(&body).expect("a problem is plain JSON");
            ([(header::CONTENT_TYPE, "application/problem+json")], json).into_response()
        };
        *rendered.status_mut() = status(kind);
        // Headers such as Allow of a 405 were set together with the problem.
        for (name, value) in response.headers() {
            if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
                rendered.headers_mut().append(name, value.clone());
            }
        }
        rendered.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
        if kind == Kind::UnsupportedEncoding {
            rendered.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let usual = matches!(kind.status(), 429 | 503).then_some(RETRY);
        if let Some(wait) = retry_after.or(usual) {
            rendered.headers_mut().insert(header::RETRY_AFTER, seconds_rounded_up(wait).into());
        }
        rendered
    }
}

/// When to try again what may work soon, if nothing more is known.
const RETRY: Duration = Duration::from_secs(1);

/// Rounded up, so that no caller retries too early.
fn seconds_rounded_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// The page of ours whose form this request is, as the browser says.
fn form_page(request: &Request) -> Option<String> {
    let referer = request.headers().get(header::REFERER).filter(|_| request.method() == Method::POST)?;
    let (_, place) = referer.to_str().ok()?.split_once("://")?;
    Some(place[place.find('/')?..].to_owned()).filter(|path| !path.starts_with("//"))
}

/// Browsers name text/html in Accept; programs that accept `*/*` get JSON.
fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

#[derive(Template)]
#[template(path = "platform/docs/problems.html")]
struct ProblemsPage {
    shell: Shell,
    kinds: &'static [Kind],
}

pub(crate) fn router() -> Routes {
    Routes::new().open(routes!(problems))
}

/// The problems of requests, as a page
#[utoipa::path(get, path = "/docs/problems", operation_id = "getProblemsPage", tag = "documents",
    params(ReadHeaders),
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
    ),
)]
async fn problems(State(state): State<AppState>, conditions: Conditions) -> Result<Response, Problem> {
    static PAGES: LazyLock<[Document; 2]> = LazyLock::new(|| {
        [false, true].map(|demo| {
            let page = ProblemsPage { shell: Shell::outside(demo), kinds: KINDS }.render();
            let page = page.expect("writing to a String never fails");
            Document::new("text/html; charset=utf-8", page)
        })
    });
    PAGES[usize::from(state.is_demo())].answer(ASK_AGAIN, &conditions)
}
