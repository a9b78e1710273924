//! A run's settings: enough to repeat it to the last bit.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use atelier_core::domain::{Method, list_methods};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{AdamWConfig, data::Data, model::ModelConfig};

/// A run's `config.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    pub data: DataConfig,
    pub fit: FitConfig,
    /// By article type: the factor of a masked article's loss. The default is 1.
    pub task_weights: BTreeMap<String, f32>,
    pub pair: PairConfig,
    pub adamw: AdamWConfig,
    pub model: ModelConfig,
}

/// A run's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    pub folder: PathBuf,
    pub name: String,
    pub fingerprint: String,
    /// The digest of the articles' attributes, if the run learns from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<String>,
}

/// Rows of rare values have small gradients, of which Adam makes steps as large as any other, unless epsilon is larger
/// than they are.
const MATCH_EPSILON: f32 = 1e-3;
/// With few training outfits a match begins at their counts, and learns in smaller steps of fewer outfits,
/// over a schedule that is run to its end: a longer one stops while its rate is still high. Some data gains by a second,
/// longer one, and other data does not.
const EPOCHS_OF_FEW: u32 = 60;
const BATCH_OF_FEW: usize = 64;
const RATE_OF_FEW: f32 = 3e-4;

/// How a run learns.
#[expect(clippy::struct_excessive_bools, reason = "switches that a user sets one by one")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitConfig {
    pub seed: u64,
    /// The maximum; the learning rate decays over all of them.
    pub epochs: u32,
    /// Whether the run ends after a third of the epochs if training is far ahead of development then.
    pub shorten: bool,
    /// Outfits per step.
    pub batch: usize,
    /// Peak learning rate, after the warm-up.
    pub learning_rate: f32,
    /// Epochs, or a fraction of one, over which the learning rate rises from 0.
    pub warm_up: f32,
    /// Epochs without a better cross-entropy on the development split after which the run stops.
    pub patience: u32,
    /// The probability that a second slot of an outfit is blank.
    pub second_blank: f64,
    /// The probability that an outfit's features are all left out, so that the model can do without a profile, as for
    /// `lift`, reasons and unknown customers.
    pub drop_profile: f64,
    /// The probability of each feature of the others to be left out.
    pub drop_feature: f64,
    /// Whether the last biases begin at the logarithm of the articles' counts instead of at 0. A match ignores
    /// this: its biases begin at a logit's.
    pub count_bias: bool,
    /// Whether a match's vectors begin at a conditional logit over counts, as its memory and biases do, instead of at
    /// random.
    pub begin_at_logit: bool,
    /// Whether latent personas begin at the parts of a mixture that is fitted to the outfits.
    pub mixture: bool,
    /// Whether articles with common attributes share what they learn.
    pub attributes: bool,
    /// The probability of an article to be made of its attributes alone in a step, so that new articles can be, too.
    pub drop_own: f64,
    /// Whether the finished model is made as sure of its answers as it is right on the development split.
    pub calibrate: bool,
}

/// Learning from pairs of halves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairConfig {
    /// The factor of the pairs' loss; 0 means no pairs and no layers for them.
    pub weight: f32,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            epochs: 40,
            shorten: false,
            batch: 256,
            learning_rate: 1e-3,
            warm_up: 1.0,
            patience: 5,
            second_blank: 0.15,
            drop_profile: 0.1,
            drop_feature: 0.05,
            count_bias: false,
            begin_at_logit: false,
            mixture: false,
            attributes: false,
            drop_own: 0.1,
            calibrate: true,
        }
    }
}

/// The names of features with articles' ids as values.
fn features_of_articles(data: &Data) -> Vec<String> {
    let of_articles = data.schema().features().iter().filter(|feature| data.named_by(feature).is_some());
    of_articles.map(|feature| feature.name.clone()).collect()
}

/// Settings that differ from the defaults, in the tables `fit`, `task_weights`, `pair`, `adamw` and `model`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides<'a> {
    pub file: Option<&'a Path>,
    /// Each is `table.key=value` and overrides the file.
    pub set: &'a [String],
}

/// A setting with different values in two runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// With its tables, as in `model.initial.features`.
    pub(crate) key: String,
    pub(crate) ours: Option<Value>,
    pub(crate) theirs: Option<Value>,
}

