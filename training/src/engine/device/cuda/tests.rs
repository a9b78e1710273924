use super::*;

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
    assert!(said.contains("\\\"nothing\\\" is undefined") || said.contains("nothing"), "{said}");
}
