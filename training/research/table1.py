#!/usr/bin/env python3
"""Trains every method of Table 1 on one data folder: a small search for each, then the seeds. Needs Python 3.10.

    python3 training/research/table1.py --data data/fifth --runs runs/fifth --epochs 30 --jobs 4

The search gives each method some learning rates and seeds, over short runs with a complete schedule. The rate with the
best mean cross-entropy on the development split is used for the method's runs; the script says so if it is the smallest
or the largest. All state is in the run folders: stop the script at any time (Ctrl-C leaves checkpoints), and
run the same command again to resume.
"""

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PAPER = ["none", "c", "np", "gs", "gsu"]
SEVERAL_SEEDS = [*PAPER, "match"]
FURTHER = ["latent", "universal", "latent-universal"]
RATES = ["0.0003", "0.0005", "0.0008", "0.0013", "0.0021"]
# The status of a run that was told to stop.
INTERRUPTED = 130
# The papers leave nothing out of a profile.
AS_IN_THE_PAPERS = ["fit.drop_profile=0.0", "fit.drop_feature=0.0", "fit.calibrate=false"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--tool", type=Path, default=Path("target/release/atelier-training"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parallel runs, with one thread each")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--search-epochs", type=int, default=8)
    parser.add_argument("--search-seeds", type=int, default=2)
    parser.add_argument("--rates", nargs="+", default=RATES, help="from the smallest to the largest")
    parser.add_argument("--methods", nargs="+", default=SEVERAL_SEEDS + FURTHER)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the paper's methods and match; the others have one")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="for every run")
    grid = Grid(parser.parse_args())
    # A background process of a script ignores Ctrl-C by default; SIGTERM works the same way.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    try:
        searches = [(m, rate, seed) for m in grid.methods for rate in grid.rates for seed in grid.each_search_seed()]
        grid.in_parallel(searches, grid.search)
        best = {method: grid.best(method) for method in grid.methods}
        (grid.runs / "settings.json").write_text(json.dumps(best, indent=1) + "\n")
        cells = [(m, seed) for seed in range(1, grid.seeds + 1) for m in grid.methods if m in SEVERAL_SEEDS or seed == 1]
        grid.in_parallel(cells, lambda method, seed: grid.cell(method, seed, best[method]))
    except KeyboardInterrupt:
        grid.stopping.set()
        sys.exit("stopped; run the same command again to resume")


class Grid:
    def __init__(self, options):
        vars(self).update(vars(options))
        self.tool = self.tool.resolve()
        self.stopping = threading.Event()

    def each_search_seed(self):
        return range(1, self.search_seeds + 1)

    def search(self, method, rate, seed):
        self.fit(method, seed, rate, self.search_run(method, rate, seed), self.search_epochs)

    def search_run(self, method, rate, seed):
        return self.runs / "search" / f"{method}-{rate}-{seed}"

    def best(self, method):
        def reached(rate):
            runs = [epochs(self.search_run(method, rate, seed)) for seed in self.each_search_seed()]
            return sum(min(line["development"]["cross_entropy"] for line in lines) for lines in runs)

        best = min(self.rates, key=reached)
        if best in (self.rates[0], self.rates[-1]):
            print(f"{method}: the best rate, {best}, is at the edge of those tried", flush=True)
        return best

    def cell(self, method, seed, rate):
        self.fit(method, seed, rate, self.runs / f"{method}-{seed}", self.epochs)

    def fit(self, method, seed, rate, run, of_epochs):
        if (run / "done").exists():
            return
        run.parent.mkdir(parents=True, exist_ok=True)
        command = [self.tool, "fit", "--resume", "--method", method, "--seed", str(seed), "--data", self.data]
        command += ["--run", run, "--epochs", str(of_epochs), "--learning-rate", rate]
        # A run may not stop early: all of a table have the same schedule.
        command += ["--patience", str(of_epochs)]
        of_method = [] if method == "match" else AS_IN_THE_PAPERS
        for setting in [*of_method, *self.set]:
            command += ["--set", setting]
        with open(run.parent / f"{run.name}.log", "a") as log:
            environment = os.environ | {"RAYON_NUM_THREADS": "1"}
            # In its own session, so that a Ctrl-C reaches it once, from here; a second one would kill it.
            fit = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
            )
            stopped = False
            while fit.poll() is None:
                if self.stopping.is_set() and not stopped:
                    fit.terminate()
                    stopped = True
                time.sleep(1)
        if fit.returncode not in (0, INTERRUPTED):
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
