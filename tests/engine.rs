//! The engine on the demo release, without a service: real models in the real ONNX Runtime.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use atelier::config::Cache;
use atelier_core::domain::Method;
use atelier_engine::{
    catalogue::ArticleIndex,
    inference::{
        Answer, Articles, AskError, BLANK, Context, Device, DeviceChoice, Engine, LoadError, ModelError,
        Question, Serving, Settings,
    },
    onnx_runtime::OnnxRuntime,
    tables::Tables,
};
use ort::{
    session::{Session, SessionInputs},
    value::Tensor,
};
use tempfile::TempDir;

#[path = "shared/demo.rs"]
#[expect(dead_code, unreachable_pub, reason = "other tests read its tables, and this binary exports nothing")]
mod demo;

/// A process can load the library only once. It is fetched if it is not in the cache.
static ONNX_RUNTIME: LazyLock<OnnxRuntime> = LazyLock::new(|| {
    OnnxRuntime::load(&Cache::default().folder, |notice| println!("{notice}")).expect("ONNX Runtime loads")
});

const SETTINGS: Settings = Settings { workers: 2, batch: 64, queue: 1024, device: DeviceChoice::Cpu };

fn demo() -> PathBuf {
    demo::models().join("demo")
}

fn engine(settings: Settings) -> Engine {
    Engine::new(ONNX_RUNTIME.clone(), settings)
}

fn serving(settings: Settings) -> Serving {
    engine(settings).load(&demo()).unwrap()
}

/// The release's articles, in its order.
fn articles(serving: &Serving) -> Arc<Articles> {
    Arc::new(serving.articles(ArticleIndex::of_release(serving.release())))
}

/// Questions of all lengths, with and without a context, the same every time.
fn questions(serving: &Serving, count: usize) -> Vec<Question> {
    let (release, all) = (serving.release(), articles(serving));
    let articles = release.vocabulary().blank();
    let mut state = 1_u64;
    let mut draw = move |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(state >> 33).unwrap() % below
    };
    let question = |number: usize| {
        let length = 1 + number % 8;
        let blank = number % length;
        let mut slots: Vec<u32> = (0..length).map(|_| draw(articles)).collect();
        slots[blank] = BLANK;
        let context: Context = release
            .schema()
            .features()
            .iter()
            .map(|feature| {
                let rows = u32::try_from(feature.rows()).unwrap() - 1;
                (0..draw(3)).map(|_| 1 + draw(rows)).collect()
            })
            .collect();
        let named = vec![draw(articles), draw(articles)];
        let question = Question::new(Arc::clone(&all), slots, blank, context);
        Question { k: 20, placements_of: named, ranks: true, ..question }
    };
    (0..count).map(question).collect()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

#[tokio::test]
async fn batched_answers_equal_single_ones() {
    let serving = serving(SETTINGS);
    assert_eq!(serving.device(), Device::Cpu);
    assert_eq!(serving.methods().collect::<Vec<_>>(), demo::methods(), "the demo release has every method");
    compare(&serving, &serving).await;
}

/// Compares answers to single questions with answers to a batch of them.
async fn compare(alone: &Serving, batching: &Serving) {
    for method in demo::methods() {
        let questions = questions(alone, 64);
        let together = batching.ask(method, questions.clone(), soon()).await.unwrap();
        assert_eq!((together.batch, together.answers.len()), (64, 64));
        for (question, batched) in questions.into_iter().zip(&together.answers) {
            let length = question.slots.len();
            let single = alone.ask(method, vec![question], soon()).await.unwrap();
            assert_eq!(single.batch, 1);
            equal(&single.answers[0], batched, &format!("{method}, {length} slots"));
        }
    }
}

fn equal(one: &Answer, other: &Answer, what: &str) {
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{what}: {a} {b}");
    assert_eq!(one.top.len(), other.top.len(), "{what}");
    for (a, b) in one.top.iter().zip(&other.top) {
        // Articles that differ by rounding may change places, but the probabilities stay.
        close(a.probability, b.probability);
    }
    for (a, b) in one.placements.iter().zip(&other.placements) {
        close(a.log_probability, b.log_probability);
    }
    for (a, b) in one.personas.iter().flatten().zip(other.personas.iter().flatten()) {
        close(f64::from(*a), f64::from(*b));
    }
    assert_eq!(one.personas.is_some(), other.personas.is_some());
    for (a, b) in one.steps.iter().zip(&other.steps) {
        close(f64::from(*a), f64::from(*b));
    }
}

