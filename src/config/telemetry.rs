//! Where traces go.

use std::fmt;

use atelier_core::util::http_client::Origin;
use serde::Deserialize;

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// `http://host:port` or `https://user:password@host:port` of an OpenTelemetry collector, which takes traces as
    /// OTLP over HTTP.
    pub collector: Option<String>,
}

/// Not derived: a password in the URL must reach no log.
impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

impl Telemetry {
    pub fn collector(&self) -> Option<Origin> {
        let parsed = self.collector.as_ref().map(|url| Origin::parse(url));
        parsed.map(|origin| origin.expect("checked when it was read; this is a bug"))
    }

    /// `available`: whether this program can send traces.
    pub(super) fn check(&self, available: bool) -> Result<(), String> {
        let Some(url) = &self.collector else { return Ok(()) };
        Origin::parse(url).map_err(|error| format!("telemetry.collector: {error}"))?;
        if !available {
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
    fn a_collector_needs_an_address_and_a_program_with_traces() {
        let telemetry = |url: &str| Telemetry { collector: Some(url.to_owned()) };
        assert_eq!(Telemetry::default().check(false), Ok(()));
        assert_eq!(telemetry("http://collector:4318").check(true), Ok(()));
        assert_eq!(
            telemetry("collector:4317").check(true).unwrap_err(),
            "telemetry.collector: expected http://HOST:PORT or https://HOST:PORT, found \"collector:4317\""
        );
        let absent = telemetry("http://collector:4318").check(false).unwrap_err();
        assert!(absent.contains("built without traces: build it with `--features otlp`"), "{absent}");
    }
}
