#!/usr/bin/env python3
"""Prints Markdown about a grid of runs, beyond what `table` prints.

    python3 training/research/results.py --table docs/results/fifth.json
    python3 training/research/results.py --table docs/results/fifth.json --runs runs/fifth --all all.json \\
        --curves docs/results/fifth-curves.json docs/images/results-fifth.svg
    python3 training/research/results.py --curves docs/results/fifth-curves.json docs/images/results-fifth.svg

`--table`, a file of `atelier-training table --json`, is enough for the differences over seeds. With `--runs` and `--all`, a file
of `atelier-training evaluate --out`, it also covers the bootstrap's differences between neighbours in the ranking, where the
context helps, calibration, cost of training, and the search of `table1.py`. `--curves` draws the development curves; with
`--runs` it first writes their points. Needs the packages of requirements.txt.
"""

import argparse
import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure
from scipy.stats import ttest_ind_from_stats

ATTRIBUTES = " + attributes"
PAPER = ["none", "c", "np", "gs", "gsu"]
CONTEXTLESS = {"none", "latent", "universal", "latent-universal"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="the file written by `table --json`")
    parser.add_argument("--runs", type=Path, nargs="+", default=[], help="folders that contain run folders")
    parser.add_argument("--all", type=Path, help="the file written by `evaluate --out`")
    parser.add_argument("--curves", type=Path, nargs=2, metavar=("JSON", "SVG"), help="points and image of the development curves")
    options = parser.parse_args()
    folders = [run for runs in options.runs for run in sorted(runs.iterdir()) if (run / "evaluation.json").exists()]
    runs = [Run(folder) for folder in folders]
    if options.all:
        print(differences(json.loads(options.all.read_text())))
    if options.table:
        print(seeds(json.loads(options.table.read_text())))
    if runs:
        print(context(runs))
        print(calibration(runs))
        print(cost(runs))
    for runs_folder in options.runs:
        if (runs_folder / "settings.json").exists():
            print(searched(runs_folder))
    if options.curves:
        points, image = options.curves
        if runs:
            curves = {name: [epoch["development"]["cross_entropy"] for epoch in run.epochs] for name, run in firsts(runs).items()}
            points.write_text(json.dumps(curves) + "\n")
        draw(json.loads(points.read_text()), image)


