//! Histograms that can be read back. Those of `prometheus-client` show their buckets only in the text that it encodes.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

/// Histograms with the same bounds, by their labels. Clones count together.
#[derive(Debug)]
pub struct Histograms<L> {
    bounds: &'static [f64],
    /// Written only for labels that are new.
    by_labels: Arc<RwLock<BTreeMap<L, Histogram>>>,
}

/// Clones count together.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Mutex<Distribution>>);

/// How values are distributed over buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// Upper bounds, the last of them infinite, and how many values are in each bucket.
    buckets: Vec<(f64, u64)>,
    pub sum: f64,
}

/// A quantile as buckets show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    About(f64),
    /// It is beyond the last bound.
    Above(f64),
}

impl<L: Ord + Clone> Histograms<L> {
    /// The bounds ascend.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, by_labels: Arc::default() }
    }

    pub fn get_or_create(&self, labels: &L) -> Histogram {
        let found = self.by_labels.read().unwrap_or_else(PoisonError::into_inner).get(labels).cloned();
        found.unwrap_or_else(|| {
            let mut by_labels = self.by_labels.write().unwrap_or_else(PoisonError::into_inner);
            by_labels.entry(labels.clone()).or_insert_with(|| Histogram::new(self.bounds)).clone()
        })
    }

    /// In the order of their labels.
    pub fn snapshot(&self) -> Vec<(L, Distribution)> {
        let by_labels = self.by_labels.read().unwrap_or_else(PoisonError::into_inner);
        by_labels.iter().map(|(labels, histogram)| (labels.clone(), histogram.snapshot())).collect()
    }

    /// The values of all labels that are wanted, together.
    pub fn total(&self, wanted: impl Fn(&L) -> bool) -> Distribution {
        let mut total = Distribution::default();
        let by_labels = self.by_labels.read().unwrap_or_else(PoisonError::into_inner);
        for (_, histogram) in by_labels.iter().filter(|(labels, _)| wanted(labels)) {
            total.add(&histogram.snapshot());
        }
        total
    }
}

impl<L> Clone for Histograms<L> {
    fn clone(&self) -> Self {
        Self { bounds: self.bounds, by_labels: Arc::clone(&self.by_labels) }
    }
}

impl<L: EncodeLabelSet + fmt::Debug> EncodeMetric for Histograms<L> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let by_labels = self.by_labels.read().unwrap_or_else(PoisonError::into_inner);
        for (labels, histogram) in by_labels.iter() {
            let counted = histogram.snapshot();
            encoder.encode_family(labels)?.encode_histogram::<NoLabelSet>(
                counted.sum,
                counted.count(),
                &counted.buckets,
                None,
            )?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }

    fn is_empty(&self) -> bool {
        self.by_labels.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Histogram {
    fn new(bounds: &[f64]) -> Self {
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        Self(Arc::new(Mutex::new(Distribution {
            buckets: bounds.map(|bound| (bound, 0)).collect(),
            sum: 0.0,
        })))
    }

    pub fn observe(&self, value: f64) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.sum += value;
        if let Some((_, count)) = counted.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
    }

    fn snapshot(&self) -> Distribution {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Distribution {
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Both have the same bounds, or one has none yet.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, |own, other| own + other);
        self.sum += other.sum;
    }

    /// The values that came since an earlier snapshot of the same histograms.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        since.combine(earlier, u64::saturating_sub);
        since.sum -= earlier.sum;
        since
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        if self.buckets.is_empty() {
            self.buckets = other.buckets.iter().map(|(bound, _)| (*bound, 0)).collect();
        }
        for ((_, own), (_, other)) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = with(*own, *other);
        }
    }

    /// `None` without values.
    #[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum / count as f64)
    }

    /// As Prometheus estimates it: values are taken to lie evenly within their bucket, whose lower bound is the one
    /// before, or zero.
    #[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn quantile(&self, share: f64) -> Option<Estimate> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let wanted = share * count as f64;
        let (mut lower, mut below) = (0.0, 0_u64);
        for (bound, inside) in &self.buckets {
            if bound.is_infinite() {
                break;
            }
            if (below + inside) as f64 >= wanted && *inside > 0 {
                let part = (wanted - below as f64) / *inside as f64;
                return Some(Estimate::About(lower + (bound - lower) * part));
            }
            (lower, below) = (*bound, below + inside);
        }
        Some(Estimate::Above(lower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [f64; 2] = [1.0, 2.0];
    type Labels = [(&'static str, &'static str); 1];

    /// Eight values up to 1, one up to 2, one above.
    const VALUES: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0, 1.2, 2.5];

    fn observed() -> Histograms<Labels> {
        let histograms = Histograms::new(&BOUNDS);
        let histogram = histograms.get_or_create(&[("route", "/a/{id}")]);
        for value in VALUES {
            histogram.observe(value);
        }
        histograms
    }

    fn close(found: Option<Estimate>, expected: f64) {
        let Some(Estimate::About(found)) = found else { panic!("{found:?}") };
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn quantiles_lie_evenly_within_their_bucket() {
        let counted = observed().total(|_| true);
        close(counted.quantile(0.4), 0.5);
        close(counted.quantile(0.8), 1.0);
        close(counted.quantile(0.85), 1.5);
        assert_eq!(counted.quantile(0.95), Some(Estimate::Above(2.0)));
        assert!((counted.mean().unwrap() - 0.75).abs() < 1e-12);
        assert_eq!((Distribution::default().quantile(0.5), Distribution::default().mean()), (None, None));
    }

    #[test]
    fn values_since_a_snapshot_are_the_difference() {
        let [(labels, now)] = &observed().snapshot()[..] else { panic!("one histogram") };
        assert_eq!((labels[0].1, now.count(), now.buckets.len()), ("/a/{id}", 10, 3));
        let mut both = Distribution::default();
        both.add(now);
        both.add(now);
        assert_eq!((both.count(), both.since(now)), (20, now.clone()));
        assert_eq!(now.since(&Distribution::default()), *now);
        assert_eq!(now.since(now).quantile(0.5), None);
    }
}