#[tokio::test]
async fn deadlines_are_kept_and_cancelled_questions_are_skipped() {
    let serving = serving(Settings { workers: 1, batch: 1, ..SETTINGS });
    let error = serving.ask(Method::None, questions(&serving, 1), Instant::now()).await.unwrap_err();
    assert!(matches!(error, AskError::Deadline { .. }), "{error}");
    let asked = questions(&serving, 400);
    let cancelled =
        tokio::time::timeout(Duration::from_millis(1), serving.ask(Method::Gsu, asked, soon())).await;
    assert!(cancelled.is_err(), "four hundred runs take longer than a millisecond");
    // Cancelled questions are skipped, not computed, so this answer is the next but one at the latest.
    let answered = serving.ask(Method::Gsu, questions(&serving, 1), soon()).await.unwrap();
    assert_eq!(answered.answers.len(), 1);
    let waiting = serving.queues().find(|(method, _)| *method == Method::Gsu).unwrap().1.waiting;
    assert_eq!(waiting, 0);
}

#[tokio::test]
async fn more_copies_of_a_model_are_opened_when_needed() {
    let workers = |serving: &Serving, method: Method| {
        serving.queues().find(|(found, _)| *found == method).unwrap().1.workers
    };
    let folder = changed("gsu.onnx", |_| {});
    let serving = engine(Settings { batch: 1, ..SETTINGS }).load(&folder.path().join("demo")).unwrap();
    assert!(serving.methods().all(|method| workers(&serving, method) == 1));
    let asked = questions(&serving, 100);
    let alone = serving.ask(Method::Gsu, asked[..1].to_vec(), soon()).await.unwrap();
    let deadline = soon();
    while workers(&serving, Method::Gsu) == 1 {
        serving.ask(Method::Gsu, asked.clone(), deadline).await.unwrap();
    }
    let answers = serving.ask(Method::Gsu, asked.clone(), soon()).await.unwrap();
    assert_eq!(answers.answers[0], alone.answers[0], "copies agree");
    assert_eq!((answers.batch, answers.answers.len()), (1, 100), "a long request is divided");
    assert_eq!(workers(&serving, Method::Np), 1, "each method on its own");

    // A file that has changed since the first copy was opened is not opened.
    let path = folder.path().join("demo/c.onnx");
    fs::copy(folder.path().join("demo/gsu.onnx"), path).unwrap();
    for _ in 0..5 {
        let answered = serving.ask(Method::C, asked.clone(), soon()).await.unwrap();
        assert_eq!(answered.answers.len(), 100);
    }
    assert_eq!(workers(&serving, Method::C), 1);
}

/// A copy of the demo release with one file changed.
fn changed(file: &str, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().join("demo");
    demo::copy(&demo(), &release).unwrap();
    let mut bytes = fs::read(release.join(file)).unwrap();
    change(&mut bytes);
    demo::put(&release, file, &bytes).unwrap();
    folder
}

fn rejection(file: &str, change: impl FnOnce(&mut Vec<u8>)) -> LoadError {
    engine(SETTINGS).load(&changed(file, change).path().join("demo")).unwrap_err()
}

#[test]
fn a_file_that_breaks_the_contract_is_rejected_with_what_was_found() {
    let error = rejection("gsu.onnx", |bytes| bytes.truncate(bytes.len() / 2));
    assert!(matches!(error, LoadError::Model(ModelError::Runtime { .. })), "{error}");
    assert!(error.to_string().contains("gsu.onnx: ONNX Runtime rejects it on cpu: "), "{error}");

    let other = fs::read(demo().join("c.onnx")).unwrap();
    let error = rejection("gsu.onnx", |bytes| *bytes = other).to_string();
    assert!(error.ends_with("gsu.onnx: `method` of its metadata is \"c\", expected \"gsu\""), "{error}");

    // Two bytes of 0x7e are NaN as a float16, however they are aligned.
    let error = rejection("none.onnx", |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4000].fill(0x7e);
    });
    let error = error.to_string();
    assert!(error.contains("none.onnx: the weight `") && error.contains("` holds NaN"), "{error}");

    let other = fs::read(demo().join("match.safetensors")).unwrap();
    let error = rejection("gsu.safetensors", |bytes| *bytes = other).to_string();
    assert!(error.contains("gsu.onnx: ") && error.contains("expected"), "{error}");
}

#[test]
fn without_a_gpu_auto_uses_the_cpu() {
    if Path::new("/dev/nvidiactl").exists() {
        println!("NOT RUN: this machine has a GPU");
        return;
    }
    let serving = serving(Settings { device: DeviceChoice::Auto, ..SETTINGS });
    assert_eq!(serving.device(), Device::Cpu);
    assert!(serving.device_note().is_some(), "it gives the reason");
}

/// The same models on a GPU, batched and alone. Nothing but the order of sums differs.
#[tokio::test]
async fn a_gpu_answers_as_the_cpu() {
    if !Path::new("/dev/nvidiactl").exists() {
        println!("NOT RUN: this machine has no GPU");
        return;
    }
    let (cpu, gpu) = (serving(SETTINGS), serving(Settings { device: DeviceChoice::Cuda, ..SETTINGS }));
    assert_eq!(gpu.device(), Device::Cuda);
    compare(&cpu, &gpu).await;
    compare(&gpu, &cpu).await;
}

