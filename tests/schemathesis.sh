#!/usr/bin/env bash
# Checks a running service against its own OpenAPI document with at least 5,000 generated requests:
#
#     tests/schemathesis.sh [flags of `st run`, e.g. --seed 7]
#
# It fails on any 5xx, on any answer that the document does not describe, on an error of schemathesis itself, and if
# fewer cases were run. Every operation is called with every check; tests/schemathesis/schemathesis.toml turns off the
# checks that cannot hold for an operation, with the reason.
#
# The service is built and started on a free port, with the demo world in SQLite, and needs keys;
# schemathesis is installed under the target folder, through pip.
set -euo pipefail
cd "$(dirname "$0")/.."

LEAST=5000
# For each operation with parameters or a body; the cases that cover each rule of the document come on top.
EXAMPLES=250
root="$PWD"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"

wanted="$root/tests/schemathesis/requirements.txt"
venv="$target/schemathesis-$(sha256sum "$wanted" | cut -c 1-12)"
if [ ! -e "$venv/ready" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --requirement "$wanted"
  touch "$venv/ready"
fi

# As the tests build it, so that nothing is built twice.
cargo test --quiet --workspace --no-run --locked
. tests/demo_service.sh
start_demo

# One worker: hypothesis parses Python source meanwhile, which threads of CPython 3.11 cannot do at the same
# time ("AST constructor recursion depth mismatch").
status=0
cd "$work" # for the files that it writes
SCHEMATHESIS_HOOKS="$root/tests/schemathesis/hooks.py" "$venv/bin/st" \
  --config-file "$root/tests/schemathesis/schemathesis.toml" \
  run "$url/openapi.json" --header "Authorization: Bearer $key" --no-color --workers 1 --continue-on-failure \
  --max-examples "$EXAMPLES" --generation-database none "$@" | tee "$work/said" || status=$?

# The service's log must have no errors either, except that feeds of made-up addresses cannot be fetched.
if grep -F '"level":"ERROR"' "$work/log" | grep -vF '"a feed failed again"' >&2; then
  echo "the service logged the errors above" >&2
  status=1
fi
cases="$(sed -n 's/^ *\([0-9][0-9]*\) generated.*/\1/p' "$work/said" | tail -n 1)"
if [ "${cases:-0}" -lt "$LEAST" ]; then
  echo "only ${cases:-0} cases were run, at least $LEAST are required" >&2
  status=1
fi
exit "$status"
