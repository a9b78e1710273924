//! Memory and processor time of the process, under the names that all Prometheus clients use. They come from Linux's
//! /proc; other systems report nothing.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// The unit of times in /proc. Linux uses 100 on every architecture.
const TICKS_A_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let usage = Usage::now();
        let mut add = |name: &str, help: &str, unit: Unit, value: &dyn EncodeMetric| {
            let metric = encoder.encode_descriptor(name, help, Some(&unit), value.metric_type())?;
            value.encode(metric)
        };
        if let Some(bytes) = usage.resident_bytes {
            let help = "Resident memory of the process";
            add("process_resident_memory", help, Unit::Bytes, &ConstGauge::new(bytes))?;
        }
        let Some(Times { used, started }) = usage.times else { return Ok(()) };
        add("process_cpu", "Processor time used by the process", Unit::Seconds, &ConstCounter::new(used))?;
        let help = "Start time of the process, in seconds since 1970";
        add("process_start_time", help, Unit::Seconds, &ConstGauge::new(started))
    }
}

/// The resources that the process uses; `None` if the system does not report them.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) times: Option<Times>,
}

impl Usage {
    pub(crate) fn now() -> Self {
        Self { resident_bytes: resident_bytes(), times: times() }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[derive(Debug)]
pub(crate) struct Times {
    /// Seconds of processor time.
    pub(crate) used: f64,
    /// Seconds since 1970.
    pub(crate) started: f64,
}

fn times() -> Option<Times> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The process's name is in parentheses and may contain parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // In proc(5), the first of these is field 3.
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    let system = fs::read_to_string("/proc/stat").ok()?;
    let booted: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let (user, kernel, started) = (ticks(14)?, ticks(15)?, ticks(22)?);
    Some(Times { used: (user + kernel) / TICKS_A_SECOND, started: booted + started / TICKS_A_SECOND })
}
