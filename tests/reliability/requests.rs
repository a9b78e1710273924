//! Damaged requests to the real router, in this process: a line with method and path, lines of headers, an empty line,
//! and the body.

use std::time::SystemTime;

use anyhow::{Result, ensure};
use atelier::{
    people::Token,
    platform::{db::Name, http::AppState},
};
use atelier_core::domain::Role;
use axum::{Router, body::Body, extract::Request};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::Service;

use crate::app;

pub struct Requests {
    pub corpus: Vec<Vec<u8>>,
    router: Router,
    runtime: Runtime,
    _folder: TempDir,
}

impl Requests {
    pub fn new() -> Result<Self> {
        let (runtime, folder) = (Runtime::new()?, TempDir::new()?);
        let (router, session) = runtime.block_on(async {
            let database = format!("sqlite:{}", folder.path().join("a.db").display());
            let (parts, now) = (app::demo(&database).await?, SystemTime::now().into());
            let admin = parts.store.people().create(&Name::new("Ada")?, Role::Admin, None, now).await?;
            let link = parts.access.link(admin.id, now).await?;
            let session = parts.access.enter(&link, None, now).await?;
            anyhow::Ok((atelier::app::app(AppState::new(parts)), session))
        })?;
        let corpus = api_requests().chain(page_requests(&session)).map(String::into_bytes).collect();
        let requests = Self { corpus, router, runtime, _folder: folder };
        for request in &requests.corpus {
            let status = requests.send(request);
            let text = String::from_utf8_lossy(request);
            // Signing in is refused, and has reached its handler.
            let reached = text.starts_with("POST /sign-in") || status != Some(401);
            ensure!(reached && ![Some(403), Some(405), None].contains(&status), "{status:?}: {text}");
        }
        Ok(requests)
    }

    /// The answer's status, unless this is no HTTP.
    ///
    /// # Panics
    /// If the answer is a 500, which is what a panic becomes.
    pub fn send(&self, bytes: &[u8]) -> Option<u16> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
        let (head, body) = (&bytes[..end], bytes.get(end + 2..).unwrap_or_default());
        let mut lines = head.split(|byte| *byte == b'\n');
        let mut first = lines.next().unwrap_or_default().splitn(2, |byte| *byte == b' ');
        let mut part = || first.next().unwrap_or_default();
        let mut request = Request::builder().method(part()).uri(part());
        for line in lines {
            let mut pair = line.splitn(2, |byte| *byte == b':');
            let mut part = || pair.next().unwrap_or_default();
            request = request.header(part(), part());
        }
        // Invalid HTTP never reaches the router.
        let Ok(request) = request.body(Body::from(body.to_vec())) else { return None };
        let answer = self.runtime.block_on(self.router.clone().call(request));
        let status = answer.unwrap_or_else(|never| match never {}).status();
        assert_ne!(status, 500, "{}", String::from_utf8_lossy(bytes));
        Some(status.as_u16())
    }
}

