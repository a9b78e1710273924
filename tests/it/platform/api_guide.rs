//! docs/api.md, docs/events.md and README.md: their examples run as printed, and give the printed answers. clients/check runs docs/examples/api.py
//! and api.ts, which make the same requests.

use std::process::{Command, Output};

use serde_json::Value;

use crate::{
    cli::run,
    harness::{Service, TestDatabase, apply, on_sqlite, tools},
    people::attempts::is_of,
    platform::routes::read_document,
};

const GUIDE: &str = include_str!("../../../docs/api.md");
/// The service's address in the guide.
const THERE: &str = "http://127.0.0.1:8080";
/// Separates the output of two examples.
const NEXT: &str = "-- next example --";

/// One step of the guide: the request, and the printed answer, if any.
#[derive(Default)]
struct Example {
    sh: String,
    shown: Option<Value>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    // Every second part is a block, with its language in the first line. A shell block starts an example.
    for block in text.split("```").skip(1).step_by(2) {
        let (language, code) = block.split_once('\n').expect("a block has lines");
        if language == "sh" || examples.is_empty() {
            examples.push(Example::default());
        }
        let example = examples.last_mut().unwrap();
        match language {
            "sh" => code.clone_into(&mut example.sh),
            "json" => example.shown = Some(serde_json::from_str(code).expect(code)),
            other => panic!("a block of another language: {other}"),
        }
    }
    examples
}

/// Whether the answer contains all that is printed: an ellipsis matches anything, and ends a list early.
fn check(shown: &Value, found: &Value, place: &str) {
    match (shown, found) {
        (Value::String(text), found) if text == "…" => assert!(!found.is_null(), "{place} is missing"),
        (Value::Object(shown), Value::Object(found)) => {
            for (name, value) in shown {
                let there =
                    found.get(name).unwrap_or_else(|| panic!("{place}/{name} is missing in {found:?}"));
                check(value, there, &format!("{place}/{name}"));
            }
        }
        (Value::Array(shown), Value::Array(found)) => {
            let open = shown.last().is_some_and(|last| last == "…");
            let shown = if open { &shown[..shown.len() - 1] } else { shown };
            assert!(
                if open { shown.len() <= found.len() } else { shown.len() == found.len() },
                "{place}: {} items, found {found:?}",
                shown.len()
            );
            for (index, (shown, found)) in shown.iter().zip(found).enumerate() {
                check(shown, found, &format!("{place}/{index}"));
            }
        }
        // A printed fraction is rounded.
        (Value::Number(shown), Value::Number(found)) if shown.is_f64() => {
            let digits = shown.to_string().split('.').nth(1).map_or(0, str::len);
            let [shown, found] = [shown, found].map(|number| number.as_f64().unwrap());
            let half = 0.6 * 0.1_f64.powi(i32::try_from(digits).unwrap());
            assert!((shown - found).abs() < half, "{place}: {shown}, found {found}");
        }
        (shown, found) => assert_eq!(shown, found, "{place}"),
    }
}

/// The last line of an example's output must be the printed answer.
fn check_all(output: &Output, examples: &[Example]) {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed: Vec<&str> = text.split(NEXT).collect();
    assert!(output.status.success(), "{errors}\nafter {}", printed.last().unwrap());
    assert_eq!(printed.len(), examples.len() + 1, "{text}");
    for (example, printed) in examples.iter().zip(printed) {
        let Some(shown) = &example.shown else { continue };
        let mut answers = serde_json::Deserializer::from_str(printed).into_iter::<Value>();
        let last = answers.by_ref().map(|answer| answer.expect(printed)).last();
        check(shown, &last.unwrap_or_else(|| panic!("nothing was answered to {}", example.sh)), "");
    }
}

/// Runs all examples of a document as one program, with the service's real address, and counts them.
async fn run_examples(db: &TestDatabase, text: &str) -> (usize, String) {
    let service = Service::untouched_demo(db).await;
    let examples = examples(text);
    let code = examples.iter().map(|example| format!("{}\necho '{NEXT}'", example.sh));
    let program = code.collect::<Vec<_>>().join("\n").replace(THERE, &service.url);
    let mut command = Command::new("sh");
    command.args(["-euc", &program]);
    let output = run(command).await;
    check_all(&output, &examples);
    (examples.len(), String::from_utf8(output.stdout).unwrap())
}

#[apply(on_sqlite)]
#[needs(tools::curl)]
async fn shell_examples_give_the_shown_answers(db: TestDatabase) {
    let (examples, _) = run_examples(&db, GUIDE).await;
    assert!(examples > 20, "the guide is whole");
}

#[apply(on_sqlite)]
#[needs(tools::curl)]
async fn the_readmes_examples_work_on_the_demo(db: TestDatabase) {
    let (examples, printed) = run_examples(&db, include_str!("../../../README.md")).await;
    assert!(examples == 2 && printed.contains("\"c-new\""), "{printed}");
}

#[apply(on_sqlite)]
#[needs(tools::curl)]
async fn the_events_page_begins_with_a_request_that_works_on_the_demo(db: TestDatabase) {
    let (begin, _) = include_str!("../../../docs/events.md").split_once("\n## ").unwrap();
    let (examples, _) = run_examples(&db, begin).await;
    assert_eq!(examples, 1);
}

/// The requests of the shell examples, by method and path.
fn requests_by_curl() -> Vec<(String, String)> {
    let code: String = examples(GUIDE).iter().map(|example| example.sh.replace("\\\n", " ")).collect();
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
