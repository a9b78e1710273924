"""Measures the figures of docs/performance.md, in turns, and writes its table and picture.

    python3 benches/speed.py --peers        (`just speed --peers`)
    python3 benches/speed.py --quick        under a minute: the service beside bare ONNX Runtime, into benches/speed.json

Makes releases with random weights in data/speed where there are none, builds, and then goes round: bare ONNX Runtime
and the engine in one process, the service under load, the peers under load, a few seconds each, so that what else
the machine does meets all of them alike; then five methods in one `/compare` and each alone. Figures are medians over
the rounds. The programs are built as the README's users build them. Standard library only.
"""

import argparse
import collections
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data/speed"
RELEASE = DATA / "random"
# The same models as files that take numbers of articles and give logits, as other servers run them.
WHOLE = DATA / "whole"
SIDE_BY_SIDE = DATA / "side-by-side"
METHODS = ["none", "c", "np", "gs", "gsu"]
DOCUMENT = ROOT / "docs/performance.md"
PICTURE = ROOT / "docs/images/performance.svg"
# Ratios to bare ONNX Runtime, committed with each change of what a completion costs.
RATIOS = ROOT / "benches/speed.json"
# Of the callers whose requests also name a type.
TYPED = (1, 64, 256)
NAMES = {"bare": "bare ONNX Runtime", "engine": "the engine", "service": "the service over HTTP",
         "service, a type named": "the service over HTTP, a type named", "fastapi": "FastAPI + onnxruntime", "litserve": "LitServe"}
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
PORTS = {"service": 8190, "fastapi": 8191, "litserve": 8192, "side-by-side": 8193, "demo": 8194, "events": 8195}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="measure FastAPI and LitServe, too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each bare session and engine, in each round")
    parser.add_argument("--requests", type=int, default=6000, help="of each load on the service, in each round")
    parser.set_defaults(callers=[1, 64], sessions=["--callers", "1,64"])
    parser.add_argument("--profile", default="release", help="what the programs are built with; images are built with `dist`")
    parser.add_argument("--quick", action="store_true", help="only ratios of the service to bare ONNX Runtime")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    target = build(arguments.profile)
    if arguments.quick:
        return quick(arguments, target)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        servers = [start_atelier(target, Path(scratch))]
        if arguments.peers:
            servers += start_peers()
        try:
            found = rounds(arguments, target, servers)
            side_by_side = compare(arguments, target, Path(scratch))
            start_up = time_start(target, Path(scratch))
        finally:
            for server in servers:
                server.stop()
    write(arguments, found, side_by_side, start_up, (load_before, os.getloadavg()[0]))


def quick(arguments, target):
    """Writes completions a CPU-second as ratios to bare ONNX Runtime's best, and prints them beside those that were there."""
    arguments.rounds, arguments.seconds, arguments.requests, arguments.callers = 3, 0.3, 4000, [1, 64, 256]
    arguments.sessions = ["--batches", "64,256", "--threads", "1", "--callers", "64"]
    with tempfile.TemporaryDirectory() as scratch:
        server = start_atelier(target, Path(scratch))
        try:
            found = rounds(arguments, target, [server])
        finally:
            server.stop()
    bare = max(value["per_cpu_second"] for key, value in found.items() if key[0] == "bare")
    ratios = {label(key): round(value["per_cpu_second"] / bare, 3) for key, value in found.items() if key[0] != "bare"}
    before = json.loads(RATIOS.read_text())["ratios"] if RATIOS.exists() else {}
    for name, ratio in ratios.items():
        was = before.get(name)
        print(f"{name}: {ratio:.3f} × bare" + (f", {was:.3f} before ({ratio / was - 1:+.0%})" if was else ""))
    RATIOS.write_text(json.dumps({"bare_per_cpu_second": round(bare), "ratios": ratios}, indent=2) + "\n")


