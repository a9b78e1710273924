"""Tries spark_nightly.py and ray_nightly.py in local sessions, next to `atelier complete` alone.

    pip install --no-deps -r docs/examples/requirements-nightly.txt          # and Java for Spark
    pip install --no-deps --no-build-isolation pyspark==4.3.0
    PATH="$PWD/target/release:$PATH" python docs/examples/try_nightly.py /tmp/nightly

They take turns, so that other work on the machine slows all of them. Then each loses an `atelier complete` and, in another
run, a worker to kill -9, and must still write what `atelier complete` writes. .ci/run does not run this.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet

EXAMPLES = Path(__file__).resolve().parent
RELEASES = EXAMPLES.parent.parent / "models"
# The world of the demo release, with more outfits.
WORLD = "--seed 1 --articles 1500 --customers 20000 --validation 2000 --new 45 --format parquet".split()

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("work", type=Path)
parser.add_argument("--outfits", type=int, default=238000)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--cores", type=int, default=os.cpu_count())
options = parser.parse_args()
work, cores = options.work.resolve(), options.cores
world, suggestions = work / "world", work / "suggestions"
work.mkdir(parents=True, exist_ok=True)
os.environ["ATELIER__MODELS__FOLDER"] = str(RELEASES)
os.environ["RAY_worker_niceness"] = "0"  # instead of 15, with which other programs on this machine come first

COMMANDS = {
    "atelier complete": [
        "atelier", "complete", f"--input={work}/outfits", f"--output={suggestions}", "--k=20",
        f"--articles={world}/articles.parquet", f"--set=engine.workers={cores}",
    ],
    "Spark": [
        "spark-submit", "--master", f"local[{cores},4]", "--conf", "spark.ui.enabled=false", EXAMPLES / "spark_nightly.py",
        "--folder", work, *(f"--{name}={world}/{name}.parquet" for name in ("outfits", "customers", "articles")),
    ],
    "Ray": [
        sys.executable, EXAMPLES / "ray_nightly.py", "--folder", work, f"--articles={world}/articles.parquet",
        f"--cpus={cores}",
    ],
}  # fmt: skip


def main():
    if not world.exists():
        subprocess.run(["atelier-training", "synthesise", "--out", world, "--outfits", str(options.outfits), *WORLD], check=True)
    run("Spark")  # also writes the parts
    parts = sorted((work / "outfits").glob("*.parquet"))
    outfits = sum(pyarrow.parquet.read_metadata(part).num_rows for part in parts)
    print(f"{outfits:,} outfits in {len(parts)} parts, {cores} cores", flush=True)

    rates = {name: [] for name in COMMANDS}
    for _ in range(options.rounds):
        for name in COMMANDS:
            whole, inside, _ = run(name)
            rates[name].append(outfits / inside)
            print(f"{name}: {outfits / inside:,.0f} outfits/s; with the session's start {whole:.1f} s", flush=True)
            check(name, parts)
    bare = rates["atelier complete"]
    for name in ("Spark", "Ray"):
        ratios = [rate / other for rate, other in zip(rates[name], bare)]
        print(f"{name}: {statistics.median(ratios):.2f} of bare ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)

    for name in ("Spark", "Ray"):
        for victim in ("atelier complete", "worker"):
            print(f"{name}: {run(name, kill=victim)[2]}", flush=True)
            check(name, parts)


def run(name, kill=None):
    """The seconds of the command, those within the session, and what was killed."""
    shutil.rmtree(suggestions, ignore_errors=True)
    began = time.monotonic()
    with open(work / "log", "a") as log:
        program = subprocess.Popen(COMMANDS[name], stdout=subprocess.PIPE, stderr=log, text=True)
        killed = kill and kill_one(kill, program)
        printed, _ = program.communicate()
    whole = time.monotonic() - began
    assert program.returncode == 0, f"{name} failed: see {work}/log"
    while completing():  # a killed worker's `atelier complete` ends alone
        time.sleep(0.1)
    return whole, float(printed.split()[-2]) if printed else whole, killed


def kill_one(victim, program):
    """Once a part is written, kills an `atelier complete` or the process that started it."""
    while not (any(suggestions.glob("*.parquet")) and completing()):
        assert program.poll() is None, f"it ended too early: see {work}/log"
        time.sleep(0.02)
    process = completing()[0]
    if victim == "worker":
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    said = Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")[:60].strip()
    written = len(list(suggestions.glob("*.parquet")))
    os.kill(process, signal.SIGKILL)
    return f"killed {process} ({said}) with {written} parts written"


def completing():
    """The processes that write our suggestions."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            arguments = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if arguments[0] == "atelier" and f"--output={suggestions}" in arguments:
            found.append(int(folder.name))
    return found


def check(name, parts):
    """The suggestions must be those of `atelier complete`, which ran first, and nothing else may lie next to them."""
    expected = work / "expected"
    if name == "atelier complete":
        shutil.rmtree(expected, ignore_errors=True)
        suggestions.rename(expected)
        return
    names = {part.name for part in parts}
    found = {path.name for path in suggestions.iterdir()}
    assert found == names, f"{name}: {found ^ names}"
    rows, differing, distance = 0, 0, 0.0
    for part in names:
        ours = pyarrow.parquet.read_table(expected / part)
        theirs = pyarrow.parquet.read_table(suggestions / part)
        for column in ("row", "customer", "slot", "rank"):
            assert ours[column] == theirs[column], f"{name}: {column} of {part}"
        rows += len(ours)
        differing += sum(one != other for one, other in zip(ours["article"].to_pylist(), theirs["article"].to_pylist()))
        distance = max(distance, *(abs(a - b) for a, b in zip(ours["share"].to_pylist(), theirs["share"].to_pylist())))
    print(f"  {rows:,} suggestions as expected; {differing} of another article, shares within {distance:.1e}", flush=True)


main()