/// Each line has a method, a path and, unless it has only a query, a body.
const API: &str = r#"
POST /complete {"customer":"c-1","features":{"gender":"female","age":34},"outfit":["a-00134",null],"method":"gsu","k":3,"filters":{"types":{"1":["coat"]},"exclude":["a-00001"],"price":{"min":1,"max":300.5},"in_stock":true,"no_gos":false,"fit":true,"store":"zurich"},"diversity":0.5,"lift":true,"explain":true,"sets":2}
POST /complete/batch {"items":[{"outfit":[null],"k":2},{"outfit":["a-00134",null]}]}
POST /compare {"features":{"age":3},"outfit":["a-00134",null],"methods":["none","gsu"],"k":2,"true_article":"a-01243"}
POST /score {"features":{"age":3},"outfit":["a-00134","a-00259"],"method":"np"}
POST /feedback {"id":"e","completion_id":"x","kind":"shown","slot":1,"article":"a","rank":2}
POST /feedback {"items":[{"id":"e","completion_id":"x","kind":"bought","slot":0,"article":"a","customer":"c-1"}]}
PUT /customers/c-fuzz {"id":"c-fuzz","features":{"age":28,"preferred_colours":["grey",null]}}
PUT /articles/a-fuzz {"id":"a-fuzz","type":"coat","price":"1.299,00","in_stock":"ja","stock":[{"size":"M","store":"zurich","count":3},{"count":0}],"material":["wool"]}
POST /outfits {"customer":"c-000010","articles":["a-00134","a-00259","a-00568","a-01243"],"features":{"occasion":"office"}}
POST /releases/spring/activate {"force":true}
PUT /routing {"default_method":null}
POST /articles/bulk?skip_bad=true {"id":"a-fuzz","type":"coat","price":-1.5,"in_stock":0}
POST /customers/bulk?skip_bad=true {"id":"c-fuzz","features":{"age":1e308,"shoe_size":"38"}}
POST /outfits/bulk?skip_bad=true {"customer":"c-000010","articles":["a-00134","a-00259"],"features":{"occasion":"office"}}
GET /customers?n=2&cursor=after:abc&search=%C3%A4
GET /articles?n=2&search=coat&type=coat
GET /customers/c-000010/export
GET /customers/c-000010/outfits?n=1&cursor=after:3
DELETE /outfits/3
GET /feedback/outfits.jsonl"#;

fn api_requests() -> impl Iterator<Item = String> {
    API.lines().skip(1).map(|line| {
        let (head, body) = line.split_once(" {").unwrap_or((line, ""));
        if body.is_empty() {
            let trace = "traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let origin = "host:localhost:8080\norigin:http://localhost:8080";
            return format!("{head}\n{origin}\nx-request-id:r\n{trace}\naccept:text/html;q=0.5,*/*\n\n");
        }
        let kind = if head.contains("bulk") { "x-ndjson" } else { "json" };
        format!("{head}\nhost:localhost\ncontent-type:application/{kind}\n\n{{{body}")
    })
}

/// Pages with their queries, and forms; of a signed-in admin, and of a stranger.
fn page_requests(session: &Token) -> impl Iterator<Item = String> {
    let cookie = format!("cookie:other=1; atelier_session={}", session.as_str());
    let view =
        "customer=c-014871&slot=a-00134&slot=&slot=a-00568&k=20&type=coat&no_gos=on&method=none&method=gsu";
    let pages = [
        format!("/studio?{view}&f.age=30&max=300&mark=a-00001&saved=1"),
        format!("/side-by-side?{view}&truth=a-00259"),
        format!("/side-by-side.csv?{view}"),
        "/evaluation/cases?method=gsu&customer=c-000010&sort=rank&page=2&all=true".into(),
        "/evaluation/cases.csv?method=gsu&other=none".into(),
        "/personas?method=latent&customer=c-000010".into(),
        "/access/audit?action=customer.&actor=service&before=9".into(),
        "/pictures/coat-red.svg".into(),
        "/sign-in?next=%2Fstudio%3Fk%3D2".into(),
    ];
    let forms = [
        ("/sign-in", "name=admin&password=wrong+horse+battery&next=%2Fstudio".to_owned()),
        ("/sign-in/link", format!("link={}&password=correct+horse+battery", "a".repeat(64))),
        ("/studio/outfits", format!("customer=c-000010&articles=a-00134&{view}")),
        ("/studio/feedback", format!("completion=x&slot=1&article=a-00134&kind=accepted&{view}")),
        ("/access", "name=Ada&role=stylist".to_owned()),
        ("/access/keys", "label=shop&scope=complete&scope=catalogue&days=30".to_owned()),
        ("/operations/routing", "default=gsu&name=x&share.gsu=1&share.none=2".to_owned()),
    ];
    let csrf = session.form_token();
    let posts = forms.map(|(path, fields)| {
        let kind = "content-type:application/x-www-form-urlencoded\nsec-fetch-site:same-origin";
        format!("POST {path}\n{cookie}\n{kind}\n\ncsrf={csrf}&{fields}")
    });
    pages.map(|path| format!("GET {path}\n{cookie}\naccept:text/html\n\n")).into_iter().chain(posts)
}
