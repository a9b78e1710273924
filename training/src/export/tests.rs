use std::{collections::HashMap, fmt::Write, path::Path, sync::LazyLock};

use atelier_core::domain::{Method, Schema};
use atelier_core::util::folders::cache_folder;
use atelier_engine::{onnx_runtime::OnnxRuntime, tables::TablesError};
use ort::{session::Session, value::Tensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::*;
use crate::engine;
use crate::model::{
    Axes, ModelConfig, Needs, Trunk,
    tests::{
        OwnedExample, batch, examples,
        pairs::{OwnedPair, pair_batch, pairs, small_pair},
        small, small_with_embeddings, values,
    },
};
use crate::testing::{assert_has, difference};

/// It can be loaded once per process, and is downloaded if it is not in the cache.
pub(crate) static ONNX_RUNTIME: LazyLock<OnnxRuntime> = LazyLock::new(|| {
    OnnxRuntime::load(&cache_folder(), |notice| println!("{notice}")).expect("ONNX Runtime loads")
});

fn session(path: &Path) -> Session {
    Session::builder(ONNX_RUNTIME.environment())
        .unwrap()
        .with_intra_threads(1)
        .unwrap()
        .commit_from_file(path)
        .unwrap()
}

/// Writes a model of one node, of these inputs and of weights. Sizes below zero are not fixed.
pub(crate) fn write_node(
    path: &Path,
    (operator, of): (&str, &[&str]),
    weights: Option<&engine::Tensor>,
    inputs: &[(&str, DataType, &[i64])],
    (output, axes): (&str, &[i64]),
) {
    let value = |name: &str, kind: DataType, axes: &[i64]| {
        let fixed_or_any = |&size: &i64| usize::try_from(size).map_or(Axis::Named("any"), Axis::Fixed);
        tensor(name, kind, &axes.iter().map(fixed_or_any).collect::<Vec<_>>())
    };
    let mut graph = graph::Graph::new();
    if let Some(weights) = weights {
        graph.weight(weights, false);
    }
    graph.named_node(operator, of, &[output], vec![]);
    let inputs = inputs.iter().map(|(name, kind, axes)| value(name, *kind, axes)).collect();
    let graph = graph.finish("test", inputs, vec![value(output, DataType::Float, axes)]);
    write(graph, 0, Method::None, &metadata(Storage::Float32), &[], path).unwrap();
}

/// The trunk and its tables, joined.
fn exported(model: &Model, storage: Storage) -> (Session, ModelProto) {
    let (_, proto) = joined(model, storage);
    (opened(&proto), proto)
}

fn opened(proto: &ModelProto) -> Session {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.onnx");
    fs::write(&path, proto.encode_to_vec()).unwrap();
    session(&path)
}

fn metadata(storage: Storage) -> Metadata {
    Metadata { release: "test".into(), storage }
}

fn open_tables(trunk: &Path, config: &ModelConfig) -> Result<Tables, TablesError> {
    let values = (config.values > 0).then_some(config.values);
    Tables::open(&tables_path(trunk), config.articles, values, config.embedding, &schema(config))
}

fn joined(model: &Model, storage: Storage) -> (Tables, ModelProto) {
    let folder = tempfile::tempdir().unwrap();
    let (trunk, path) = (folder.path().join("model.onnx"), folder.path().join("whole.onnx"));
    let count = export(model, &metadata(storage), &trunk).unwrap();
    let config = model.config();
    let tables = open_tables(&trunk, config).unwrap();
    let rows = (config.values > 0).then(|| values(config));
    let article = |own: u32| {
        let values = rows.as_ref().map_or(&[][..], |rows| rows.of_article(own as usize));
        Composition { own: Some(own), values: values.into(), ..Composition::default() }
    };
    let articles: Vec<Composition> = (0..config.blank()).map(article).collect();
    export_whole(&trunk, &tables, &articles, storage, &path).unwrap();
    let proto = ModelProto::decode(fs::read(&path).unwrap().as_slice()).unwrap();
    assert_eq!(parameters(proto.graph.as_ref().unwrap()), count);
    (tables, proto)
}

/// The engine computes what the trunk reads of the customer; whole files have it as nodes.
#[test]
fn a_context_is_the_same_in_the_engine_and_in_a_whole_file() {
    for (method, storage) in
        Method::ALL.into_iter().zip([Storage::Float32, Storage::Int8].into_iter().cycle())
    {
        let model = small(method);
        let (tables, mut whole) = joined(&model, storage);
        let conditioned = !model.structure().tables.features.is_empty();
        assert_eq!(tables.context().is_some(), conditioned || !model.structure().tables.matched.is_empty());
        let Some(context) = tables.context() else { continue };
        let axes = [Axis::Named("batch"), Axis::Fixed(context.width())];
        whole.graph.as_mut().unwrap().output.push(tensor("context", DataType::Float, &axes));
        let outfits = examples(model.config(), 32, true, 5);
        let expected = &run(&mut opened(&whole), model.config(), &outfits)["context"];
        let mut found = Vec::new();
        for outfit in &outfits {
            context.write(&outfit.features, &mut found);
        }
        assert!(difference(&found, expected) < 1e-5, "{method}");
    }
}

/// A schema with the model's features.
fn schema(config: &ModelConfig) -> Schema {
    let mut text = "name = \"test\"\n".to_owned();
    for feature in &config.features {
        let values: Vec<String> = (1..feature.rows).map(|value| value.to_string()).collect();
        writeln!(text, "[[feature]]\nname = {:?}\nkind = \"set\"\nvalues = {values:?}", feature.name)
            .unwrap();
    }
    Schema::parse(&text).unwrap()
}

/// Lists of numbers, each filled up before or behind it to as many columns.
fn filled<'a>(
    lists: impl Iterator<Item = &'a Vec<u32>>,
    columns: usize,
    with: u32,
    before: bool,
) -> Vec<i64> {
    let fill = |list: &Vec<u32>| {
        let mut row = vec![with; columns];
        let from = if before { columns - list.len() } else { 0 };
        row[from..][..list.len()].copy_from_slice(list);
        row.into_iter().map(i64::from)
    };
    lists.flat_map(fill).collect()
}

