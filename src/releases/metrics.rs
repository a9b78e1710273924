//! Metrics of the live release, its queues and models, and of the database behind it.

use std::{fmt, sync::Arc};

use atelier_engine::inference::QueueState;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        family::Family,
        gauge::{ConstGauge, Gauge as SetGauge},
    },
    registry::{Registry, Unit},
};

use super::Releases;

#[derive(Debug)]
struct LiveReleaseCollector(Arc<Releases>);

impl Releases {
    pub(crate) fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.engine().metrics().register(registry);
        registry.register_collector(Box::new(LiveReleaseCollector(Arc::clone(self))));
        let build = [("version", env!("CARGO_PKG_VERSION")), ("onnx_runtime", self.engine().onnx_runtime())];
        let running = Family::<Vec<(&'static str, &'static str)>, SetGauge>::default();
        running.get_or_create(&build.to_vec()).set(1);
        registry.register("build_info", "The running version", running);
    }

    fn most_catalogue_bytes(&self) -> i64 {
        i64::try_from(self.store.catalogue_bytes()).unwrap_or(i64::MAX)
    }

    /// The jobs that wait for a model.
    pub fn waiting(&self) -> usize {
        let live = self.current();
        let second = live.as_ref().and_then(|live| live.second());
        let queues = live.iter().chain(second).flat_map(|release| release.serving.queues());
        queues.map(|(_, queue)| queue.waiting).sum()
    }
}

/// A gauge's name, its help text, and how to read its value.
type Gauge = (&'static str, &'static str, fn(QueueState) -> usize);

const QUEUE: [Gauge; 3] = [
    ("queue_size", "Jobs waiting for a free model", |state| state.waiting),
    ("queue_limit", "Maximum number of waiting jobs; more are rejected", |state| state.limit),
    ("workers", "Worker threads, each with a copy of the model", |state| state.workers),
];

impl Collector for LiveReleaseCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Whether the database does not answer, and no request waits for it";
        let gone = ConstGauge::new(i64::from(self.0.is_database_gone()));
        gone.encode(encoder.encode_descriptor("database_breaker_open", help, None, MetricType::Gauge)?)?;
        let Some(live) = self.0.current() else { return Ok(()) };
        for (name, help, read) in QUEUE {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (method, state) in live.serving.queues() {
                let labels = [("method", method.as_str())];
                ConstGauge::new(read(state)).encode(gauge.encode_family(&labels)?)?;
            }
            if let Some(second) = live.second() {
                for (method, state) in second.serving.queues() {
                    let labels = [("method", method.as_str()), ("release", second.name())];
                    ConstGauge::new(read(state)).encode(gauge.encode_family(&labels)?)?;
                }
            }
        }
        let help = "Whether the release that an experiment needs is loaded next to the live one";
        let mut loaded = encoder.encode_descriptor("second_release_loaded", help, None, MetricType::Gauge)?;
        if let Some(beside) = &live.beside {
            let labels = [("release", &*beside.release), ("experiment", beside.experiment.as_str())];
            ConstGauge::new(i64::from(beside.loaded.is_ok())).encode(loaded.encode_family(&labels)?)?;
        }
        let coverage = live.catalogue.coverage();
        let help = "Articles that the live release was trained with (known), only the shop has (new), and the shop no longer has (retired)";
        let mut articles = encoder.encode_descriptor("articles", help, None, MetricType::Gauge)?;
        let counts =
            [("known", coverage.both), ("new", coverage.only_catalogue), ("retired", coverage.only_release)];
        for (state, count) in counts {
            ConstGauge::new(count).encode(articles.encode_family(&[("state", state)])?)?;
        }
        let sizes = [
            ("catalogue", "Memory of the catalogue, by the estimate that limits it", live.memory.bytes()),
            ("catalogue_limit", "The most memory that the catalogue may take", self.0.most_catalogue_bytes()),
            (
                "article",
                "Memory of an article of the catalogue, in the mean",
                live.memory.bytes_per_article(),
            ),
        ];
        for (name, help, bytes) in sizes {
            let metric = encoder.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Gauge)?;
            ConstGauge::new(bytes).encode(metric)?;
        }
        let help = "Whether the catalogue has all changes; 0 if this replica has too little memory for them";
        let current = encoder.encode_descriptor("catalogue_current", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(live.has_all_articles())).encode(current)?;
        let help = "Articles of the catalogue that the method can suggest";
        let mut suggestible =
            encoder.encode_descriptor("suggestible_articles", help, None, MetricType::Gauge)?;
        for method in live.serving.methods() {
            let known = live
                .rows
                .known(method)
                .map_or(0, |known| known.count_common(live.catalogue.sets().present()));
            let labels = [("method", method.as_str())];
            ConstGauge::new(known).encode(suggestible.encode_family(&labels)?)?;
        }
        let help = "The live release's methods";
        let mut models = encoder.encode_descriptor("model_info", help, None, MetricType::Gauge)?;
        for method in live.serving.methods() {
            let device = live.serving.device().as_str();
            let labels = [("release", live.name()), ("method", method.as_str()), ("device", device)];
            ConstGauge::new(1_u64).encode(models.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
