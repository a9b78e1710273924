# To be sourced. `start_demo [FLAGS OF SERVE]` starts the service that is built, on a free port, with a new SQLite database,
# the demo world and the demo release; it stops one that it started before. Sets `url`, `key`, an API key for everything, and
# `work`, a temporary folder with the service's log, which is deleted at the end of the script.
work="$(mktemp -d)"
service=

stop_demo() {
  [ -z "$service" ] || { kill "$service" 2>/dev/null; wait "$service" 2>/dev/null; } || true
}

start_demo() {
  stop_demo
  rm -rf "$work"/atelier.db* "$work/link"
  local atelier=("${CARGO_TARGET_DIR:-target}/debug/atelier" --database "sqlite:$work/atelier.db")
  "${atelier[@]}" import models/demo 2>"$work/log"
  key="$("${atelier[@]}" key create --label tests --scope complete,catalogue,feedback,events,rules,admin,metrics 2>>"$work/log")"
  "${atelier[@]}" serve --address 127.0.0.1:0 --models models "$@" >"$work/link" 2>"$work/log" &
  service=$!
  until [ -s "$work/link" ]; do
    kill -0 "$service" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.1
  done
  url="$(sed -n 's,^Atelier is at \(http://[^/]*\)/.*$,\1,p' "$work/link")"
}

trap 'stop_demo; rm -rf "$work"' EXIT