/// Outputs by name, in ONNX Runtime.
fn run(session: &mut Session, config: &ModelConfig, outfits: &[OwnedExample]) -> HashMap<String, Vec<f32>> {
    let slots = outfits.iter().map(|outfit| outfit.slots.len()).max().unwrap();
    let articles = filled(outfits.iter().map(|outfit| &outfit.slots), slots, config.padding(), false);
    let blanks = outfits.iter().map(|outfit| i64::try_from(outfit.blank).unwrap()).collect::<Vec<_>>();
    let mut inputs = vec![
        ("articles", Tensor::from_array(([outfits.len(), slots], articles)).unwrap()),
        ("blank", Tensor::from_array(([outfits.len()], blanks)).unwrap()),
    ];
    let features = outfits.iter().flat_map(|outfit| &outfit.features);
    inputs.extend(input_of_features(session, config, features, true));
    let outputs = session.run(inputs).unwrap();
    let outputs = outputs.iter();
    outputs
        .map(|(name, value)| (name.to_owned(), value.try_extract_tensor::<f32>().unwrap().1.to_vec()))
        .collect()
}

/// The customers' features, if a session reads them. Zeros are skipped anywhere.
fn input_of_features<'a>(
    session: &Session,
    config: &ModelConfig,
    features: impl Iterator<Item = &'a Vec<u32>> + Clone,
    zeros_first: bool,
) -> Option<(&'static str, Tensor<i64>)> {
    let values = features.clone().map(Vec::len).max().unwrap_or(0).max(1);
    let numbers = filled(features, values, 0, zeros_first);
    let count = config.features.len();
    let shape = [numbers.len() / values / count.max(1), count, values];
    takes_features(session).then(|| ("features", Tensor::from_array((shape, numbers)).unwrap()))
}

fn takes_features(session: &Session) -> bool {
    session.inputs().iter().any(|input| input.name() == "features")
}

/// The logits as the service has them: whole files leave out what the tables remember of whole outfits.
fn served(
    session: &mut Session,
    tables: &Tables,
    config: &ModelConfig,
    outfits: &[OwnedExample],
) -> HashMap<String, Vec<f32>> {
    let mut outputs = run(session, config, outfits);
    let logits = outputs.get_mut("logits").unwrap().chunks_exact_mut(config.articles);
    for (logits, outfit) in logits.zip(outfits) {
        let slots = outfit.slots.iter().copied();
        let visible: Vec<u32> = slots.filter(|&slot| slot < config.blank()).collect();
        let boosts = tables.boosts_of_outfits(&visible, |_| true);
        boosts.for_each(|(article, by)| logits[article as usize] += by);
    }
    outputs
}

