use std::process::Command;

use super::*;

/// What `just cuda-check` runs on a GPU, rehearsed with a driver that a C library plays: what is passed to it
/// is what it should be.
#[test]
#[cfg(target_os = "linux")]
fn calls_are_what_a_driver_expects() {
    let libraries = crate::engine::device::shim::libraries();
    let test = "model::tests::device::a_gpu_computes_what_the_cpu_does";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", libraries.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("on rehearsal 0\n"), "{said}");
    assert_eq!(said.matches(": losses, gradients and steps agree\n").count(), 10, "{said}");
}

/// NVRTC needs no GPU, only its library: `just cuda-kernels`.
#[test]
#[ignore = "needs libnvrtc: just cuda-kernels"]
fn kernels_compile_for_gpus() {
    for architecture in ["sm_80", "sm_90"] {
        let binary = calls::compile(SOURCE, architecture).unwrap();
        assert!(binary.starts_with(b"\x7fELF"), "{architecture}: {} bytes", binary.len());
        for name in SIGNATURES.keys() {
            let found = binary.windows(name.len()).any(|bytes| bytes == name.as_bytes());
            assert!(found, "{architecture}: no {name}");
        }
        println!("{architecture}: {} kernels in {} bytes", SIGNATURES.len(), binary.len());
    }
    let said =
        calls::compile("KERNEL torn(float *to) { to[0] = nothing; }", "sm_90").unwrap_err().to_string();
    assert!(said.contains("nothing"), "{said}");
}
