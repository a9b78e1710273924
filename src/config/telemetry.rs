//! Where traces go.

use atelier_core::util::http_client::Origin;
use serde::Deserialize;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// `http://host:port` or `https://user:password@host:port` of an OpenTelemetry collector, which takes traces as
    /// OTLP over HTTP.
    pub collector: Option<Origin>,
}

impl Telemetry {
    /// `available`: whether this program can send traces.
    pub(super) fn check(&self, available: bool) -> Result<(), String> {
        if self.collector.is_some() && !available {
            return Err(
                "telemetry.collector is set, but this program was built without traces: build it with \
                        `--features otlp`, or remove the setting"
                    .into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_needs_a_program_with_traces() {
        let telemetry = Telemetry { collector: Some(Origin::parse("http://collector:4318").unwrap()) };
        assert_eq!((Telemetry::default().check(false), telemetry.check(true)), (Ok(()), Ok(())));
        let absent = telemetry.check(false).unwrap_err();
        assert!(absent.contains("built without traces: build it with `--features otlp`"), "{absent}");
    }
}