#[test]
fn onnx_runtime_matches_training() {
    for model in Method::ALL.into_iter().map(small).chain([small_with_embeddings()]) {
        let (method, config) = (model.config().method, model.config());
        let (tables, whole) = joined(&model, Storage::Float32);
        let mut session = opened(&whole);
        let axes = Axes::new(method);
        let universal = axes.trunk == Trunk::Universal;
        let mut most = 0.0_f32;
        // Outfits of many lengths together, and each length alone.
        let batches = [(1, true, 2), (9, false, 3), (64, true, 4)];
        let batches = batches.map(|(count, padded, seed)| examples(config, count, padded, seed));
        let alone = examples(config, 8, false, 21);
        for outfits in batches.iter().map(Vec::as_slice).chain(alone.chunks(1)) {
            let packed = batch(config, outfits);
            let outputs = served(&mut session, &tables, config, outfits);
            most = most.max(difference(&outputs["logits"], &model.logits(&packed)));
            assert_eq!(outputs.len(), 1 + usize::from(axes.personas) + usize::from(universal));
            if axes.personas {
                let expected = model.personas(&packed).expect("a mixture of personas");
                assert!(difference(&outputs["personas"], &expected) < 1e-5, "{method}");
            }
            if universal {
                let expected = model.steps(&packed).expect("steps");
                assert!(difference(&outputs["steps"], &expected) < 1e-5, "{method}");
            }
        }
        println!("{method}: max |Δ logit| {most:.1e}");
        assert!(most <= 1e-4, "{method}: {most}");
    }
}

/// A file's metadata.
fn properties(file: &ModelProto) -> HashMap<&str, &str> {
    file.metadata_props.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
}

/// With the papers' sizes and a small vocabulary, which does not count.
#[test]
fn parameters_are_the_papers() {
    for (method, expected) in [
        (Method::None, 546_432),
        (Method::C, 673_664),
        (Method::Np, 640_768),
        (Method::Gs, 723_328),
        (Method::Gsu, 921_856),
        (Method::Latent, 546_432),
        (Method::Universal, 414_081),
        (Method::LatentUniversal, 414_081),
    ] {
        let model = Model::new(&ModelConfig::new(method, 40, &Schema::default_schema()), 1);
        let (session, file) = exported(&model, Storage::Float32);
        let graph = file.graph.as_ref().unwrap();
        assert_eq!(parameters(graph), expected, "{method}");
        let properties = properties(&file);
        let found = ["method", "release", "parameters"].map(|name| properties[name]);
        assert_eq!(found, [method.as_str(), "test", &expected.to_string()]);
        let personas = session.outputs().iter().any(|output| output.name() == "personas");
        for (name, expected) in [
            ("articles.weight", Some(&[42, 128][..])),
            ("vocabulary.weight", Some(&[40, 128])),
            ("vocabulary.bias", Some(&[40])),
            ("features.gender.weight", takes_features(&session).then_some(&[4, 32])),
            ("personas.weight", personas.then_some(&[40, 8])),
        ] {
            let tensor = graph.initializer.iter().find(|tensor| tensor.name == name);
            assert_eq!(tensor.map(|tensor| &tensor.dims[..]), expected, "{method}: {name}");
        }
        assert!(graph.node.iter().any(|node| node.output == ["hidden"]));
    }
}

#[test]
fn half_precision_and_eight_bits_are_close() {
    for (method, storage, most) in [
        (Method::Latent, Storage::Float16, 0.05),
        (Method::Latent, Storage::Int8, 0.1),
        (Method::Match, Storage::Int8, 0.1),
    ] {
        let model = small(method);
        let outfits = examples(model.config(), 32, true, 9);
        let [(mut whole, _), (mut less, file)] = [Storage::Float32, storage].map(|of| exported(&model, of));
        let [whole, less] = [&mut whole, &mut less].map(|session| run(session, model.config(), &outfits));
        let off = difference(&whole["logits"], &less["logits"]);
        assert!(off > 0.0 && off < most, "{method}: {off}");
        for tensor in file.graph.unwrap().initializer.iter().filter(|_| storage == Storage::Float16) {
            let is_half = tensor.dims.len() > 1;
            let (expected, bytes) = if is_half { (DataType::Float16, 2) } else { (DataType::Float, 4) };
            assert_eq!(tensor.data_type(), expected, "{}", tensor.name);
            assert_eq!(tensor.raw_data.len() as u64, bytes * length(tensor), "{}", tensor.name);
        }
    }
}

