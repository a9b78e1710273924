//! A release made by another program (`docs/examples/export_release.py`), and one that breaks the contract
//! (`docs/model-contract.md`).

use std::{fs, path::Path};

use atelier::config::Limits;
use atelier_core::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Service;
use crate::harness::{TestDatabase, apply, on_sqlite, tools};

/// A changed copy of the example's models, as a release called `changed`.
const CHANGE: &str = "
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import export_release as example
models = {'none': example.bag_of_articles(personal=False), 'c': example.bag_of_articles(personal=True)}
changed = models['c']
";

/// Only the first article counts, so that the order of the slots does, and padding does not.
const FIRST_ARTICLE: &str = "
nodes, node = changed.graph.node, example.helper.make_node
place = [one.output[0] for one in nodes].index('vectors_sum')
nodes[place].input[0] = 'first_vectors'
added = [
    node('CumSum', ['visible', 'second_axis'], ['running']),
    node('Equal', ['running', 'one'], ['is_first']),
    node('Cast', ['is_first'], ['first'], to=example.TensorProto.FLOAT),
    node('Mul', ['first', 'visible'], ['first_visible']),
    node('Unsqueeze', ['first_visible', 'axis_2'], ['first_column']),
    node('Mul', ['vectors', 'first_column'], ['first_vectors']),
]
rest = list(nodes)[place:]
del nodes[place:]
nodes.extend(added + rest)
changed.graph.initializer.append(example.numpy_helper.from_array(example.np.array(1, example.np.int64), 'second_axis'))
";

/// Its loop never ends.
pub const ENDLESS: &str = "
helper, types = example.helper, example.TensorProto
for one in changed.graph.node:
    for place, name in enumerate(one.output):
        if name == 'logits':
            one.output[place] = 'before'
value = helper.make_tensor_value_info
body = helper.make_graph(
    [helper.make_node('Identity', ['going'], ['goes_on']), helper.make_node('Identity', ['inner'], ['same'])], 'body',
    [value('count', types.INT64, []), value('going', types.BOOL, []), value('inner', types.FLOAT, None)],
    [value('goes_on', types.BOOL, []), value('same', types.FLOAT, None)])
changed.graph.initializer.append(example.numpy_helper.from_array(example.np.array(True), 'always'))
changed.graph.node.append(helper.make_node('Loop', ['', 'always', 'before'], ['logits'], body=body))
";

fn examples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples"))
}

