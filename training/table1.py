#!/usr/bin/env python3
"""Trains every method of Table 1 on one data folder: a small search for each, then the seeds. Needs Python 3.10.

    python3 training/table1.py --data data/fifth --runs runs/fifth --epochs 30 --jobs 4

The search starts each method with three learning rates and seed 1, and conditioned methods also with two initial
scales of the feature embeddings. The settings with the best cross-entropy on the development split after a few epochs
continue to the end, and the method's other seeds use them. All state is in the run folders: stop the script at any
time (Ctrl-C leaves checkpoints), and run the same command again to resume.
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
    """The settings of the search."""

    learning_rate: str
    # Initial standard deviation of the feature embeddings; None if the method has none.
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
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parallel runs, with one thread each")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--search-epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the paper's methods; the others have one")
    grid = Grid(parser.parse_args())
    # A background process of a script ignores Ctrl-C by default; SIGTERM works the same way.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
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
        sys.exit("stopped; run the same command again to resume")


class Grid:
    def __init__(self, options):
        vars(self).update(vars(options))
        self.stopping = threading.Event()

    def search(self, method, tried):
        """Starts a run of full length and stops it early: the best one is resumed, not started again."""
        self.fit(method, 1, tried, self.search_run(method, tried), until=self.search_epochs)

    def search_run(self, method, tried):
        return self.runs / "search" / f"{method}-{tried.name()}"

    def best(self, method):
        def reached(tried):
            lines = epochs(self.search_run(method, tried))[: self.search_epochs]
            return min(line["development"]["cross_entropy"] for line in lines)

        return min(candidates(method), key=reached)

    def cell(self, method, seed, best):
        run = self.runs / f"{method}-{seed}"
        if seed == 1 and not run.exists():
            half = run.with_name(f"{run.name}.part")
            shutil.rmtree(half, ignore_errors=True)
            searched = self.search_run(method, best)
            shutil.copytree(searched, half)
            readme = half / "README.md"
            readme.write_text(readme.read_text().replace(str(searched), str(run)))
            half.rename(run)
        self.fit(method, seed, best, run, until=None)

    def check(self, run, settings):
        """Refuses a run with other settings than the grid's."""
        config = run / "config.toml"
        for name, wanted in settings._asdict().items():
            found = wanted and config.exists() and re.search(rf"^{name} = ([\d.]+)$", config.read_text(), re.M)[1]
            if found and float(found) != float(wanted):
                raise ValueError(f"{run} was started with {name} = {found}, not {wanted}: choose another folder with --runs")

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
            # In its own session, so that a Ctrl-C reaches it once, from here; a second one would kill it.
            fit = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
            )
            stopped = False
            while fit.poll() is None:
                enough = until and len(epochs(run)) >= until
                if (enough or self.stopping.is_set()) and not stopped:
                    fit.terminate()
                    stopped = True
                time.sleep(1)
        if fit.returncode != 0:
            raise RuntimeError(f"{run}: the run failed with status {fit.returncode}; see {run}.log")
        # `fit` prints the run's folder only if the run is complete.
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
                start = time.monotonic()
                try:
                    work(*task)
                except (RuntimeError, OSError, ValueError) as failure:
                    failures.append(f"{task}: {failure}")
                print(f"{time.strftime('%T')} {task} {time.monotonic() - start:.0f} s", flush=True)

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