/// How close eight bits are is asked of answers.
#[test]
fn tables_in_eight_bits_have_scales_and_small_things_are_whole() {
    let model = small(Method::Match);
    let folder = tempfile::tempdir().unwrap();
    let [plain, eighth] = [Storage::Float32, Storage::Int8].map(|storage| {
        let trunk = folder.path().join(format!("{storage:?}.onnx"));
        export(&model, &metadata(storage), &trunk).unwrap();
        fs::read(tables_path(&trunk)).unwrap()
    });
    let [plain, eighth] = [&plain, &eighth].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    let mut matrices = 0;
    for (name, was) in plain.tensors() {
        let is = eighth.tensor(&name).unwrap();
        assert_eq!(is.shape(), was.shape(), "{name}");
        let is_whole = was.dtype() != Dtype::F32 || was.shape().len() == 1;
        // It was in the trunk, which is never in eight bits.
        let of_trunk = ["features.", "match.", "context."].iter().any(|kind| name.starts_with(kind));
        let expected = if is_whole { was.dtype() } else { [Dtype::I8, Dtype::F16][usize::from(of_trunk)] };
        assert_eq!(is.dtype(), expected, "{name}");
        if expected == Dtype::I8 {
            matrices += 1;
            assert_eq!(eighth.tensor(&format!("{name}.scale")).unwrap().shape()[0], was.shape()[0], "{name}");
        }
    }
    assert_eq!(eighth.len(), plain.len() + matrices);
    assert!(matrices >= 5, "{matrices}");
}

#[test]
fn tables_of_another_shape_are_refused() {
    let model = small(Method::None);
    let folder = tempfile::tempdir().unwrap();
    let trunk = folder.path().join("none.onnx");
    export(&model, &metadata(Storage::Int8), &trunk).unwrap();
    let path = tables_path(&trunk);
    let bytes = fs::read(&path).unwrap();
    let articles = model.config().articles;
    let fewer = articles - 1;
    let mut other = model.config().clone();
    other.articles = fewer;
    let rows = format!("the tensor articles.own is of shape [{articles}, 8], expected {fewer} rows");
    assert_has(&open_tables(&trunk, &other).unwrap_err().to_string(), &[&rows]);
    let expected = format!("expected F32 of shape [{articles}], a scale for each row");
    for (changed, found) in [
        (Some((Dtype::F32, fewer)), format!("is F32 of shape [{fewer}], {expected}")),
        (Some((Dtype::F16, articles)), format!("is F16 of shape [{articles}], {expected}")),
        (None, "is missing, expected there".to_owned()),
    ] {
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors: Vec<_> =
            file.tensors().into_iter().filter(|(name, _)| name != "articles.own.scale").collect();
        let zeros = vec![0; 400];
        if let Some((dtype, rows)) = changed {
            let view = TensorView::new(dtype, vec![rows], &zeros[..rows * dtype.bitsize() / 8]).unwrap();
            tensors.push(("articles.own.scale".to_owned(), view));
        }
        safetensors::serialize_to_file(tensors, None, &path).unwrap();
        let error = open_tables(&trunk, model.config()).unwrap_err().to_string();
        let found = format!("the tensor articles.own.scale {found}; export the model again");
        assert_eq!(error, format!("{}: {found}", path.display()));
    }
}

#[test]
fn the_error_names_a_file_that_cannot_be_written() {
    let written = export(&small(Method::None), &metadata(Storage::Float32), Path::new("/nowhere/none.onnx"));
    assert_has(&written.unwrap_err().to_string(), &["/nowhere/none.safetensors: "]);
}

/// The answers of a pair file in ONNX Runtime.
fn run_pairs(session: &mut Session, config: &ModelConfig, pairs: &[OwnedPair]) -> Vec<f32> {
    let slots = pairs.iter().map(|pair| pair.first.len().max(pair.second.len())).max().unwrap();
    let half = |of: fn(&OwnedPair) -> &Vec<u32>| {
        let articles = filled(pairs.iter().map(of), slots, config.padding(), false);
        Tensor::from_array(([pairs.len(), slots], articles)).unwrap()
    };
    let mut inputs = vec![("first", half(|pair| &pair.first)), ("second", half(|pair| &pair.second))];
    let features = pairs.iter().flat_map(|pair| &pair.features);
    inputs.extend(input_of_features(session, config, features, false));
    let outputs = session.run(inputs).unwrap();
    assert_eq!(outputs.len(), 1);
    let (shape, probability) = outputs["probability"].try_extract_tensor::<f32>().unwrap();
    assert_eq!(shape[..], [i64::try_from(pairs.len()).unwrap()]);
    probability.to_vec()
}

fn exported_pair(model: &Model, storage: Storage) -> (Session, ModelProto) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.pair.onnx");
    let count = export_pair(model, &metadata(storage), &path).unwrap().expect("it judges pairs");
    let proto = ModelProto::decode(fs::read(&path).unwrap().as_slice()).unwrap();
    assert_eq!(parameters(proto.graph.as_ref().unwrap()), count);
    (session(&path), proto)
}

