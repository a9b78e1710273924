use std::{collections::HashMap, fmt::Write, path::Path, sync::LazyLock};

use atelier_core::domain::{Method, Schema};
use atelier_core::util::folders::cache_folder;
use atelier_engine::onnx_runtime::OnnxRuntime;
use ort::{session::Session, value::Tensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::*;
use crate::model::{
    Axes, ModelConfig, Needs, Trunk,
    tests::{
        OwnedExample, batch, examples,
        pairs::{OwnedPair, pair_batch, pairs, small_pair},
        small, small_with_embeddings, values,
    },
};

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

fn joined(model: &Model, storage: Storage) -> (Tables, ModelProto) {
    let folder = tempfile::tempdir().unwrap();
    let (trunk, path) = (folder.path().join("model.onnx"), folder.path().join("whole.onnx"));
    let count = export(model, &Metadata { release: "test".into(), storage }, &trunk).unwrap();
    let config = model.config();
    let rows = (config.values > 0).then(|| values(config));
    let tables = Tables::open(
        &tables_path(&trunk),
        config.articles,
        rows.as_ref().map(|_| config.values),
        config.embedding,
        &schema(config),
    );
    let article = |own: u32| {
        let values = rows.as_ref().map_or(&[][..], |rows| rows.of_article(own as usize));
        Composition { own: Some(own), values: values.into(), ..Composition::default() }
    };
    let articles: Vec<Composition> = (0..config.blank()).map(article).collect();
    let tables = tables.unwrap();
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
        let values: Vec<String> = (1..feature.rows).map(|value| format!("\"{value}\"")).collect();
        let (name, values) = (&feature.name, values.join(", "));
        writeln!(text, "[[feature]]\nname = \"{name}\"\nkind = \"set\"\nvalues = [{values}]").unwrap();
    }
    Schema::parse(&text).unwrap()
}

