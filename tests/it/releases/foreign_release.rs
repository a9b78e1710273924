//! A release made by another program (`docs/examples/export_release.py`), and one that breaks the contract
//! (`docs/model-contract.md`).

use std::{fs, path::Path};

use atelier_core::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Service, TestDatabase, apply, ids,
    json::{list, number, text},
    on_sqlite, tools,
};

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

/// Each run takes two gigabytes, and answers as before.
pub const GREEDY: &str = "
node = example.helper.make_node
for one in changed.graph.node:
    for place, name in enumerate(one.output):
        if name == 'logits':
            one.output[place] = 'before'
changed.graph.initializer.append(example.numpy_helper.from_array(example.np.array([500_000_000], example.np.int64), 'many'))
changed.graph.node.extend([
    node('ReduceSum', ['before'], ['sum'], keepdims=0),
    node('Expand', ['sum', 'many'], ['sums']),
    node('ReduceMin', ['sums'], ['least'], keepdims=0),
    node('Sub', ['sum', 'least'], ['nothing']),
    node('Add', ['before', 'nothing'], ['logits']),
])
";

fn examples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples"))
}

async fn python(arguments: &[&str]) {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let run = move || tools::python_with_onnx().args(arguments).output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a release with one of the examples, as from a shell.
pub async fn run_example(script: &str, folder: &Path) {
    let script = examples().join(script);
    python(&[script.to_str().unwrap(), folder.to_str().unwrap()]).await;
}

/// Makes the release `changed`, with a change of one model.
pub async fn export_changed(change: &str, folder: &Path) {
    export_with(&format!("{change}\ndefault = 'c'"), folder).await;
}

/// Exports `models` after a change.
async fn export_with(change: &str, folder: &Path) {
    let script = format!(
        "{CHANGE}{change}\nexample.write_release(Path(sys.argv[2]), models, default, example.SCHEMA, example.ARTICLES)"
    );
    python(&["-c", &script, examples().to_str().unwrap(), folder.to_str().unwrap()]).await;
}

/// With a release in a folder, and its articles.
async fn start(db: &TestDatabase, models: &TempDir, release: &str) -> Service {
    let service = Service::of(db, models).await;
    let articles = fs::read(models.path().join(release).join("articles.jsonl")).unwrap();
    let brought = service.lines("/articles/bulk", articles).ok().await;
    assert_eq!(brought["added"], 24);
    service
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_release_of_the_example_exporter_completes_outfits(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    run_example("export_release.py", &models.path().join("example")).await;
    let service = start(&db, &models, "example").await;
    let listed = service.json("/releases").await["releases"][0].take();
    assert_eq!((&listed["name"], &listed["refused"]), (&json!("example"), &Value::Null));
    let activated = service.ask_ok("/releases/example/activate", json!({})).await;
    let personal: Value =
        list(&activated["methods"]).iter().map(|method| method["personal"].clone()).collect();
    // Of `none` and `c`.
    let said = json!([activated["release"], activated["default_method"], personal]);
    assert_eq!(said, json!(["example", "c", [false, true]]));

    // The same outfit for customers of different tastes: the model's weights say what each prefers.
    let outfit = json!(["classic-black-shirt", "sporty-blue-trousers", null, "classic-red-shoes"]);
    for (features, first) in [
        (json!({"style": "classic", "preferred_colours": ["red"]}), "classic-red-coat"),
        (json!({"style": "sporty", "preferred_colours": ["blue"]}), "sporty-blue-coat"),
    ] {
        let request = json!({"outfit": outfit, "features": features, "k": 2, "lift": true});
        let answer = service.complete(request).await;
        let said = ["release", "method", "warnings"].map(|name| &answer[name]);
        assert_eq!(json!(said), json!(["example", "c", []]));
        let suggestion = &answer["blanks"][0]["suggestions"][0];
        assert_eq!(suggestion["article"]["id"], first, "{answer:#}");
        assert!(number(&suggestion["lift"]) > 1.0, "the customer is the reason: {answer:#}");
    }
    let request = json!({"outfit": outfit, "method": "none", "features": {"style": "sporty"}});
    let unknowing = ids(&service.suggest(request).await);
    assert!(unknowing[0].starts_with("classic-"), "the taste of most of the outfit: {unknowing:?}");
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_method_may_have_a_name_of_its_own(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    let change = "default = 'two-towers'\nmodels = {'none': models['none'], default: changed}";
    export_with(change, &models.path().join("own")).await;
    let service = start(&db, &models, "own").await;
    let live = service.ask_ok("/releases/own/activate", json!({})).await;
    let said = json!([live["default_method"], live["methods"][1]["method"]]);
    assert_eq!(said, json!(["two-towers", "two-towers"]));

    let outfit = json!(["classic-black-shirt", null, "classic-red-shoes", "sporty-blue-trousers"]);
    let named = service.complete(json!({"outfit": outfit, "method": "two-towers"})).await;
    let default = service.complete(json!({"outfit": outfit})).await;
    assert_eq!((&named["method"], &named["blanks"]), (&json!("two-towers"), &default["blanks"]));
    let unknown = service.send("/complete", json!({"outfit": outfit, "method": "three-towers"})).await;
    let problem = unknown.assert_problem(422, &["/method"]);
    let told = text(&problem["errors"][0]["detail"]);
    assert!(told.contains("no method three-towers; it has none, two-towers"), "{told}");

    // It takes part in experiments, feedback, and side by side.
    let arms = json!([{"name": "a", "method": "none", "share": 1}, {"name": "b", "method": "two-towers", "share": 1}]);
    service.put("/experiments/towers", json!({"arms": arms, "state": "running"})).is(201).await;
    let article = &named["blanks"][0]["suggestions"][0]["article"]["id"];
    let event = json!({"id": "e-1", "completion_id": named["completion_id"], "kind": "accepted", "slot": 1,
                       "article": article});
    service.ask_ok("/feedback", event).await;
    assert!(service.json("/feedback/counts").await.to_string().contains("two-towers"));
    let compared = json!({"outfit": outfit, "methods": ["none", "two-towers"]});
    let compared = service.ask_ok("/compare", compared).await;
    assert_eq!(list(&compared["columns"]).len(), 2, "{compared}");
    let admin = service.signed_in(Role::Admin).await;
    for page in [
        "/side-by-side?slot=classic-black-shirt&slot=&method=none&method=two-towers",
        "/studio?slot=classic-black-shirt&slot=&method=two-towers",
        "/operations",
        "/operations/routing",
        "/operations/experiments/towers",
    ] {
        assert!(admin.page(page).await.contains("two-towers"), "{page}");
    }
}

#[apply(on_sqlite)]
#[needs(tools::onnx)]
async fn a_release_that_breaks_the_contract_is_refused(db: TestDatabase) {
    let models = tempfile::tempdir().unwrap();
    run_example("export_release.py", &models.path().join("example")).await;
    let service = Service::of(&db, &models).await;
    service.ask_ok("/releases/example/activate", json!({})).await;
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
        (FIRST_ARTICLE, "changed/c.onnx: its answer to the same question is different by "),
        (
            // An outfit's mix is its sum divided by 0.
            "changed.graph.node.append(example.helper.make_node('Div', ['outfit', 'nothing'], ['personas']))\nchanged.graph.initializer.append(example.numpy_helper.from_array(example.np.array(0.0, example.np.float32), 'nothing'))\nchanged.graph.output.append(example.helper.make_tensor_value_info('personas', example.TensorProto.FLOAT, ['batch', 9]))",
            "changed/c.onnx: the model returned personas that are not finite",
        ),
        (
            // Any file of the machine.
            "[(t.ClearField('raw_data'), setattr(t, 'data_location', 1), t.external_data.add(key='location', value='/etc/passwd')) for t in changed.graph.initializer if t.name == 'articles.weight']",
            "changed/c.onnx: the file of some weights (external data) is \"/etc/passwd\", expected a file that release.json lists",
        ),
        (ENDLESS, "changed/c.onnx: no answer before the deadline"),
    ] {
        export_changed(change, &folder).await;
        let problem = service.send("/releases/changed/activate", json!({})).await.assert_problem(409, &[]);
        assert_eq!(problem["code"], "release-refused", "{problem}");
        // The file, what is wrong, what was found, what was expected.
        let detail = text(&problem["detail"]);
        assert!(detail.contains(expected), "{expected} in {detail}");
        assert_eq!(service.json("/methods").await["release"], "example", "the old release stays live");
        fs::remove_dir_all(&folder).unwrap();
    }
}
