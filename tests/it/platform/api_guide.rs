//! docs/api.md shows every endpoint. clients/blocks.py runs its examples, and clients/check those of docs/examples/api.py and api.ts,
//! which make the same requests.

use crate::{
    harness::{Service, apply, on_sqlite},
    people::attempts::is_of,
    platform::routes::read_document,
};

const GUIDE: &str = include_str!("../../../docs/api.md");
/// The service's address in the guide.
const THERE: &str = "http://127.0.0.1:8080";

/// The requests of the shell examples, by method and path.
fn requests_by_curl() -> Vec<(String, String)> {
    let blocks = GUIDE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let code: String = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let request = |command: &str| {
        let method = command.split_once("-X ").and_then(|(_, rest)| rest.split(' ').next());
        let sends = command.contains(" -d ") || command.contains("--data-binary");
        let (_, rest) = command.split_once(THERE)?;
        let path = rest.split([' ', '\'', '"', '\n', ')']).next()?;
        Some((method.unwrap_or(if sends { "POST" } else { "GET" }).to_owned(), path.to_owned()))
    };
    code.split("curl ").skip(1).map(|command| request(command).expect(command)).collect()
}

#[apply(on_sqlite)]
async fn every_endpoint_has_its_examples(service: Service) {
    let asked = requests_by_curl();
    for operation in read_document(&service).await.1 {
        let is_asked =
            |(by, at): &(String, String)| *by == operation.method.as_str() && is_of(at, &operation.path);
        assert!(asked.iter().any(is_asked), "docs/api.md shows no {operation}");
    }
}
