"""Measures the service with catalogues of different sizes, for docs/performance.md, and writes its table there.

    python3 benches/scale.py                (`just scale`; up to 1,000,000 articles, needs 8 GB of memory and of disk)
    python3 benches/scale.py --articles 1500 30000

Makes a release with random weights for each size in data/scale where there is none, and imports it into a database of its
own. Then it starts the service, loads it, and changes articles. Run it on an idle machine. Standard library only.
"""

import argparse
import collections
import http.client
import json
import os
import subprocess
import time
from pathlib import Path
from statistics import median

import speed

DATA = speed.ROOT / "data/scale"
METHOD = "gsu"
BEGIN, END = "<!-- scale: begin -->", "<!-- scale: end -->"
# Start, idle memory and changes are measured on a service that nothing else was asked of.
CHANGES = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--articles", type=int, nargs="+", default=[1_500, 30_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=5, help="of each load")
    parser.add_argument("--print", action="store_true", help="leave docs/performance.md as it is")
    arguments = parser.parse_args()
    os.chdir(speed.ROOT)
    target = speed.build_programs()
    lines = []
    for articles in arguments.articles:
        release = make(target, articles)
        lines.append(measure(target, release, articles, arguments.seconds))
        print(json.dumps(lines[-1]), flush=True)
    text = "\n".join(table(lines))
    print(text)
    if not arguments.print:
        document = speed.DOCUMENT.read_text(encoding="utf-8")
        before, rest = document.split(BEGIN)
        speed.DOCUMENT.write_text(before + text + rest.split(END)[1], encoding="utf-8")


def make(target, articles, name="random", methods=(METHOD,)):
    """A release, and a database with its articles and customers."""
    release = DATA / f"{name}-{articles}"
    if not (release / "release.json").exists():
        sizes = ["--articles", str(articles), "--methods", *methods, "--storage", "float16"]
        speed.random_release("--out", str(release), *sizes)
    imported = release.with_suffix(".imported")
    if not imported.exists():
        command = [str(target / "atelier"), "--database", f"sqlite:{database(release)}"]
        command += ["--set", f"models.folder={DATA}"]
        command += ["--set", f"models.release={release.name}", "import"]
        files = [f"--{name}={release}/{name}.jsonl" for name in ("articles", "customers")]
        subprocess.run([*command, *files], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        imported.touch()
    return release


def database(release):
    return release.with_suffix(".db")


def measure(target, release, articles, seconds):
    found = {"articles": articles, "start_s": median(start(target, release, stop=True) for _ in range(3))}
    server = start(target, release)
    try:
        time.sleep(5)
        found["idle_mb"] = server.resident()
        kind, share = small_type(release)
        found["share"] = share
        filters = {"": [], "_type": ["--type", kind], "_probability": ["--type", kind, "--probability"]}
        for name, flags in filters.items():
            for callers in (1, 64):
                if name == "_probability" and callers > 1:
                    continue
                load = lambda requests: speed.load(target, server, callers, requests, release, (METHOD,), flags)[0]
                # As many as take about that long.
                requests = max(2 * callers, int(load(4 * callers)["per_second"] * seconds))
                line = load(requests)
                found[f"ms_{callers}{name}"] = line["p50_ms"]
                if callers > 1:
                    found[f"per_cpu_second{name}"] = line["per_cpu_second"]
                    found[f"per_second{name}"] = line["per_second"]
        found["loaded_mb"] = server.resident()
        changed = [json.loads(line) for line, _ in zip((release / "articles.jsonl").open(), range(CHANGES))]
        known = [put(server, article["id"], article) for article in changed]
        # Under ids that no earlier run gave.
        added = [put(server, f"new-{time.time_ns()}", article) for article in changed]
        found["put_known_ms"], found["put_new_ms"] = median(known), median(added)
        found["put_slowest_ms"] = max(known + added)
    finally:
        server.stop()
    return found


def start(target, release, stop=False):
    """The service, or the seconds until it was ready."""
    log = open(DATA / "atelier.log", "a", encoding="utf-8")
    command = [str(target / "atelier"), "--database", f"sqlite:{database(release)}", "serve"]
    command += ["--address", f"127.0.0.1:{speed.PORTS['service']}", "--models", str(DATA), "--release", release.name]
    server = speed.Server("service", [*command, "--set", "access.require_key=false"], "/readyz", log)
    if not stop:
        return server
    server.stop()
    return server.started


def small_type(release):
    """The type whose share of the articles is nearest to 1 %, of those with enough for a whole answer."""
    kinds = collections.Counter(json.loads(line)["type"] for line in (release / "articles.jsonl").open())
    count = kinds.total()
    shares = {kind: number / count for kind, number in kinds.items() if number >= 40}
    kind = min(shares, key=lambda kind: abs(shares[kind] - 0.01))
    return kind, shares[kind]


def put(server, name, article):
    """Milliseconds until the service has stored an article and suggests it."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    body = {key: value for key, value in article.items() if key != "id"} | {"price": time.time_ns() % 10_000 / 100}
    connection.connect()
    began = time.perf_counter()
    connection.request("PUT", f"/articles/{name}", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    took = time.perf_counter() - began
    assert answer.status < 300, text
    return 1000 * took


def table(lines):
    yield BEGIN
    yield ""
    yield (f"Measured on {speed.machine()}; {METHOD}, random weights in float16, SQLite, outfits of five,"
           " k = 20.")
    yield ""
    heads = ["articles", "ready, s", "idle, MB", "1 caller, ms", "one type", "64 callers, a CPU-second", "one type", "slowest `PUT`, ms"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for line in lines:
        cells = [f"{line['articles']:,}", f"{line['start_s']:.1f}", f"{line['idle_mb']:.0f}", f"{line['ms_1']:.2f}",
                 f"{line['ms_1_type']:.2f}", f"{line['per_cpu_second']:,.0f}", f"{line['per_cpu_second_type']:,.0f}",
                 f"{line['put_slowest_ms']:.1f}"]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield END


if __name__ == "__main__":
    main()