def epochs(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Run:
    def __init__(self, folder):
        self.evaluation = json.loads((folder / "evaluation.json").read_text())
        self.epochs = epochs(folder)
        self.seed = self.evaluation["seed"]
        self.name = name(self.evaluation["about"] | self.evaluation)
        config = (folder / "config.toml").read_text()
        self.rate = re.search(r"^learning_rate = (.+)$", config, re.M)[1]
        contextless = self.name.removesuffix(ATTRIBUTES) in CONTEXTLESS
        self.scale = "" if contextless else re.search(r"^features = ([\d.]+)$", config, re.M)[1]

    def segments(self, by):
        return {part["value"]: part["summary"] for part in self.evaluation["segments"] if part["by"] == by}


def differences(figures):
    """Each method against the next in the ranking by cross-entropy, [NP] against [GSU], and ours against [GSU]."""
    mean = {name(method): method["cross_entropy"]["mean"] for method in figures["methods"]}
    ranking = sorted(mean, key=mean.get)
    pairs = list(zip(ranking, ranking[1:]))
    pairs += [pair for pair in [("np", "gsu")] if set(pair) <= set(ranking) and pair not in pairs and pair[::-1] not in pairs]
    ours = [method for method in ranking if method == "match" or method.endswith(ATTRIBUTES)]
    pairs += [(other, "gsu") for other in ours if not {(other, "gsu"), ("gsu", other)} & set(pairs)]
    lines = ["| | cross-entropy | p | recall@1, points | p |", "|---|---|---|---|---|"]
    for first, second in pairs:
        row = [f"{first} − {second}"]
        for metric, times, digits in (("cross_entropy", 1, 3), ("recall_at_1", 100, 2)):
            found = between(figures["differences"], metric, first, second)
            by, low, high = (f"{times * found[part]:.{digits}f}".replace("-", "−") for part in ("difference", "low", "high"))
            row += [f"{by} ({low} to {high})", chance(found["p"], figures["draws"])]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def chance(p, draws):
    """A bootstrap's p; it cannot be smaller than its draws show."""
    least = 2 / draws
    return f"< {least:g}" if p <= least else f"{p:.4f}"


def seeds(table):
    """Pairs of the paper's methods by their seeds: Welch's test, with Holm's correction for their number."""
    found = {name(method): method for method in table["methods"]}
    found = {method: found[method] for method in PAPER if method in found and found[method]["runs"] > 1}
    tests = sorted((welch(found[one], found[other]), one, other) for one, other in combinations(found, 2))
    p = np.array([test[0] for test in tests])
    corrected = np.maximum.accumulate(p * np.arange(len(p), 0, -1)).clip(max=1)
    lines = ["| | cross-entropy | Welch's p | with Holm's correction |", "|---|---|---|---|"]
    for (p, one, other), holm in zip(tests, corrected):
        by = found[one]["cross_entropy"]["mean"] - found[other]["cross_entropy"]["mean"]
        lines.append(f"| {one} − {other} | {by:.4f} | {p:.5f} | {holm:.5f} |".replace("-0", "−0"))
    return "\n".join(lines) + "\n"


def welch(one, other):
    """The two-sided p of a difference of means with unequal variances."""
    of_each = []
    for method in (one, other):
        figure, count = method["cross_entropy"], method["runs"]
        of_each += [figure["mean"], figure["standard_error"] * count**0.5, count]
    return float(ttest_ind_from_stats(*of_each, equal_var=False).pvalue)


def name(method):
    return method["method"] + (ATTRIBUTES if method.get("attributes") and method["method"] != "match" else "")


def between(found, metric, first, second):
    for one in found:
        if (one["metric"], one["first"], one["second"]) == (metric, first, second):
            return one
        if (one["metric"], one["first"], one["second"]) == (metric, second, first):
            return one | {"difference": -one["difference"], "low": -one["high"], "high": -one["low"]}
    raise SystemExit(f"the file has no difference of {first} and {second}")


def context(runs):
    """The gain from the context in nats by segment: none minus gsu, means over seeds."""
    if not {"none", "gsu"} <= {run.name for run in runs}:
        raise SystemExit("the gain from the context is none minus gsu: a run of each is needed")
    text = []
    bys = dict.fromkeys(part["by"] for part in runs[0].evaluation["segments"])
    gains = {by: gain(runs, by) for by in bys}
    for title, by in (("By the missing article's type", "type"), ("By customer", "customer"), ("By length", "articles")):
        parts = sorted(gains[by].items(), key=lambda part: -part[1][0])
        shown = parts if len(parts) <= 10 else parts[:5] + parts[-5:]
        rows = [f"| {value} | {slots} | {nats:.3f} | {points:.2f} |" for value, (nats, points, slots) in shown]
        text += [f"{title}:\n", "| | slots | nats | points of recall@1 |", "|---|---|---|---|", *rows, ""]
    features = [by for by in bys if by not in ("type", "customer", "articles")]
    parts = [part for by in features for part in gains[by].values()]
    whole = sum(slots for _, _, slots in gains["customer"].values())
    rows = []
    for label, low, high in (("under 1 %", 0, 0.01), ("1 to 5 %", 0.01, 0.05), ("5 to 20 %", 0.05, 0.2), ("over 20 %", 0.2, 2)):
        own = [part for part in parts if low * whole <= part[2] < high * whole]
        slots = sum(part[2] for part in own)
        if slots:
            nats, points = (sum(part[at] * part[2] for part in own) / slots for at in (0, 1))
            rows.append(f"| {label} | {len(own)} | {nats:.3f} | {points:.2f} |")
    head = ["By how many slots share a feature's value:\n", "| share of the slots | values | nats | points of recall@1 |"]
    return "\n".join(text + head + ["|---|---|---|---|", *rows, ""])


def gain(runs, by):
    """By value: nats, points of recall@1, slots."""
    gains = {}
    of = {wanted: [run.segments(by) for run in runs if run.name == wanted] for wanted in ("none", "gsu")}
    for value, summary in of["none"][0].items():
        mean = {
            (wanted, metric): sum(part[value][metric]["mean"] for part in parts) / len(parts)
            for wanted, parts in of.items()
            for metric in ("cross_entropy", "recall_at_1")
        }
        nats = mean["none", "cross_entropy"] - mean["gsu", "cross_entropy"]
        points = 100 * (mean["gsu", "recall_at_1"] - mean["none", "recall_at_1"])
        gains[value] = (nats, points, summary["slots"])
    return gains


def calibration(runs):
    lines = ["| tenth of the answers, by confidence | " + " | ".join(firsts(runs)) + " |"]
    lines.append("|---|" + "---|" * len(firsts(runs)))
    for at in range(10):
        bins = [run.evaluation["calibration"]["bins"][at] for run in firsts(runs).values()]
        cells = [f"{100 * one['confidence']:.1f} → {100 * one['accuracy']:.1f}" for one in bins]
        lines.append(f"| {at + 1} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def firsts(runs):
    """The first seed of each method."""
    return {run.name: run for run in reversed(runs) if run.seed == 1}


def cost(runs):
    lines = ["| method | learning rate | features' scale | seeds | best epochs | of | outfits/s, best epoch | hours a run |", "|---|---|---|---|---|---|---|---|"]
    for method in dict.fromkeys(run.name for run in runs):
        own = [run for run in runs if run.name == method]
        best = [max(epoch["epoch"] for epoch in run.epochs if epoch["best"]) for run in own]
        fastest = max(epoch["outfits_per_second"] for run in own for epoch in run.epochs)
        hours = sum(epoch["seconds"] for run in own for epoch in run.epochs) / 3600 / len(own)
        epochs = ", ".join(str(len(run.epochs)) for run in own)
        seeds, best = ", ".join(str(run.seed) for run in own), ", ".join(map(str, best))
        lines.append(f"| {method} | {own[0].rate} | {own[0].scale} | {seeds} | {best} | {epochs} | {fastest:.0f} | {hours:.2f} |")
    return "\n".join(lines) + "\n"


def searched(runs):
    """The mean over seeds of the best cross-entropy on the development split, by method and rate."""
    chosen = json.loads((runs / "settings.json").read_text())
    found = {}
    for folder in runs.glob("search/*"):
        if (folder / "done").exists():
            method, rate, _ = re.fullmatch(r"([a-z-]+)-([\d.]+)-(\d+)", folder.name).groups()
            best = min(epoch["development"]["cross_entropy"] for epoch in epochs(folder))
            found.setdefault((method, rate), []).append(best)
    rates = sorted({rate for _, rate in found})
    lines = [f"| learning rate | {' | '.join(rates)} |", "|---|" + "---|" * len(rates)]
    for method, best in chosen.items():
        means = {rate: sum(values) / len(values) for rate in rates if (values := found.get((method, rate)))}
        cells = [f"{means[rate]:.3f}" if rate in means else "" for rate in rates]
        lines.append(f"| {method} | {' | '.join(f'**{c}**' if r == best else c for r, c in zip(rates, cells))} |")
    return "\n".join(lines) + "\n"


def draw(curves, image):
    """Development cross-entropy by epoch, the first seed of each method, named where each curve ends."""
    rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "curves"})
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    axes = figure.subplots()
    plains = sorted({method.removesuffix(ATTRIBUTES) for method in curves})
    for method, line in sorted(curves.items(), key=lambda curve: -curve[1][-1]):
        plain = method.removesuffix(ATTRIBUTES)
        style = {"color": f"C{plains.index(plain)}", "linestyle": "-" if method == plain else "--"}
        axes.plot(range(1, len(line) + 1), np.array(line, float), label=f"{method} {line[-1]:.3f}", **style)
    # The first epochs are all similar and far above the rest.
    axes.set(ylim=(None, max(max(line[2:]) for line in curves.values())), xlabel="epoch", ylabel="cross-entropy, development split")
    axes.grid(axis="y", color="#e5e7eb")
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(image, format="svg", metadata={"Date": None, "Title": "Cross-entropy on the development split by epoch"})


main()
