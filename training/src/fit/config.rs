//! What a run is made from: enough to make it again, to the last bit.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use atelier::domain::Method;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{AdamWConfig, data::Data, model::ModelConfig};

/// A run's `config.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    pub data: DataConfig,
    pub fit: FitConfig,
    /// By article type: what the loss of a masked article is multiplied with, 1 where a type is not
    /// named.
    pub task_weights: BTreeMap<String, f32>,
    /// Whether two halves were one outfit, learned beside the masked articles.
    #[serde(default)]
    pub pair: PairConfig,
    pub adamw: AdamWConfig,
    pub model: ModelConfig,
}

/// What is learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    pub folder: PathBuf,
    pub name: String,
    pub fingerprint: String,
    /// Which articles share what, where the run learns from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<String>,
}

/// How it is learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitConfig {
    pub seed: u64,
    /// At most; the rate decays over so many.
    pub epochs: u32,
    /// Outfits a step.
    pub batch: usize,
    /// At its highest, after warming up.
    pub learning_rate: f32,
    /// Epochs, or parts of one, over which the rate rises from nothing.
    pub warm_up: f32,
    /// Epochs without a better cross-entropy on the development split before the run ends.
    pub patience: u32,
    /// How often a second slot of an outfit is blank, too.
    pub second_blank: f64,
    /// Whether articles that have something in common learn it together.
    #[serde(default)]
    pub attributes: bool,
    /// Runs of earlier versions say which device they used; only the CPU is left.
    #[serde(default, skip_serializing)]
    pub device: Device,
}

/// What a run computes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    #[default]
    Cpu,
}

/// Halves of outfits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairConfig {
    /// What the pairs' loss is multiplied with; 0, and there are no pairs and no layers for them.
    pub weight: f32,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            epochs: 40,
            batch: 256,
            learning_rate: 1e-3,
            warm_up: 1.0,
            patience: 5,
            second_blank: 0.15,
            attributes: false,
            device: Device::Cpu,
        }
    }
}

/// Settings that differ from the built-in ones, in any of the tables `fit`, `task_weights`, `pair`, `adamw` and
/// `model`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    pub file: Option<&'a Path>,
    /// `table.key=value` each; they win over the file.
    pub set: &'a [String],
}

/// A setting that two runs do not share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// With its tables, as in `model.initial.features`.
    pub(crate) key: String,
    pub(crate) ours: Option<Value>,
    pub(crate) theirs: Option<Value>,
}

impl RunConfig {
    /// The settings for this method and data: the built-in ones, changed by those given, then by `change`, which is
    /// where flags go.
    ///
    /// # Errors
    /// If something is given that is no setting, or a setting makes no sense.
    pub fn new(
        method: Method,
        data: &Data,
        folder: &Path,
        given: Given<'_>,
        change: impl FnOnce(&mut FitConfig),
    ) -> Result<Self> {
        let built_in = ModelConfig::new(method, data.vocabulary().len(), data.schema());
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
            model: built_in.clone(),
        };
        if let Some(path) = given.file {
            let context = || format!("the configuration {}", path.display());
            let text = std::fs::read_to_string(path).with_context(context)?;
            let mut table: Table = toml::from_str(&text).with_context(context)?;
            table.remove("data");
            config = config.changed_by(table).with_context(context)?;
        }
        for setting in given.set {
            let context = || {
                format!("--set takes TABLE.KEY=VALUE, as in model.initial.features=1.0; found {setting:?}")
            };
            let table: Table = toml::from_str(setting).with_context(context)?;
            if table.contains_key("data") {
                bail!("--set {setting}: --data says what is learned from");
            }
            config = config.changed_by(table).with_context(context)?;
        }
        // A file may be another run's configuration, made for another method and other data.
        config.model.method = method;
        config.model.articles = built_in.articles;
        config.model.features = built_in.features;
        config.model.pair = config.pair.weight > 0.0;
        change(&mut config.fit);
        config.data.attributes = config.fit.attributes.then(|| data.attributes().fingerprint().to_owned());
        config.check(data)?;
        Ok(config)
    }

    /// The loss's weight of each article type, in the data's order.
    pub fn weights(&self, data: &Data) -> Vec<f32> {
        data.types().iter().map(|name| self.task_weights.get(name).copied().unwrap_or(1.0)).collect()
    }

    /// The settings, what is learned from and what follows from others aside, that are not the same in both.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Difference> {
        let (ours, theirs) = (self.leaves(), other.leaves());
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

    /// Each setting by its whole name.
    fn leaves(&self) -> BTreeMap<String, Value> {
        // Through text, where a float32 has no more digits than it was given.
        let text = toml::to_string(self).expect("a configuration is TOML; this is a bug");
        let mut table: Table = toml::from_str(&text).expect("it was written as TOML; this is a bug");
        table.remove("data");
        let mut leaves = BTreeMap::new();
        gather(&mut leaves, "", table);
        // The pairs' weight says it.
        leaves.remove("model.pair");
        leaves
    }

    fn changed_by(&self, changes: Table) -> Result<Self, toml::de::Error> {
        let mut whole = Table::try_from(self).expect("a configuration is TOML; this is a bug");
        overlay(&mut whole, changes);
        whole.try_into()
    }

    fn check(&self, data: &Data) -> Result<()> {
        let FitConfig { epochs, batch, learning_rate, warm_up, second_blank, .. } = self.fit;
        if epochs == 0 || batch == 0 {
            bail!("epochs and batch must be at least 1, found {epochs} and {batch}");
        }
        if !(learning_rate > 0.0 && learning_rate.is_finite() && warm_up >= 0.0 && warm_up.is_finite()) {
            bail!(
                "the learning rate must be above 0 and warm_up at least 0, found {learning_rate} and {warm_up}"
            );
        }
        if !(0.0..=1.0).contains(&second_blank) {
            bail!("second_blank is a share from 0 to 1, found {second_blank}");
        }
        let PairConfig { weight } = self.pair;
        if !(weight >= 0.0 && weight.is_finite()) {
            bail!("the pairs' weight must be a number from 0 up, found {weight}");
        }
        for (name, weight) in &self.task_weights {
            if !data.types().contains(name) {
                bail!(
                    "task_weights names the type {name:?}, which no article has; the types are {}",
                    data.types().join(", ")
                );
            }
            if !(*weight >= 0.0 && weight.is_finite()) {
                bail!("the task weight of {name:?} must be a number from 0 up, found {weight}");
            }
        }
        Ok(())
    }
}

/// Puts `over` on top, table by table.
fn overlay(under: &mut Table, over: Table) {
    for (name, value) in over {
        match (under.get_mut(&name), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(name, value);
            }
        }
    }
}

fn gather(leaves: &mut BTreeMap<String, Value>, prefix: &str, table: Table) {
    for (name, value) in table {
        let bare = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let name = if bare { name } else { Value::String(name).to_string() };
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(table) => gather(leaves, &format!("{key}."), table),
            value => {
                leaves.insert(key, value);
            }
        }
    }
}
