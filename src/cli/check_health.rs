//! `atelier check-health`: whether the service at the configured address is ready, for containers without another
//! HTTP client.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use atelier_core::util::http_client::{Client, Origin};

use crate::config::Server;

/// Longer than the deadline that `/readyz` keeps by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of an answer; another program's may be listening there.
const MOST_BYTES: u64 = 1 << 20;

pub(super) fn run(server: &Server) -> Result<ExitCode> {
    let address = &server.address;
    let origin = Origin::parse(&format!("{}://{}", server.scheme(), connectable(address)))?;
    let mut client = Client::without_verification(origin);
    let answer = client.get("/readyz", MOST_BYTES, Instant::now() + PATIENCE)?;
    let body = String::from_utf8_lossy(answer.body());
    if answer.status() != 200 {
        bail!("{address} is not ready: {} {body}", answer.status().as_u16());
    }
    println!("{body}");
    Ok(ExitCode::SUCCESS)
}

/// The service may listen on all addresses of the machine; then it is asked on the loopback address.
fn connectable(address: &str) -> String {
    for (all, own) in [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")] {
        if let Some(port) = address.strip_prefix(all) {
            return format!("{own}{port}");
        }
    }
    address.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_all_addresses_is_asked_on_loopback() {
        assert_eq!(connectable("0.0.0.0:8080"), "127.0.0.1:8080");
        assert_eq!(connectable("[::]:80"), "[::1]:80");
        assert_eq!(connectable("10.0.0.3:80"), "10.0.0.3:80");
    }
}
