#!/usr/bin/env python3
"""Trains every method of Table 1 on one data folder: a small search for each, then the seeds. Python 3.10 or later.

    python3 training/table1.py --data data/fifth --runs runs/fifth --epochs 30 --jobs 4

For each method three learning rates are begun with seed 1, and each of them with two scales of the first feature
embeddings where the method takes a context in; what has the best cross-entropy on the development split after a few
epochs goes on to the end, and is what the method's other seeds learn with. All that is known is in the run folders:
stop it whenever you like (Ctrl-C leaves checkpoints), and the same command goes on from there.
"""

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

PAPER = ["none", "c", "np", "gs", "gsu"]
FURTHER = ["gsx", "gsx-latent", "latent", "universal", "latent-universal"]
CONTEXTLESS = {"none", "latent", "universal", "latent-universal"}
RATES = ["0.0004", "0.0007", "0.0012"]
SCALES = ["1.0", "0.02"]


class Settings(NamedTuple):
    """What is searched for."""

    learning_rate: str
    # The standard deviation that feature embeddings are drawn with; nothing where a method has none.
    features: str | None

    def name(self):
        return "-".join(part for part in self if part)


def candidates(method):
    scales = [None] if method in CONTEXTLESS else SCALES
    return [Settings(rate, scale) for rate in RATES for scale in scales]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--tool", type=Path, default=Path("target/release/atelier-training"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time, of one thread each")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--search-epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3, help="of the paper's methods; the others have one")
    grid = Grid(parser.parse_args())
    # In the background of a script a Ctrl-C is ignored unless asked for; a SIGTERM is as good.
    for told in (signal.SIGINT, signal.SIGTERM):
        signal.signal(told, signal.default_int_handler)
    try:
        methods = PAPER + FURTHER
        grid.in_parallel([(method, tried) for method in methods for tried in candidates(method)], grid.search)
        best = {method: grid.best(method) for method in methods}
        written = {method: found._asdict() for method, found in best.items()}
        (grid.runs / "settings.json").write_text(json.dumps(written, indent=1) + "\n")
        cells = [(method, seed) for seed in range(1, grid.seeds + 1) for method in PAPER]
        cells[len(PAPER) : len(PAPER)] = [(method, 1) for method in FURTHER]
        grid.in_parallel(cells, lambda method, seed: grid.cell(method, seed, best[method]))
    except KeyboardInterrupt:
        grid.stopping.set()
        sys.exit("stopped; the same command goes on")


class Grid:
    def __init__(self, options):
        vars(self).update(vars(options))
        self.stopping = threading.Event()

    def search(self, method, tried):
        """The beginning of a run of the whole length: what is promising is gone on with, not begun again."""
        self.fit(method, 1, tried, self.begun(method, tried), until=self.search_epochs)

    def begun(self, method, tried):
        return self.runs / "search" / f"{method}-{tried.name()}"

    def best(self, method):
        def reached(tried):
            lines = epochs(self.begun(method, tried))[: self.search_epochs]
            return min(line["development"]["cross_entropy"] for line in lines)

        return min(candidates(method), key=reached)

    def cell(self, method, seed, best):
        run = self.runs / f"{method}-{seed}"
        if seed == 1 and not run.exists():
            half = run.with_name(f"{run.name}.part")
            shutil.rmtree(half, ignore_errors=True)
            begun = self.begun(method, best)
            shutil.copytree(begun, half)
            readme = half / "README.md"
            readme.write_text(readme.read_text().replace(str(begun), str(run)))
            half.rename(run)
        self.fit(method, seed, best, run, until=None)

    def check(self, run, settings):
        """What was begun otherwise is no cell of this grid, finished or not."""
        config = run / "config.toml"
        for name, wanted in settings._asdict().items():
            found = wanted and config.exists() and re.search(rf"^{name} = ([\d.]+)$", config.read_text(), re.M)[1]
            if found and float(found) != float(wanted):
                raise ValueError(f"{run} was begun with {name} = {found}, not {wanted}: name another folder with --runs")

    def fit(self, method, seed, settings, run, until):
        self.check(run, settings)
        if (run / "done").exists() or (until and len(epochs(run)) >= until):
            return
        run.parent.mkdir(parents=True, exist_ok=True)
        command = [self.tool, "fit", "--resume", "--method", method, "--seed", str(seed), "--data", self.data]
        command += ["--run", run, "--epochs", str(self.epochs), "--learning-rate", settings.learning_rate]
        command += ["--warm-up", "2"]
        if settings.features:
            command += ["--set", f"model.initial.features={settings.features}"]
        with open(run.parent / f"{run.name}.log", "a") as log:
            environment = os.environ | {"RAYON_NUM_THREADS": "1"}
            # In a session of its own: a Ctrl-C reaches it once, from here, and a second one would end it at once.
            fit = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
            )
            told = False
            while fit.poll() is None:
                enough = until and len(epochs(run)) >= until
                if (enough or self.stopping.is_set()) and not told:
                    fit.terminate()
                    told = True
                time.sleep(1)
        if fit.returncode != 0:
            raise RuntimeError(f"{run}: the run ended with {fit.returncode}; see {run}.log")
        # It says where the run is only when that has come to its end.
        if fit.stdout.read():
            (run / "done").touch()

    def in_parallel(self, tasks, work):
        waiting, failures = queue.SimpleQueue(), []
        for task in tasks:
            waiting.put(task)

        def worker():
            while not waiting.empty() and not self.stopping.is_set():
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                began = time.monotonic()
                try:
                    work(*task)
                except (RuntimeError, OSError, ValueError) as failure:
                    failures.append(f"{task}: {failure}")
                print(f"{time.strftime('%T')} {task} {time.monotonic() - began:.0f} s", flush=True)

        workers = [threading.Thread(target=worker) for _ in range(self.jobs)]
        for thread in workers:
            thread.start()
        try:
            for thread in workers:
                thread.join()
        except KeyboardInterrupt:
            self.stopping.set()
            for thread in workers:
                thread.join()
            raise
        if failures:
            sys.exit("\n".join(failures))


def epochs(run):
    file = run / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


main()