async fn python(arguments: Vec<String>) {
    let run = move || tools::python_with_onnx().args(arguments).output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the example as from a shell.
async fn export(models: &TempDir) {
    run_example("export_release.py", &models.path().join("example")).await;
}

/// Makes a release with one of the examples.
pub async fn run_example(script: &str, folder: &Path) {
    python([examples().join(script), folder.to_owned()].map(|path| path.display().to_string()).into()).await;
}

async fn start(db: &TestDatabase, models: &TempDir) -> Service {
    Service::start_in(db, Limits::default(), models.path().to_owned()).await
}

/// Makes the release `changed`, with a change of one model.
pub async fn export_changed(change: &str, folder: &Path) {
    let script = format!(
        "{CHANGE}{change}\nexample.write_release(Path(sys.argv[2]), models, 'c', example.SCHEMA, example.ARTICLES)"
    );
    let arguments = ["-c", &script, &examples().display().to_string(), &folder.display().to_string()];
    python(arguments.map(ToOwned::to_owned).into()).await;
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_release_of_the_example_exporter_completes_outfits(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    export(&models).await;
    let service = start(&db, &models).await;
    let listed = service.json("/releases").await;
    assert_eq!(listed["releases"][0]["name"], "example");
    assert_eq!(listed["releases"][0]["refused"], Value::Null, "{listed}");

    let articles = fs::read(models.path().join("example/articles.jsonl")).unwrap();
    let brought = service.post("/articles/bulk", "application/x-ndjson", articles).await;
    assert_eq!(brought.json()["added"], 24);
    let activated = service.ask_ok("/releases/example/activate", &json!({})).await;
    assert_eq!((&activated["release"], &activated["default_method"]), (&json!("example"), &json!("c")));
    let personal: Vec<&Value> =
        activated["methods"].as_array().unwrap().iter().map(|method| &method["personal"]).collect();
    assert_eq!(personal, [false, true], "none and c");

    // The same outfit for customers of different tastes: the model's weights say what each prefers.
    let outfit = json!(["classic-black-shirt", "sporty-blue-trousers", null, "classic-red-shoes"]);
    for (features, first) in [
        (json!({"style": "classic", "preferred_colours": ["red"]}), "classic-red-coat"),
        (json!({"style": "sporty", "preferred_colours": ["blue"]}), "sporty-blue-coat"),
    ] {
        let request = json!({"outfit": outfit, "features": features, "k": 2, "lift": true});
        let answer = service.ask_ok("/complete", &request).await;
        assert_eq!((&answer["release"], &answer["method"]), (&json!("example"), &json!("c")));
        let suggestion = &answer["blanks"][0]["suggestions"][0];
        assert_eq!(suggestion["article"]["id"], first, "{answer:#}");
        assert!(suggestion["lift"].as_f64().unwrap() > 1.0, "the customer is the reason: {answer:#}");
        assert_eq!(answer["warnings"], json!([]));
    }
    let request = json!({"outfit": outfit, "method": "none", "features": {"style": "sporty"}});
    let unknowing = service.ask_ok("/complete", &request).await;
    let suggestion = &unknowing["blanks"][0]["suggestions"][0];
    assert!(
        suggestion["article"]["id"].as_str().unwrap().starts_with("classic-"),
        "the taste of most of the outfit"
    );
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_method_may_have_a_name_of_its_own(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    let script = format!(
        "{CHANGE}models = {{'none': models['none'], 'two-towers': changed}}\n\
         example.write_release(Path(sys.argv[2]), models, 'two-towers', example.SCHEMA, example.ARTICLES)"
    );
    let folder = models.path().join("own");
    let arguments = ["-c", &script, &examples().display().to_string(), &folder.display().to_string()];
    python(arguments.map(ToOwned::to_owned).into()).await;
    let service = start(&db, &models).await;
    let articles = fs::read(folder.join("articles.jsonl")).unwrap();
    service.post("/articles/bulk", "application/x-ndjson", articles).await;
    let live = service.ask_ok("/releases/own/activate", &json!({})).await;
    assert_eq!(
        (&live["default_method"], &live["methods"][1]["method"]),
        (&json!("two-towers"), &json!("two-towers"))
    );

    let outfit = json!(["classic-black-shirt", null, "classic-red-shoes", "sporty-blue-trousers"]);
    let named = service.ask_ok("/complete", &json!({"outfit": outfit, "method": "two-towers"})).await;
    let default = service.ask_ok("/complete", &json!({"outfit": outfit})).await;
    assert_eq!((&named["method"], &named["blanks"]), (&json!("two-towers"), &default["blanks"]));
    let (status, problem) =
        service.ask("/complete", &json!({"outfit": outfit, "method": "three-towers"})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/method")));
    let told = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(told.contains("no method three-towers; it has none, two-towers"), "{told}");

    // It takes part in experiments, feedback, and side by side.
    let arms = json!([{"name": "a", "method": "none", "share": 1}, {"name": "b", "method": "two-towers", "share": 1}]);
    let experiment = json!({"arms": arms, "state": "running"});
    service.put("/experiments/towers", &experiment).is(201).await;
    let article = &named["blanks"][0]["suggestions"][0]["article"]["id"];
    let event = json!({"id": "e-1", "completion_id": named["completion_id"], "kind": "accepted", "slot": 1,
                       "article": article});
    let (status, answer) = service.ask("/feedback", &event).await;
    assert!(status < 300, "{answer}");
    assert!(service.json("/feedback/counts").await.to_string().contains("two-towers"));
    let compared =
        service.ask_ok("/compare", &json!({"outfit": outfit, "methods": ["none", "two-towers"]})).await;
    assert_eq!(compared["columns"].as_array().map(Vec::len), Some(2), "{compared}");
    let analyst = service.signed_in(Role::Admin).await;
    for page in [
        "/side-by-side?slot=classic-black-shirt&slot=&method=none&method=two-towers",
        "/studio?slot=classic-black-shirt&slot=&method=two-towers",
        "/operations",
        "/operations/routing",
        "/operations/experiments/towers",
    ] {
        assert!(analyst.page(page).await.contains("two-towers"), "{page}");
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_release_that_breaks_the_contract_is_refused(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    export(&models).await;
    let service = start(&db, &models).await;
    service.ask_ok("/releases/example/activate", &json!({})).await;
    let folder = models.path().join("changed");
    for (change, expected) in [
        (
            "changed.graph.output[0].name = changed.graph.node[-1].output[0] = 'scores'",
            "changed/c.onnx: its output `logits` is missing among scores, expected f32 [any, 24]",
        ),
        (
            "example.helper.set_model_props = lambda model, entries: \
             [model.metadata_props.add(key=k, value=v) for k, v in entries.items() if k != 'release']",
            "changed/none.onnx: `release` of its metadata is missing, expected \"changed\"",
        ),
        (
            "changed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1",
            "changed/c.onnx: its input `articles` is Tensor<i64>(1, slots), expected i64 [any, any]",
        ),
        (
            // Blanks and padding count as articles.
            "changed.graph.initializer[3].CopyFrom(example.numpy_helper.from_array(example.np.array(99, example.np.int64), 'vocabulary'))",
            "changed/c.onnx: its answer to the same question is different by ",
        ),
        (FIRST_ARTICLE, "changed/c.onnx: its answer to the same question is different by "),
        (
            // An outfit's mix is its sum divided by 0.
            "changed.graph.node.append(example.helper.make_node('Div', ['outfit', 'nothing'], ['personas']))\nchanged.graph.initializer.append(example.numpy_helper.from_array(example.np.array(0.0, example.np.float32), 'nothing'))\nchanged.graph.output.append(example.helper.make_tensor_value_info('personas', example.TensorProto.FLOAT, ['batch', 9]))",
            "changed/c.onnx: the model returned personas that are not finite",
        ),
        (
            // One article's row.
            "[t.CopyFrom(example.numpy_helper.from_array(example.np.where(example.np.arange(t.dims[0])[:, None] == 7, example.np.float32(3e38), example.numpy_helper.to_array(t)), t.name)) for t in changed.graph.initializer if t.name == 'articles.weight']",
            "changed/c.onnx: the weight `articles.weight` holds ",
        ),
        (
            // Any file of the machine.
            "[(t.ClearField('raw_data'), setattr(t, 'data_location', 1), t.external_data.add(key='location', value='/etc/passwd')) for t in changed.graph.initializer if t.name == 'articles.weight']",
            "changed/c.onnx: the file of some weights (external data) is \"/etc/passwd\", expected a file that release.json lists",
        ),
        (ENDLESS, "changed/c.onnx: no answer before the deadline"),
    ] {
        export_changed(change, &folder).await;
        let (status, problem) = service.ask("/releases/changed/activate", &json!({})).await;
        assert_eq!((status, &problem["code"]), (409, &json!("release-refused")), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        // The file, what is wrong, what was found, what was expected.
        assert!(detail.contains(expected), "{detail}");
        assert_eq!(service.json("/methods").await["release"], "example", "the old release stays live");
        fs::remove_dir_all(&folder).unwrap();
    }
}
