//! Metrics of the feeds that the service fetches by itself. Admins choose their names, and there are few.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
    registry::Unit,
};

use super::Feeds;

#[derive(Debug)]
pub(crate) struct FeedCollector(pub(crate) Feeds);

impl Collector for FeedCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let feeds = self.0.listed();
        let help = "Failures of the feed in a row; two raise an alert";
        let mut failures = encoder.encode_descriptor("feed_failures", help, None, MetricType::Gauge)?;
        for feed in feeds.iter() {
            let labels = [("feed", feed.name.as_str())];
            ConstGauge::new(i64::from(feed.state.failures)).encode(failures.encode_family(&labels)?)?;
        }
        let help = "Time of the last successful fetch, in seconds since 1970";
        let unit = Some(&Unit::Seconds);
        let mut ended =
            encoder.encode_descriptor("feed_last_success_timestamp", help, unit, MetricType::Gauge)?;
        for feed in feeds.iter() {
            let Some(at) = feed.state.succeeded_at else { continue };
            let labels = [("feed", feed.name.as_str())];
            ConstGauge::new(at / 1000).encode(ended.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
