#!/usr/bin/env python3
"""Prints Markdown about a grid of runs, beyond what `table` prints.

    python3 training/results.py --runs runs/fifth runs/attributes --all all.json --curves curves.svg > docs/results/fifth.md

Run it after `atelier-training evaluate --runs … --out all.json`. It covers differences between neighbours in the
ranking, where the context helps, calibration, cost of training, the search of `table1.py`, and the development curves
as SVG. Needs Python 3.10 and no packages.
"""

import argparse
import json
import re
from math import exp, lgamma
from pathlib import Path
from statistics import variance

ATTRIBUTES = " + attributes"
PAPER = ["none", "c", "np", "gs", "gsu"]
CONTEXTLESS = {"none", "latent", "universal", "latent-universal"}
COLOURS = ["#8a8f98", "#c2410c", "#0f766e", "#1d4ed8", "#7c3aed", "#a16207", "#be185d", "#15803d", "#0369a1", "#111827"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="folders that contain run folders")
    parser.add_argument("--all", type=Path, required=True, help="the file written by `evaluate --out`")
    parser.add_argument("--curves", type=Path, help="write the development curves here as SVG")
    options = parser.parse_args()
    figures = json.loads(options.all.read_text())
    folders = [run for runs in options.runs for run in sorted(runs.iterdir()) if (run / "evaluation.json").exists()]
    runs = [Run(folder) for folder in folders]
    print(differences(figures))
    print(seeds(runs))
    print(context(runs))
    print(calibration(runs))
    print(cost(runs))
    for runs_folder in options.runs:
        if (runs_folder / "settings.json").exists():
            print(searched(runs_folder))
    if options.curves:
        options.curves.write_text(curves(runs))


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
    ours = [method for method in ranking if method.startswith("gsx") or method == "match" or method.endswith(ATTRIBUTES)]
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


def seeds(runs):
    """Pairs of the paper's methods by their seeds: Welch's test, with Holm's correction for their number."""
    found = {}
    for run in runs:
        if run.name in PAPER:
            found.setdefault(run.name, []).append(run.evaluation["summary"]["cross_entropy"]["mean"])
    found = {method: values for method, values in found.items() if len(values) > 1}
    pairs = [(one, other) for place, one in enumerate(found) for other in list(found)[place + 1 :]]
    tests = sorted((welch(found[one], found[other]), one, other) for one, other in pairs)
    lines = ["| | cross-entropy | Welch's p | with Holm's correction |", "|---|---|---|---|"]
    corrected = 0.0
    for place, (p, one, other) in enumerate(tests):
        corrected = min(1.0, max(corrected, p * (len(tests) - place)))
        by = sum(found[one]) / len(found[one]) - sum(found[other]) / len(found[other])
        lines.append(f"| {one} − {other} | {by:.4f} | {p:.5f} | {corrected:.5f} |".replace("-0", "−0"))
    return "\n".join(lines) + "\n"


def welch(one, other):
    """The two-sided p of a difference of means with unequal variances."""
    parts = [variance(values) / len(values) for values in (one, other)]
    if sum(parts) == 0:
        return 1.0
    t2 = (sum(one) / len(one) - sum(other) / len(other)) ** 2 / sum(parts)
    freedom = sum(parts) ** 2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (one, other)))
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t2))


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function, by its integral in steps: p of Student's t."""
    if x >= 1:
        return 1.0
    steps = 20_000
    # With t = x·u² the integrand has no pole at 0 for a of at least a half.
    total = sum(2 * u ** (2 * a - 1) * (1 - x * u * u) ** (b - 1) for u in ((step + 0.5) / steps for step in range(steps)))
    return min(1.0, x**a * total / steps * exp(lgamma(a + b) - lgamma(a) - lgamma(b)))


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


def curves(runs):
    """Development cross-entropy by epoch, the first seed of each method."""
    width, height, left, right, top, bottom = 760, 420, 48, 170, 16, 36
    lines = {method: [epoch["development"]["cross_entropy"] for epoch in run.epochs] for method, run in firsts(runs).items()}
    most_epochs = max(map(len, lines.values()))
    low = min(min(line) for line in lines.values()) - 0.05
    # The first epochs are all similar and far above the rest.
    high = max(max(line[2:]) for line in lines.values())
    plains = sorted({method.removesuffix(ATTRIBUTES) for method in lines})

    def x(epoch):
        return left + (width - left - right) * (epoch - 1) / max(most_epochs - 1, 1)

    def y(value):
        return top + (height - top - bottom) * (high - value) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        "<title>Cross-entropy on the development split by epoch</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for tick in range(int(low * 2) + 1, int(high * 2) + 1):
        at = y(tick / 2)
        parts.append(f'<path d="M{left} {at:.1f}H{width - right}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#374151">{tick / 2:.1f}</text>')
    for epoch in range(5, most_epochs + 1, 5):
        parts.append(f'<text x="{x(epoch):.1f}" y="{height - 14}" text-anchor="middle" fill="#374151">{epoch}</text>')
    ends = sorted(lines, key=lambda method: lines[method][-1])
    for place, method in enumerate(ends):
        line, plain = lines[method], method.removesuffix(ATTRIBUTES)
        colour = COLOURS[plains.index(plain) % len(COLOURS)]
        dashes = "" if method == plain else ' stroke-dasharray="5 3"'
        points = " ".join(f"{x(epoch):.1f},{y(value):.1f}" for epoch, value in enumerate(line, 1) if value <= high)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
        parts.append(f'<text x="{width - right + 8}" y="{label(place, len(ends), top, height - bottom):.1f}" fill="{colour}">{method} {line[-1]:.3f}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def label(place, count, top, bottom):
    """Names are in the order of the ranking, the best lowest, as the curves end."""
    return bottom - place * min(18, (bottom - top) / max(count, 1)) - 4


main()
