# The daily commands. `just` lists them; without just, each is one line to copy.

export CARGO_BUILD_JOBS := "2"

default:
    @just --list

# Format, lint and test what you changed.
check:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace

# The service on the embedded default.
run *flags:
    cargo run --release -- {{flags}}

# One group of the integration tests, e.g. `just it store::customers`.
it filter="":
    cargo test -p atelier --test it -- {{filter}}

# 10,000 completions from 64 callers of a service that runs; `just load --swap` changes releases meanwhile.
load *flags:
    cargo bench --bench load -- {{flags}}

# What must hold while things break, e.g. `just reliability --long swaps`; without flags, the short forms.
reliability *flags:
    cargo test -p atelier --release --test reliability -- {{flags}}

# Everything in docs/performance.md, measured in turns; `just speed --peers` with FastAPI and LitServe beside it.
speed *flags:
    python3 benches/speed.py {{flags}}

# At least 5,000 made-up requests, held against the service's own document.
schemathesis *flags:
    bash tests/schemathesis.sh {{flags}}

# A picture of every page, wide and on a phone, in light and dark.
pictures folder="docs/images":
    ATELIER_PICTURES="$PWD/{{folder}}" cargo test -p atelier --test it -- browser::every_page --skip postgres --test-threads 2

# A small synthetic world in data/small, in seconds.
world:
    cargo run --release -p atelier-training -- synthesise --out data/small --articles 1500 --customers 4000 --outfits 12000 --validation 600

# The GPU's kernels compile: needs libnvrtc on LD_LIBRARY_PATH, but no GPU.
cuda-kernels:
    cargo test -p atelier-training --lib -- --ignored --nocapture kernels_compile_for_gpus

# On a machine with a GPU: it computes what the CPU does, for every method, and how fast.
cuda-check: cuda-kernels
    cargo test -p atelier-training --lib -- --ignored --nocapture a_gpu_computes_what_the_cpu_does
    cargo bench -p atelier-training --bench step -- gsu cuda

# What decides whether a change lands.
ci:
    bash .ci/run
