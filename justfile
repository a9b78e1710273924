# Daily commands; `just` lists them. Without just, copy the line.

export CARGO_BUILD_JOBS := "2"

default:
    @just --list

# Build what you changed and run its tests, on SQLite without a browser.
quick *words:
    .ci/quick {{words}}

# Format, lint and test everything.
check:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace

# Run the service with its defaults.
run *flags:
    cargo run --release -- {{flags}}

# Run one group of the integration tests, e.g. `just it store::customers`.
it filter="":
    cargo test -p atelier --test it -- {{filter}}

# Load a running service: 10,000 completions from 64 callers; `just load --swap` swaps releases while it runs.
load *flags:
    cargo bench --profile dist --bench load -- {{flags}}

# Run the reliability experiments, e.g. `just reliability --long swaps`; without flags, the short forms.
reliability *flags:
    cargo test -p atelier --release --test reliability -- {{flags}}

# Measure everything in docs/performance.md; `just speed --peers` includes FastAPI and LitServe, `--quick` only writes benches/speed.json.
speed *flags:
    python3 benches/speed.py {{flags}}

# Measure catalogues of 1,500 to 1,000,000 articles, for docs/performance.md.
scale *flags:
    python3 benches/scale.py {{flags}}

# Measure every page with 30,000 articles; fails if one takes more than 50 ms.
pages *flags:
    python3 benches/pages.py {{flags}}

# Check at least 5,000 generated requests against the service's OpenAPI document.
schemathesis *flags:
    bash tests/schemathesis.sh {{flags}}

# Check the OpenAPI document with others' tools, and both clients against the running service.
clients:
    clients/check

# Take a picture of every page, on a wide screen and a phone, in light and dark mode, into target/pictures; docs/images gets
# those that the documents show.
pictures:
    ATELIER_PICTURES="$PWD/target/pictures" cargo test -p atelier --test it -- browser::every_page browser::widget --test-threads 2
    rm -f docs/images/*.webp
    for name in $(grep -oh 'images/[a-z0-9-]*\.webp' README.md docs/*.md | sort -u); do cp "target/pictures/${name#images/}" docs/images/; done

# Build the documentation as a site with search, in target/site.
site:
    python3 -m venv target/mkdocs
    target/mkdocs/bin/pip install --quiet --no-deps --only-binary=:all: -r docs/requirements.txt
    target/mkdocs/bin/mkdocs build --strict -f .ci/mkdocs.yml

# Make a small synthetic world in data/small, in seconds.
world:
    cargo run --release -p atelier-training -- synthesise --out data/small --articles 1500 --customers 4000 --outfits 12000 --validation 600

# Run what decides whether a change lands.
ci:
    bash .ci/run