#[test]
fn onnx_runtime_judges_pairs_like_training() {
    for method in Method::ALL {
        let model = small_pair(method);
        let (mut session, _) = exported_pair(&model, Storage::Float32);
        let mut most = 0.0_f32;
        let (mut low, mut high) = (1.0_f32, 0.0_f32);
        for (count, padded, seed) in [(1, false, 1), (1, true, 2), (9, false, 3), (64, true, 4)] {
            let all = pairs(model.config(), count, padded, seed);
            let expected = model.pair_probabilities(&pair_batch(model.config(), &all));
            most = most.max(difference(&run_pairs(&mut session, model.config(), &all), &expected));
            low = expected.iter().copied().fold(low, f32::min);
            high = expected.iter().copied().fold(high, f32::max);
        }
        println!("{method}: max |Δ probability| {most:.1e}, all of them {low:.2} to {high:.2}");
        assert!(high - low > 0.04, "{method}: pairs differ");
        assert!(most <= 1e-4, "{method}: {most}");
    }
}

#[test]
fn a_pair_file_has_metadata_and_does_not_change_the_methods_own_file() {
    for (method, own, conditioned, personas) in
        [(Method::Gsu, 921_856, true, 0), (Method::Latent, 546_432, false, 2)]
    {
        let mut config = ModelConfig::new(method, 40, &Schema::default_schema());
        let without = Model::new(&config, 1);
        config.pair = true;
        let model = Model::new(&config, 1);
        let [whole, whole_without] = [&model, &without].map(|model| exported(model, Storage::Float32).1);
        assert!(whole == whole_without, "{method}");
        let (session, file) = exported_pair(&model, Storage::Float32);
        let properties = properties(&file);
        let found = ["method", "release", "task", "parameters"].map(|name| properties[name]);
        let count = own + (4 * 128 + personas) * 128 + 128 + 128 + 1;
        assert_eq!(found, [method.as_str(), "test", "pair", &count.to_string()]);
        assert_eq!(takes_features(&session), conditioned);
        let has = |begin: &str| {
            let tensors = &file.graph.as_ref().unwrap().initializer;
            tensors.iter().any(|tensor| tensor.name.starts_with(begin))
        };
        assert_eq!((has("vocabulary."), has("personas.weight")), (false, personas > 0));
        let all = pairs(&config, 5, true, 9);
        let expected = model.pair_probabilities(&pair_batch(&config, &all));
        let (mut half, _) = exported_pair(&model, Storage::Float16);
        assert!(difference(&run_pairs(&mut half, &config, &all), &expected) < 0.05, "{method}");
    }
    let path = Path::new("/nowhere/none.pair.onnx");
    assert_eq!(export_pair(&small(Method::None), &metadata(Storage::Float32), path).unwrap(), None);
}

/// An article without a vector of its own has the row that training gives one whose own vector is dropped.
#[test]
fn new_articles_have_rows_of_values_and_embeddings() {
    let folder = tempfile::tempdir().unwrap();
    let trunk = folder.path().join("model.onnx");
    let mut model = small_with_embeddings();
    export(&model, &metadata(Storage::Float32), &trunk).unwrap();
    let config = model.config().clone();
    let (tables, rows) = (open_tables(&trunk, &config).unwrap(), values(&config));
    let width = tables.widths().row();
    let check = |model: &Model, is_new: bool| {
        let whole = |name: &str| &model.weights().0.iter().find(|tensor| tensor.name == name).unwrap().data;
        for article in 0..config.blank() {
            let place = article as usize;
            let embedding = if is_new { rows.embedding(place).into() } else { Box::default() };
            let own = (!is_new).then_some(article);
            let values = rows.of_article(place).into();
            let composition = Composition { own, values, embedding, ..Composition::default() };
            let (mut read, mut compared) = (vec![0.0; width], vec![0.0; width]);
            tables.write_row(&composition, &mut read);
            let bias = tables.write_weights(&composition, &mut compared);
            let expected = |name: &str| &whole(name)[place * width..][..width];
            assert!(difference(&read, expected("articles.weight")) < 1e-6, "{article}");
            assert!(difference(&compared, expected("vocabulary.weight")) < 1e-6, "{article}");
            assert!((bias - whole("vocabulary.bias")[place]).abs() < 1e-6, "{article}");
        }
    };
    check(&model, false);
    model.compose(Needs { kept: Some(vec![false; config.articles]), visible: None });
    check(&model, true);
}
