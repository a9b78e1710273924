//! What the registry holds at a moment, as numbers.
//!
//! The one way to read a histogram's buckets back out of `prometheus-client` is the text that it encodes, which is
//! also what `/metrics` tells: a page and a Prometheus server see the same figures. Only text of our own is read,
//! so what cannot be read is a bug.

use std::collections::BTreeMap;

use prometheus_client::encoding::text;

use crate::web::http::Metrics;

/// Everything that is counted, at one moment.
#[derive(Debug)]
pub(crate) struct Reading(Vec<Sample>);

pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Debug)]
struct Sample {
    name: String,
    labels: Labels,
    value: f64,
}

/// How values are spread: a histogram's buckets, their sum and count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spread {
    /// Upper bounds, the last of them infinite, and how many values are at or below each.
    buckets: Vec<(f64, f64)>,
    pub(crate) sum: f64,
    pub(crate) count: f64,
}

/// A quantile as buckets tell it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Estimate {
    About(f64),
    /// It is beyond the last bound.
    Above(f64),
}

impl Metrics {
    pub(crate) fn read(&self) -> Reading {
        let mut body = String::new();
        text::encode(&mut body, &self.registry).expect("writing to a String never fails; this is a bug");
        Reading::parse(&body)
    }
}

impl Reading {
    fn parse(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).map(Sample::parse).collect())
    }

    /// A value that has no labels.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.values(name).map(|(_, value)| value).next()
    }

    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = (&Labels, f64)> {
        self.0.iter().filter(move |sample| sample.name == name).map(|sample| (&sample.labels, sample.value))
    }

    /// A family of histograms, by their labels.
    pub(crate) fn spreads(&self, name: &str) -> BTreeMap<Labels, Spread> {
        let mut spreads: BTreeMap<Labels, Spread> = BTreeMap::new();
        for sample in &self.0 {
            let Some(part) = sample.name.strip_prefix(name) else { continue };
            let mut labels = sample.labels.clone();
            let bound = labels.remove("le");
            match (part, bound) {
                ("_bucket", Some(bound)) => {
                    let bound = if bound == "+Inf" { f64::INFINITY } else { number(&bound) };
                    spreads.entry(labels).or_default().buckets.push((bound, sample.value));
                }
                ("_sum", None) => spreads.entry(labels).or_default().sum = sample.value,
                ("_count", None) => spreads.entry(labels).or_default().count = sample.value,
                _ => {}
            }
        }
        spreads
    }
}

impl Sample {
    /// `name{label="value",…} number`
    fn parse(line: &str) -> Self {
        let (sample, value) = line.rsplit_once(' ').expect("a sample has a value; this is a bug");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.strip_suffix('}').unwrap_or(labels);
        Self { name: name.to_owned(), labels: pairs(labels), value: number(value) }
    }
}

/// A value ends at the quote that no backslash stands before.
fn pairs(mut text: &str) -> Labels {
    let mut labels = Labels::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        let mut escaped = false;
        let end = rest.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (value, after) = rest.split_at(end.expect("a label's value is quoted; this is a bug"));
        labels.insert(name.to_owned(), value.to_owned());
        text = after[1..].strip_prefix(',').unwrap_or(&after[1..]);
    }
    labels
}

fn number(text: &str) -> f64 {
    text.parse().expect("a sample's value is a number; this is a bug")
}

impl Spread {
    pub(crate) fn add(&mut self, other: &Self) {
        self.combine(other, |own, other| own + other);
    }

    /// What came since an earlier reading of the same.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        since.combine(earlier, |own, earlier| own - earlier);
        since
    }

    /// Both have the same bounds, or one has none yet.
    fn combine(&mut self, other: &Self, with: impl Fn(f64, f64) -> f64) {
        if self.buckets.is_empty() {
            self.buckets = other.buckets.iter().map(|(bound, _)| (*bound, 0.0)).collect();
        }
        for ((_, own), (_, other)) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = with(*own, *other);
        }
        self.sum = with(self.sum, other.sum);
        self.count = with(self.count, other.count);
    }

    /// None of nothing.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// As Prometheus estimates it: values are taken to lie evenly within their bucket, whose lower bound is the one
    /// before, or nought.
    pub(crate) fn quantile(&self, share: f64) -> Option<Estimate> {
        if self.count <= 0.0 {
            return None;
        }
        let wanted = share * self.count;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, up_to) in &self.buckets {
            if *up_to >= wanted && *up_to > below {
                if bound.is_infinite() {
                    break;
                }
                return Some(Estimate::About(lower + (bound - lower) * (wanted - below) / (up_to - below)));
            }
            if bound.is_finite() {
                (lower, below) = (*bound, *up_to);
            }
        }
        Some(Estimate::Above(lower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = concat!(
        "# HELP took How long.\n# TYPE took histogram\n",
        "took_sum{route=\"/a/{id}\"} 6.5\ntook_count{route=\"/a/{id}\"} 10\n",
        "took_bucket{le=\"1.0\",route=\"/a/{id}\"} 8\ntook_bucket{le=\"2.0\",route=\"/a/{id}\"} 9\n",
        "took_bucket{le=\"+Inf\",route=\"/a/{id}\"} 10\n",
        "build_info{what=\"a=\\\"b\\\", {c}\"} 1\nheld 17\n# EOF\n",
    );

    fn close(found: Option<Estimate>, expected: f64) {
        let Some(Estimate::About(found)) = found else { panic!("{found:?}") };
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn what_was_encoded_is_read() {
        let reading = Reading::parse(TEXT);
        assert_eq!(reading.value("held"), Some(17.0));
        assert_eq!(reading.value("nothing"), None);
        let (labels, value) = reading.values("build_info").next().unwrap();
        assert_eq!((labels["what"].as_str(), value), ("a=\\\"b\\\", {c}", 1.0));
        let spreads = reading.spreads("took");
        let (labels, spread) = spreads.first_key_value().unwrap();
        assert_eq!((spreads.len(), labels["route"].as_str()), (1, "/a/{id}"));
        assert_eq!((spread.sum, spread.count, spread.buckets.len()), (6.5, 10.0, 3));
    }

    #[test]
    fn quantiles_lie_evenly_within_their_bucket() {
        let spread = Reading::parse(TEXT).spreads("took").into_values().next().unwrap();
        close(spread.quantile(0.4), 0.5);
        close(spread.quantile(0.8), 1.0);
        close(spread.quantile(0.85), 1.5);
        assert_eq!(spread.quantile(0.95), Some(Estimate::Above(2.0)));
        assert_eq!(spread.mean(), Some(0.65));
        assert_eq!((Spread::default().quantile(0.5), Spread::default().mean()), (None, None));
    }

    #[test]
    fn what_came_since_is_the_difference() {
        let now = Reading::parse(TEXT).spreads("took").into_values().next().unwrap();
        let mut both = Spread::default();
        both.add(&now);
        both.add(&now);
        assert_eq!((both.count, both.since(&now)), (20.0, now.clone()));
        assert_eq!(now.since(&Spread::default()), now);
        assert_eq!(now.since(&now).quantile(0.5), None);
    }
}
