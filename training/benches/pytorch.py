"""Outfits a second of `atelier-training fit` and of training/pytorch, on the same prepared runs, by turns.

    pip install --no-deps -r training/pytorch/requirements.txt
    cargo build --release -p atelier-training
    python3 training/benches/pytorch.py

Makes a world of 30,000 articles and 30,000 outfits in data/bench-pytorch where there is none. Each round learns one epoch with
each of both; the figures leave out the evaluation. Run it on an idle machine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

TRAINER = Path(__file__).resolve().parent.parent / "pytorch/fit.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=Path("target/release/atelier-training"))
    parser.add_argument("--data", type=Path, default=Path("data/bench-pytorch"))
    parser.add_argument("--methods", nargs="+", default=["gsu", "match"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    if not options.data.exists():
        world = ["--articles", "30000", "--customers", "20000", "--outfits", "30000", "--validation", "100"]
        subprocess.run([options.tool, "synthesise", *world, "--out", options.data], check=True, capture_output=True)
    threads = {"RAYON_NUM_THREADS": str(options.threads), "OMP_NUM_THREADS": str(options.threads)}
    for method in options.methods:
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(rate(options, method, threads, in_pytorch=False))
            theirs.append(rate(options, method, threads, in_pytorch=True))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        print(f"{method}: fit {shown(ours)}, PyTorch {shown(theirs)} outfits/s, {ratio:.2f} times", flush=True)


def rate(options, method, threads, in_pytorch):
    run = options.data / "run"
    shutil.rmtree(run, ignore_errors=True)
    fit = [options.tool, "fit", "--data", options.data, "--method", method, "--run", run, "--epochs", "1"]
    fit += ["--batch", str(options.batch), "--set", "fit.begin_at_logit=false", *["--prepare"] * in_pytorch]
    commands = [fit, [sys.executable, TRAINER, run, "--device", "cpu"]][: 1 + in_pytorch]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True, env=os.environ | threads)
    return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["outfits_per_second"]


def shown(rates):
    return ", ".join(f"{rate:.0f}" for rate in rates)


main()