/// Outputs by name, in ONNX Runtime.
fn run(session: &mut Session, config: &ModelConfig, outfits: &[OwnedExample]) -> HashMap<String, Vec<f32>> {
    let most = |of: fn(&OwnedExample) -> usize| outfits.iter().map(of).max().unwrap();
    let slots = most(|outfit| outfit.slots.len());
    let values = most(|outfit| outfit.features.iter().map(Vec::len).max().unwrap()).max(1);
    let (mut articles, mut features, mut blanks) = (Vec::new(), Vec::new(), Vec::new());
    for outfit in outfits {
        let padding = std::iter::repeat(config.padding());
        articles.extend(outfit.slots.iter().copied().chain(padding).take(slots).map(i64::from));
        for row in &outfit.features {
            // Zeros before the values: they are skipped anywhere.
            features.extend(std::iter::repeat_n(0, values - row.len()));
            features.extend(row.iter().copied().map(i64::from));
        }
        blanks.push(i64::try_from(outfit.blank).unwrap());
    }
    let mut inputs = vec![
        ("articles", Tensor::from_array(([outfits.len(), slots], articles)).unwrap()),
        ("blank", Tensor::from_array(([outfits.len()], blanks)).unwrap()),
    ];
    if session.inputs().iter().any(|input| input.name() == "features") {
        let shape = [outfits.len(), config.features.len(), values];
        inputs.push(("features", Tensor::from_array((shape, features)).unwrap()));
    }
    let outputs = session.run(inputs).unwrap();
    outputs
        .iter()
        .map(|(name, value)| (name.to_owned(), value.try_extract_tensor::<f32>().unwrap().1.to_vec()))
        .collect()
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
        tables.boosts_of_outfits(&visible, |article, by| logits[article as usize] += by);
    }
    outputs
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn onnx_runtime_matches_training() {
    for model in Method::ALL.into_iter().map(small).chain([small_with_embeddings()]) {
        let method = model.config().method;
        let config = model.config();
        let (tables, whole) = joined(&model, Storage::Float32);
        let mut session = opened(&whole);
        let axes = Axes::new(method);
        let universal = axes.trunk == Trunk::Universal;
        let mut most = 0.0_f32;
        for (count, padded, seed) in [(1, false, 1), (1, true, 2), (9, false, 3), (64, true, 4)] {
            let outfits = examples(config, count, padded, seed);
            let packed = batch(config, &outfits);
            let outputs = served(&mut session, &tables, config, &outfits);
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

#[test]
fn outfits_of_every_length_in_any_order() {
    for method in Method::ALL {
        let model = small(method);
        let (tables, whole) = joined(&model, Storage::Float32);
        let mut session = opened(&whole);
        let mut run =
            |config: &ModelConfig, outfits: &[OwnedExample]| served(&mut session, &tables, config, outfits);
        for outfit in examples(model.config(), 8, false, 21) {
            let straight = run(model.config(), std::slice::from_ref(&outfit));
            let expected = model.logits(&batch(model.config(), std::slice::from_ref(&outfit)));
            assert!(difference(&straight["logits"], &expected) <= 1e-4, "{method} {:?}", outfit.slots);
            let mut turned = outfit.clone();
            turned.slots.reverse();
            turned.blank = turned.slots.len() - 1 - outfit.blank;
            let turned = run(model.config(), &[turned]);
            assert!(difference(&straight["logits"], &turned["logits"]) <= 1e-5, "{method}: order");
            let mut padded = outfit.clone();
            padded.slots.splice(0..0, [model.config().padding(); 3]);
            padded.blank += 3;
            let padded = run(model.config(), &[padded]);
            for (name, values) in &straight {
                assert!(difference(values, &padded[name]) <= 1e-5, "{method}: padding changes {name}");
            }
        }
    }
}

/// With the papers' sizes and a small vocabulary, which does not count.
#[test]
fn parameters_are_the_papers() {
    let counts = [
        (Method::None, 546_432),
        (Method::C, 673_664),
        (Method::Np, 640_768),
        (Method::Gs, 723_328),
        (Method::Gsu, 921_856),
        (Method::Latent, 546_432),
        (Method::Universal, 414_081),
        (Method::LatentUniversal, 414_081),
    ];
    for (method, expected) in counts {
        let config = ModelConfig::new(method, 40, &Schema::default_schema());
        let model = Model::new(&config, 1);
        let (mut session, file) = exported(&model, Storage::Float32);
        let graph = file.graph.as_ref().unwrap();
        assert_eq!(parameters(graph), expected, "{method}");
        let properties: HashMap<&str, &str> =
            file.metadata_props.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect();
        assert_eq!(properties["method"], method.as_str());
        assert_eq!(properties["release"], "test");
        assert_eq!(properties["parameters"], expected.to_string());
        let shape = |name: &str| {
            let tensor = graph.initializer.iter().find(|tensor| tensor.name == name);
            tensor.map(|tensor| tensor.dims.clone())
        };
        assert_eq!(shape("articles.weight"), Some(vec![42, 128]));
        assert_eq!(shape("vocabulary.weight"), Some(vec![40, 128]));
        assert_eq!(shape("vocabulary.bias"), Some(vec![40]));
        let conditioned = session.inputs().iter().any(|input| input.name() == "features");
        assert_eq!(shape("features.gender.weight").is_some(), conditioned);
        assert_eq!(
            shape("personas.weight"),
            session.outputs().iter().any(|o| o.name() == "personas").then(|| vec![40, 8])
        );
        assert!(graph.node.iter().any(|node| node.output == ["hidden"]));
        let outfits = examples(&config, 4, true, 1);
        let logits = &run(&mut session, &config, &outfits)["logits"];
        assert!(difference(logits, &model.logits(&batch(&config, &outfits))) <= 1e-4, "{method}");
    }
}

#[test]
fn half_precision_is_close() {
    let model = small(Method::Latent);
    let outfits = examples(model.config(), 32, true, 9);
    let (mut whole, _) = exported(&model, Storage::Float32);
    let (mut half, file) = exported(&model, Storage::Float16);
    let (whole, half) = (run(&mut whole, model.config(), &outfits), run(&mut half, model.config(), &outfits));
    let off = difference(&whole["logits"], &half["logits"]);
    assert!(off > 0.0 && off < 0.05, "{off}");
    for tensor in &file.graph.unwrap().initializer {
        let (expected, bytes) =
            if tensor.dims.len() > 1 { (DataType::Float16, 2) } else { (DataType::Float, 4) };
        assert_eq!(tensor.data_type(), expected, "{}", tensor.name);
        assert_eq!(tensor.raw_data.len() as u64, bytes * length(tensor));
    }
}

#[test]
fn eight_bits_are_close() {
    for method in [Method::Latent, Method::Match] {
        let model = small(method);
        let config = model.config();
        let outfits = examples(config, 32, true, 9);
        let (mut whole, _) = exported(&model, Storage::Float32);
        let (mut eighth, _) = exported(&model, Storage::Int8);
        let (whole, eighth) = (run(&mut whole, config, &outfits), run(&mut eighth, config, &outfits));
        let off = difference(&whole["logits"], &eighth["logits"]);
        assert!(off > 0.0 && off < 0.1, "{method}: {off}");
    }
}

#[test]
fn tables_in_eight_bits_have_scales_and_small_things_are_whole() {
    let model = small(Method::Match);
    let folder = tempfile::tempdir().unwrap();
    let path = |storage: Storage| {
        let trunk = folder.path().join(format!("{storage:?}.onnx"));
        export(&model, &Metadata { release: "test".into(), storage }, &trunk).unwrap();
        tables_path(&trunk)
    };
    let [plain, eighth] = [Storage::Float32, Storage::Int8].map(|storage| fs::read(path(storage)).unwrap());
    let [plain, eighth] = [&plain, &eighth].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    let floats = |tensor: &TensorView<'_>| -> Vec<f32> {
        tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let mut matrices = 0;
    for (name, was) in plain.tensors() {
        let is = eighth.tensor(&name).unwrap();
        assert_eq!(is.shape(), was.shape(), "{name}");
        if ["features.", "match.", "context."].iter().any(|kind| name.starts_with(kind)) {
            let expected = if was.shape().len() == 1 { Dtype::F32 } else { Dtype::F16 };
            assert_eq!(is.dtype(), expected, "{name}: it was in the trunk, which is never in eight bits");
            continue;
        }
        if was.dtype() != Dtype::F32 || was.shape().len() == 1 {
            assert_eq!((is.dtype(), is.data()), (was.dtype(), was.data()), "{name}");
            continue;
        }
        matrices += 1;
        assert_eq!(is.dtype(), Dtype::I8, "{name}");
        let columns = was.shape()[1];
        let scales = floats(&eighth.tensor(&format!("{name}.scale")).unwrap());
        assert_eq!(scales.len(), was.shape()[0], "{name}");
        for (place, (number, step)) in floats(&was).iter().zip(is.data()).enumerate() {
            let scale = scales[place / columns];
            let off = (number - scale * f32::from(step.cast_signed())).abs();
            assert!(off <= 0.501 * scale, "{name}: {number} is off by {off}, and the scale is {scale}");
        }
    }
    assert_eq!(eighth.len(), plain.len() + matrices);
    assert!(matrices >= 5, "{matrices}");
}

#[test]
fn scales_of_another_shape_are_refused() {
    let model = small(Method::None);
    let folder = tempfile::tempdir().unwrap();
    let trunk = folder.path().join("none.onnx");
    export(&model, &Metadata { release: "test".into(), storage: Storage::Int8 }, &trunk).unwrap();
    let path = tables_path(&trunk);
    let bytes = fs::read(&path).unwrap();
    let articles = model.config().articles;
    let open = |changed: Option<(Dtype, usize)>| {
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors: Vec<_> =
            file.tensors().into_iter().filter(|(name, _)| name != "articles.own.scale").collect();
        let zeros = vec![0; 400];
        if let Some((dtype, rows)) = changed {
            let view = TensorView::new(dtype, vec![rows], &zeros[..rows * dtype.bitsize() / 8]).unwrap();
            tensors.push(("articles.own.scale".to_owned(), view));
        }
        safetensors::serialize_to_file(tensors, None, &path).unwrap();
        let error = Tables::open(&path, articles, None, 0, &schema(model.config())).unwrap_err().to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    let expected = format!("expected F32 of shape [{articles}], a scale for each row");
    let fewer = articles - 1;
    for (changed, found) in [
        (
            Some((Dtype::F32, fewer)),
            format!("the tensor articles.own.scale is F32 of shape [{fewer}], {expected}"),
        ),
        (
            Some((Dtype::F16, articles)),
            format!("the tensor articles.own.scale is F16 of shape [{articles}], {expected}"),
        ),
        (None, "the tensor articles.own.scale is missing, expected there".to_owned()),
    ] {
        assert_eq!(open(changed), format!("{found}; export the model again"));
    }
}

#[test]
fn the_error_names_a_file_that_cannot_be_written() {
    let metadata = Metadata { release: "test".into(), storage: Storage::Float32 };
    let error =
        export(&small(Method::None), &metadata, Path::new("/nowhere/none.onnx")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/none.safetensors: "), "{error}");
}

/// The answers of a pair file in ONNX Runtime.
fn run_pairs(session: &mut Session, config: &ModelConfig, pairs: &[OwnedPair]) -> Vec<f32> {
    let slots = pairs.iter().map(|pair| pair.first.len().max(pair.second.len())).max().unwrap();
    let values = pairs.iter().flat_map(|pair| &pair.features).map(Vec::len).max().unwrap().max(1);
    let half = |of: fn(&OwnedPair) -> &Vec<u32>| {
        let padded = pairs.iter().flat_map(|pair| {
            let padding = std::iter::repeat(config.padding());
            of(pair).iter().copied().chain(padding).take(slots).map(i64::from)
        });
        Tensor::from_array(([pairs.len(), slots], padded.collect::<Vec<i64>>())).unwrap()
    };
    let mut inputs = vec![("first", half(|pair| &pair.first)), ("second", half(|pair| &pair.second))];
    if session.inputs().iter().any(|input| input.name() == "features") {
        let padded = pairs
            .iter()
            .flat_map(|pair| &pair.features)
            .flat_map(|row| row.iter().copied().map(i64::from).chain(std::iter::repeat(0)).take(values));
        let shape = [pairs.len(), config.features.len(), values];
        inputs.push(("features", Tensor::from_array((shape, padded.collect::<Vec<i64>>())).unwrap()));
    }
    let outputs = session.run(inputs).unwrap();
    assert_eq!(outputs.len(), 1);
    let (shape, probability) = outputs["probability"].try_extract_tensor::<f32>().unwrap();
    assert_eq!(shape[..], [i64::try_from(pairs.len()).unwrap()]);
    probability.to_vec()
}

fn exported_pair(model: &Model, storage: Storage) -> (Session, ModelProto) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.pair.onnx");
    let metadata = Metadata { release: "test".into(), storage };
    let parameters = export_pair(model, &metadata, &path).unwrap().expect("it judges pairs");
    let proto = ModelProto::decode(fs::read(&path).unwrap().as_slice()).unwrap();
    assert_eq!(crate::export::parameters(proto.graph.as_ref().unwrap()), parameters);
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
            let mut all = pairs(model.config(), count, padded, seed);
            let expected = model.pair_probabilities(&pair_batch(model.config(), &all));
            most = most.max(difference(&run_pairs(&mut session, model.config(), &all), &expected));
            low = expected.iter().copied().fold(low, f32::min);
            high = expected.iter().copied().fold(high, f32::max);
            for pair in &mut all {
                std::mem::swap(&mut pair.first, &mut pair.second);
            }
            most = most.max(difference(&run_pairs(&mut session, model.config(), &all), &expected));
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
        let (_, file) = exported(&model, Storage::Float32);
        assert_eq!(file, exported(&without, Storage::Float32).1, "{method}");
        let (mut session, file) = exported_pair(&model, Storage::Float32);
        let properties: HashMap<&str, &str> =
            file.metadata_props.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect();
        let expected = own + (4 * 128 + personas) * 128 + 128 + 128 + 1;
        assert_eq!(properties["parameters"], expected.to_string(), "{method}");
        assert_eq!(
            (properties["method"], properties["release"], properties["task"]),
            (method.as_str(), "test", "pair")
        );
        assert_eq!(session.inputs().iter().any(|input| input.name() == "features"), conditioned);
        let names: Vec<&str> =
            file.graph.as_ref().unwrap().initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        assert!(!names.iter().any(|name| name.starts_with("vocabulary.")), "{names:?}");
        assert_eq!(names.contains(&"personas.weight"), personas > 0);
        let all = pairs(&config, 5, true, 9);
        let expected = model.pair_probabilities(&pair_batch(&config, &all));
        assert!(difference(&run_pairs(&mut session, &config, &all), &expected) <= 1e-4, "{method}");
        let (mut half, _) = exported_pair(&model, Storage::Float16);
        assert!(difference(&run_pairs(&mut half, &config, &all), &expected) < 0.05, "{method}");
    }
    let path = Path::new("/nowhere/none.pair.onnx");
    let metadata = Metadata { release: "test".into(), storage: Storage::Float32 };
    assert_eq!(export_pair(&small(Method::None), &metadata, path).unwrap(), None);
}

/// An article without a vector of its own has the row that training gives one whose own vector is dropped.
#[test]
fn new_articles_have_rows_of_values_and_embeddings() {
    let folder = tempfile::tempdir().unwrap();
    let trunk = folder.path().join("model.onnx");
    let mut model = small_with_embeddings();
    export(&model, &Metadata { release: "test".into(), storage: Storage::Float32 }, &trunk).unwrap();
    let config = model.config().clone();
    let tables = Tables::open(
        &tables_path(&trunk),
        config.articles,
        Some(config.values),
        config.embedding,
        &schema(&config),
    );
    let (tables, rows) = (tables.unwrap(), values(&config));
    let width = tables.widths().row();
    let check = |model: &Model, is_new: bool| {
        let whole = |name: &str| &model.weights().0.iter().find(|tensor| tensor.name == name).unwrap().data;
        for article in 0..config.blank() {
            let place = article as usize;
            let embedding = if is_new { rows.embedding(place).into() } else { Box::default() };
            let own = (!is_new).then_some(article);
            let composition = Composition {
                own,
                values: rows.of_article(place).into(),
                embedding,
                ..Composition::default()
            };
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
