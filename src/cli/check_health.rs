//! `atelier check-health`: whether the service at the configured address is ready, for containers that hold no
//! other program to ask it.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::util::http_client::{Client, Origin};

/// Longer than the deadline that `/readyz` keeps by default.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(address: &str) -> Result<ExitCode> {
    let mut client = Client::new(Origin::parse(&format!("http://{}", reachable(address)))?);
    let answer = client.get("/readyz", Instant::now() + PATIENCE)?;
    let said = String::from_utf8_lossy(&answer.body);
    if answer.status != 200 {
        bail!("{address} is not ready: {} {said}", answer.status);
    }
    println!("{said}");
    Ok(ExitCode::SUCCESS)
}

/// An address to listen on may mean all of the machine's; the own machine is asked by its own name.
fn reachable(address: &str) -> String {
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
    fn who_listens_everywhere_is_asked_at_home() {
        assert_eq!(reachable("0.0.0.0:8080"), "127.0.0.1:8080");
        assert_eq!(reachable("[::]:80"), "[::1]:80");
        assert_eq!(reachable("10.0.0.3:80"), "10.0.0.3:80");
    }
}