impl RunConfig {
    /// The settings for this method and data: the defaults, changed by `overrides` and then by `flags`.
    ///
    /// # Errors
    /// If an override is not a setting, or a setting is invalid.
    pub fn new(
        method: Method,
        data: &Data,
        folder: &Path,
        overrides: Overrides<'_>,
        flags: impl FnOnce(&mut FitConfig),
    ) -> Result<Self> {
        let default = ModelConfig::new(method, data.count_known(), data.schema());
        let data_config = DataConfig {
            folder: folder.to_owned(),
            name: data.name().to_owned(),
            fingerprint: data.fingerprint().to_owned(),
            attributes: None,
        };
        let mut config = Self {
            data: data_config,
            fit: FitConfig::default(),
            task_weights: BTreeMap::new(),
            pair: PairConfig::default(),
            adamw: AdamWConfig::default(),
            model: default.clone(),
        };
        if method == Method::Match {
            config.adamw.epsilon = MATCH_EPSILON;
            config.fit.warm_up = 0.5;
            if data.has_few_outfits() {
                config.fit.begin_at_logit = true;
                config.fit.batch = BATCH_OF_FEW;
                config.fit.learning_rate = RATE_OF_FEW;
                (config.fit.epochs, config.fit.patience) = (EPOCHS_OF_FEW, EPOCHS_OF_FEW);
                config.fit.shorten = true;
            }
        }
        if let Some(path) = overrides.file {
            let context = || format!("the configuration {}", path.display());
            let text = std::fs::read_to_string(path).with_context(context)?;
            let mut table: Table = toml::from_str(&text).with_context(context)?;
            table.remove("data");
            config = config.with(table).with_context(context)?;
        }
        for setting in overrides.set {
            let context = || {
                format!("--set takes TABLE.KEY=VALUE, as in model.initial.features=1.0; found {setting:?}")
            };
            let table: Table = toml::from_str(setting).with_context(context)?;
            if table.contains_key("data") {
                bail!("--set {setting}: the data is set by --data");
            }
            config = config.with(table).with_context(context)?;
        }
        // The file may be the configuration of a run of another method on other data.
        config.model.method = method;
        config.model.articles = default.articles;
        config.model.features = default.features;
        config.model.pair = config.pair.weight > 0.0;
        flags(&mut config.fit);
        // A match is of attributes.
        config.fit.attributes |= method == Method::Match;
        config.model.matching = if method == Method::Match { config.model.matching.max(1) } else { 0 };
        config.model.memory = if method == Method::Match { config.model.memory } else { 0 };
        config.model.of_articles =
            if config.model.memory > 0 { features_of_articles(data) } else { Vec::new() };
        config.model.values = if config.fit.attributes { data.attributes().count() } else { 0 };
        config.model.embedding = if config.fit.attributes { data.attributes().components() } else { 0 };
        config.data.attributes = config.fit.attributes.then(|| data.attributes().fingerprint().to_owned());
        config.check(data)?;
        Ok(config)
    }

    /// The loss's weight of each article type, in the data's order.
    pub fn weights(&self, data: &Data) -> Vec<f32> {
        data.types().iter().map(|name| self.task_weights.get(name).copied().unwrap_or(1.0)).collect()
    }

    /// The settings that differ, apart from the data and settings that follow from others.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Difference> {
        let (ours, theirs) = (self.settings(), other.settings());
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        keys.into_iter()
            .map(|key| Difference {
                key: key.clone(),
                ours: ours.get(key).cloned(),
                theirs: theirs.get(key).cloned(),
            })
            .filter(|difference| difference.ours != difference.theirs)
            .collect()
    }

    /// Each setting by its full name.
    fn settings(&self) -> BTreeMap<String, Value> {
        // Through text, because a float32 as a TOML value has digits that nobody wrote.
        let text = toml::to_string(self).expect("a configuration is TOML");
        let mut table: Table = toml::from_str(&text).expect("the text is TOML");
        table.remove("data");
        let mut settings = BTreeMap::new();
        flatten(&mut settings, "", table);
        // Follows from the pairs' weight.
        settings.remove("model.pair");
        settings
    }

    fn with(&self, mut changes: Table) -> Result<Self, toml::de::Error> {
        // Epochs that are named are the run's, as with the flag.
        if let Some(Value::Table(fit)) = changes.get_mut("fit")
            && fit.contains_key("epochs")
        {
            fit.entry("shorten").or_insert(Value::Boolean(false));
        }
        let mut table = Table::try_from(self).expect("a configuration is TOML");
        overlay(&mut table, changes);
        table.try_into()
    }

    fn check(&self, data: &Data) -> Result<()> {
        let method = self.model.method;
        if !Method::ALL.contains(&method) {
            bail!("there is no method {method}; the methods are {}", list_methods(Method::ALL));
        }
        let FitConfig { epochs, batch, learning_rate, warm_up, second_blank, .. } = self.fit;
        if epochs == 0 || batch == 0 {
            bail!("epochs and batch must be at least 1, found {epochs} and {batch}");
        }
        if !(learning_rate > 0.0 && learning_rate.is_finite() && warm_up >= 0.0 && warm_up.is_finite()) {
            bail!(
                "the learning rate must be above 0 and warm_up at least 0, found {learning_rate} and {warm_up}"
            );
        }
        let FitConfig { drop_profile, drop_feature, drop_own, .. } = self.fit;
        for (name, chance) in [
            ("second_blank", second_blank),
            ("drop_profile", drop_profile),
            ("drop_feature", drop_feature),
            ("drop_own", drop_own),
        ] {
            if !(0.0..=1.0).contains(&chance) {
                bail!("{name} must be between 0 and 1, found {chance}");
            }
        }
        let PairConfig { weight } = self.pair;
        if !(weight >= 0.0 && weight.is_finite()) {
            bail!("the pairs' weight must be at least 0, found {weight}");
        }
        for (name, weight) in &self.task_weights {
            if !data.types().contains(name) {
                bail!(
                    "task_weights names the type {name:?}, which no article has; the types are {}",
                    data.types().join(", ")
                );
            }
            if !(*weight >= 0.0 && weight.is_finite()) {
                bail!("the task weight of {name:?} must be at least 0, found {weight}");
            }
        }
        Ok(())
    }
}

/// Replaces values of `base` by those of `changes`, table by table.
fn overlay(base: &mut Table, changes: Table) {
    for (name, value) in changes {
        match (base.get_mut(&name), value) {
            (Some(Value::Table(base)), Value::Table(changes)) => overlay(base, changes),
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

fn flatten(settings: &mut BTreeMap<String, Value>, prefix: &str, table: Table) {
    for (name, value) in table {
        let bare = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let name = if bare { name } else { Value::String(name).to_string() };
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(table) => flatten(settings, &format!("{key}."), table),
            value => {
                settings.insert(key, value);
            }
        }
    }
}