/// The logits from the trunk's outputs in a bare session, and each article's weights; one row per question.
fn bare_logits(serving: &Serving, method: Method, questions: &[Question]) -> Vec<Vec<f32>> {
    let release = serving.release();
    let entry = release.manifest().methods.iter().find(|entry| entry.method == method).unwrap();
    let mut session = Session::builder(ONNX_RUNTIME.environment())
        .unwrap()
        .commit_from_file(release.model_path(entry))
        .unwrap();
    let (count, encoder) = (release.vocabulary().len(), release.encoder().unwrap());
    let path = release.tables_path(entry).unwrap();
    let tables =
        Tables::open(&path, count, Some(encoder.count()), encoder.components(), release.schema()).unwrap();
    let known = release.articles()[..count].iter();
    let compositions: Vec<_> = known.map(|article| release.compose(&article.unpack())).collect();
    let width = tables.widths().row();
    let row = |question: &Question| {
        let length = question.slots.len();
        let (mut rows, mut kinds) = (vec![0.0; length * width], vec![0_i64; length]);
        for ((&slot, row), kind) in question.slots.iter().zip(rows.chunks_exact_mut(width)).zip(&mut kinds) {
            if slot == BLANK {
                *kind = 1;
            } else {
                tables.write_row(&compositions[slot as usize], row);
            }
        }
        let mut inputs = vec![
            ("rows", Tensor::from_array(([1, length, width], rows)).unwrap().into_dyn()),
            ("kinds", Tensor::from_array(([1, length], kinds)).unwrap().into_dyn()),
            (
                "blank",
                Tensor::from_array(([1], vec![i64::try_from(question.blank).unwrap()])).unwrap().into_dyn(),
            ),
        ];
        if let Some(encoder) = tables.context() {
            let mut context = Vec::new();
            encoder.write(&question.context, &mut context);
            inputs.push(("context", Tensor::from_array(([1, context.len()], context)).unwrap().into_dyn()));
        } else if serving.takes_features(method) {
            let values = question.context.iter().map(Vec::len).max().unwrap().max(1);
            let cells = question.context.iter().flat_map(|indices| {
                indices.iter().copied().map(i64::from).chain(std::iter::repeat(0)).take(values)
            });
            let shape = [1, question.context.len(), values];
            inputs.push((
                "features",
                Tensor::from_array((shape, cells.collect::<Vec<_>>())).unwrap().into_dyn(),
            ));
        }
        let outputs = session.run(SessionInputs::from(inputs)).unwrap();
        let numbers = |name: &str| outputs[name].try_extract_tensor::<f32>().unwrap().1.to_vec();
        let mut inputs = numbers("hidden");
        if tables.widths().personas > 0 {
            inputs.extend(numbers("personas"));
        }
        let mut weights = vec![0.0; inputs.len()];
        let mut logits: Vec<f32> = compositions
            .iter()
            .map(|composition| {
                let bias = tables.write_weights(composition, &mut weights);
                bias + weights.iter().zip(&inputs).map(|(weight, input)| weight * input).sum::<f32>()
            })
            .collect();
        let visible: Vec<u32> = question.slots.iter().copied().filter(|slot| *slot != BLANK).collect();
        let mut boost = |(article, by): (u32, f32)| logits[article as usize] += by;
        for &article in &visible {
            tables.boosts_of_article(article).for_each(&mut boost);
        }
        tables.boosts_of_outfits(&visible, |_| true).for_each(&mut boost);
        tables.boosts_of_context(&question.context).for_each(&mut boost);
        logits
    };
    questions.iter().map(row).collect()
}

/// Masks and ranks are the head's own affair: its unit tests ask them.
#[tokio::test]
async fn the_head_answers_as_the_trunk_and_the_tables_do() {
    let serving = serving(SETTINGS);
    for method in demo::methods() {
        let asked = questions(&serving, 40);
        let answers = serving.ask(method, asked.clone(), soon()).await.unwrap().answers;
        let logits = bare_logits(&serving, method, &asked);
        for ((question, answer), logits) in asked.iter().zip(&answers).zip(&logits) {
            let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f64 = logits.iter().map(|&logit| f64::from(logit - highest).exp()).sum();
            let probability = |article: u32| f64::from(logits[article as usize] - highest).exp() / total;
            let mut order: Vec<u32> = (0..).take(logits.len()).collect();
            order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
            assert_eq!(answer.top.len(), question.k);
            for (candidate, &expected) in answer.top.iter().zip(&order) {
                // The article is as probable as the expected one, and its stated probability is right.
                let (found, expected) = (probability(candidate.article), probability(expected));
                assert!((found - expected).abs() < 1e-5, "{method}: {found} {expected}");
                assert!((candidate.probability / found - 1.0).abs() < 5e-4, "{method}: {found}");
            }
            for (&article, placement) in question.placements_of.iter().zip(&answer.placements) {
                let expected = probability(article).ln();
                assert!((placement.log_probability - expected).abs() < 5e-4, "{method}");
            }
        }
    }
}