class Server:
    def __init__(self, name, command, ready, log):
        self.name, self.url = name, f"http://127.0.0.1:{PORTS[name]}"
        began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        while True:
            try:
                urllib.request.urlopen(self.url + ready, timeout=5).read()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() - began > 120:
                    sys.exit(f"{name} does not start: see {log.name}")
                time.sleep(0.01)
        self.started = time.monotonic() - began

    def resident(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1000

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(30)


def cargo(*words):
    # With `CARGO_INCREMENTAL=1` the programs would be compiled in smaller units than a release build.
    subprocess.run(["cargo", *words], check=True, env={**os.environ, "CARGO_INCREMENTAL": "0"})


def build_programs(profile="release"):
    cargo("build", "--profile", profile, "-p", "atelier", "--bin", "atelier")
    cargo("bench", "--profile", profile, "-p", "atelier", "--bench", "session", "--bench", "load", "--no-run")
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / profile


def random_release(*flags):
    cargo("run", "--release", "-p", "atelier-training", "--example", "random_release", "--", *flags)


def build(profile):
    """Builds the programs, and makes the releases that are missing."""
    target = build_programs(profile)
    for release, methods in [(RELEASE, ["gsu"]), (SIDE_BY_SIDE, METHODS)]:
        if not (release / "release.json").exists():
            random_release("--out", str(release), "--methods", *methods)
    if not WHOLE.exists():
        export = ["export", "--whole", str(RELEASE), "--out", str(WHOLE)]
        cargo("run", "--release", "-p", "atelier-training", "--bin", "atelier-training", "--", *export)
    return target


def bench(target, name):
    """The newest build of a benchmark."""
    programs = [path for path in (target / "deps").glob(f"{name}-*") if not path.suffix]
    return str(max(programs, key=lambda path: path.stat().st_mtime))


def start_atelier(target, scratch, name="service", release="random"):
    log = open(DATA / "atelier.log", "a", encoding="utf-8")
    command = [str(target / "atelier"), "--database", f"sqlite:{scratch}/{name}.db"]
    if not Path(scratch, f"{name}.db").exists():
        subprocess.run([*command, "import", f"data/speed/{release}"], check=True, stderr=log)
    # What is measured is a customer who is known already, however long ago a round before asked for them.
    settings = ["--models", "data/speed", "--release", release, "--set", "profiles.fresh_ms=3600000"]
    settings += ["--address", f"127.0.0.1:{PORTS[name]}", "--device", "cpu", "--set", "access.require_key=false"]
    return Server(name, [*command, "serve", *settings], "/readyz", log)


def start_peers():
    python = DATA / "venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(DATA / "venv")], check=True)
    wanted = ["--no-deps", "-r", "benches/peers/requirements.txt"]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
    servers = []
    for name in ("fastapi", "litserve"):
        log = open(DATA / f"{name}.log", "w", encoding="utf-8")
        command = [str(python), f"benches/peers/{name}_server.py", str(RELEASE), str(WHOLE), "gsu", str(PORTS[name])]
        servers.append(Server(name, command, "/docs", log))
    return servers


def rounds(arguments, target, servers):
    """The figures of each server in each round."""
    found, typed = {}, ["--type", largest_type(RELEASE)]
    for server in servers:
        # Every customer once, so that they are cached.
        load(target, server, 64, arguments.requests if server.name == "service" else 200)
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", flush=True)
        session = [bench(target, "session"), "--release", str(RELEASE), "--whole", str(WHOLE), "--json", "--bench"]
        session += ["--rounds", "1", "--seconds", str(arguments.seconds), *arguments.sessions]
        for line in run_lines(session):
            found.setdefault((line["who"], line["threads"], line["at_once"]), []).append(line)
        for callers in arguments.callers:
            for server in servers:
                # The peers answer a tenth as fast.
                requests = arguments.requests if server.name == "service" else arguments.requests // 10
                requests = max(200, requests // 10 if callers == 1 else requests)
                found.setdefault((server.name, None, callers), []).extend(load(target, server, callers, requests))
                if server.name == "service" and callers in TYPED:
                    key = ("service, a type named", None, callers)
                    found.setdefault(key, []).extend(load(target, server, callers, requests, flags=typed))
    return {key: {name: median(line[name] for line in lines) for name in lines[0] if is_number(lines[0][name])}
            for key, lines in found.items()}


def load(target, server, callers, requests, release=RELEASE, methods=("gsu",), flags=()):
    command = [bench(target, "load"), "--url", server.url, "--release", str(release), "--json", "--bench"]
    command += ["--slots", "5", "--callers", str(callers), "--requests", str(requests)]
    return run_lines(command + ["--methods", ",".join(methods), "--pid", str(server.process.pid), *flags])


def compare(arguments, target, scratch):
    """Times of five methods in one `/compare`, and of one in `/complete`, for one caller."""
    server = start_atelier(target, scratch, SIDE_BY_SIDE.name, SIDE_BY_SIDE.name)
    together, alone = [], []
    times = lambda methods, requests: [line["p50_ms"] for line in load(target, server, 1, requests, SIDE_BY_SIDE, methods)]
    requests = max(100, arguments.requests // 10)
    try:
        times(METHODS, requests)
        for _ in range(arguments.rounds):
            together += times(METHODS, requests)
            alone += [sum(times([method], requests // 5)[0] for method in METHODS) / len(METHODS)]
    finally:
        server.stop()
    return median(together), median(alone)


def largest_type(release):
    kinds = collections.Counter(json.loads(line)["type"] for line in (release / "articles.jsonl").open())
    return kinds.most_common(1)[0][0]


def run_lines(command):
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def is_number(value):
    return isinstance(value, (int, float))


def time_start(target, scratch):
    """Time from start to ready of the demo, with a new database and a filled one; and the idle memory."""
    times = []
    command = ["env", "--unset=DATABASE_URL", f"XDG_DATA_HOME={scratch}", str(target / "atelier"), "--device", "cpu"]
    command += ["--address", f"127.0.0.1:{PORTS['demo']}"]
    for attempt in range(4):
        log = open(DATA / "atelier.log", "a", encoding="utf-8")
        server = Server("demo", command, "/readyz", log)
        times.append(server.started)
        time.sleep(2)
        resident = server.resident()
        server.stop()
    return {"first": times[0], "again": median(times[1:]), "resident_mb": resident}


def write(arguments, found, side_by_side, start_up, loads):
    bare = {key: value for key, value in found.items() if key[0] == "bare"}
    best_key, best = max(bare.items(), key=lambda item: item[1]["per_cpu_second"])
    lines = [
        BEGIN,
        "",
        f"Measured on {machine()}; load average {loads[0]:.1f} before and {loads[1]:.1f} after;"
        f" ONNX Runtime 1.31.1, {version('rustc')}; gsu, V = 30,000, random weights, outfits of five, k = 20;"
        f" medians of {arguments.rounds} rounds.",
        "",
        "| | completions a CPU-second: 1 caller | 64 callers | × bare | a second | median ms: 1 caller | 64 callers | p99 | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    bars = [(label(key), value["per_cpu_second"], key[0]) for key, value in found.items() if key[0] != "bare" or key == best_key]
    # A row for each program, with its figures for one caller beside those for 64.
    for who in dict.fromkeys(key[0] for key in found):
        one, many = ({}, best) if who == "bare" else (found[who, None, callers] for callers in (1, 64))
        figures = [
            figure(one, "per_cpu_second", 0), figure(many, "per_cpu_second", 0),
            f"{many['per_cpu_second'] / best['per_cpu_second']:.2f}", figure(many, "per_second", 0),
            figure(one, "median_ms", 2), figure(many, "median_ms", 2), figure(many, "p99_ms", 2), figure(many, "resident_mb", 0),
        ]
        lines.append(f"| {label(best_key) if who == 'bare' else NAMES[who]} | {' | '.join(figures)} |")
    five, one = side_by_side
    lines += [
        "",
        f"One `/compare` of five methods takes {five:.2f} ms, {five / one:.1f} times one `/complete` ({one:.2f} ms).",
        "",
        f"The demo is ready in {start_up['first']:.2f} s with a new database and in {start_up['again']:.2f} s later."
        f" It takes {start_up['resident_mb']:.0f} MB when idle.",
        "",
        END,
    ]
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    DOCUMENT.write_text(before + "\n".join(lines) + rest.split(END)[1], encoding="utf-8")
    PICTURE.write_text(picture(bars), encoding="utf-8")
    print("\n".join(lines))


def label(key):
    who, threads, at_once = key
    if who == "bare":
        return f"bare ONNX Runtime, batch {at_once}, {threads} thread{'s' if threads > 1 else ''}"
    return f"{NAMES[who]}, {at_once} caller{'s' if at_once > 1 else ''}"


def figure(line, name, digits):
    """A load's median is named after its percentile."""
    value = line.get(name, line.get("p50_ms") if name == "median_ms" else None)
    return "–" if value is None else f"{value:.{digits}f}"


def machine():
    model = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    return f"{os.cpu_count()} cores of {model}, {platform.platform(terse=True)}"


def version(program):
    return subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout.split(" (")[0].strip()


def picture(bars):
    """A bar chart, in colours that differ on light and dark backgrounds."""
    colours = {"bare": "#8a8f98", "engine": "#2f7d6d", "service": "#3b6fb6", "service, a type named": "#6f9bd6",
               "fastapi": "#b4682d", "litserve": "#9a4f86"}
    row, left, width = 26, 260, 420
    most = max(value for _, value, _ in bars)
    height = row * len(bars) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 80} {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "<title>Completions a CPU-second of the server</title>",
        f'<rect width="100%" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="20" font-weight="600">completions a CPU-second</text>',
    ]
    for place, (name, value, who) in enumerate(bars):
        y = 32 + place * row
        parts.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{name}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{width * value / most:.1f}" height="20" rx="2"'
                     f' fill="{colours[who]}"/>')
        parts.append(f'<text x="{left + width * value / most + 6:.1f}" y="{y + 15}">{value:.0f}</text>')
    return "\n".join(parts + ["</svg>", ""])


if __name__ == "__main__":
    main()
