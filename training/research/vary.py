#!/usr/bin/env python3
"""Makes a variant of a data folder with one difference, to find out why methods rank as they do.

    python3 training/research/vary.py --data data/fifth --shuffle-contexts --out data/fifth-shuffled
    python3 training/research/vary.py --data data/fifth --outfits 19000 --out data/fifth-less
    python3 training/research/vary.py --data data/fifth --noise 0.3 --out data/fifth-noisy
    python3 training/research/vary.py --data data/journey --withhold 0.1 --out data/journey-new
    python3 training/research/vary.py --data data/demo --groups 8 --out data/demo-groups
    python3 training/research/vary.py --data data/shop --variations 0.7 --out data/variations

--shuffle-contexts gives each outfit the customer and the occasion of another outfit in its split, which removes all
information of the context and nothing else. --outfits keeps the first N training outfits. --noise replaces this share
of the articles in training outfits by another of their type, drawn by how often outfits have it. --withhold takes this share
of all articles out of the training outfits, so that they are new to a model; outfits of fewer than the schema's least are left out. --groups
N divides the articles of each type that outfits have into N groups at random, draws a group for each outfit, and replaces each article, also in
validation outfits, with a chance of 0.8 by one of its type and the outfit's group: what latent personas should find.
planted-groups.json has the groups. --variations makes a shop with five seasons, whose stylists make this share of the outfits from one
of the thousand training outfits before by exchanging one or two articles, for the outfit's own customer. A third of the articles are
always sold, the others in their season and the next; what isn't sold is exchanged, too. An exchange takes an article of
the type, drawn by how often outfits have it. Validation is in the last season, half of which training has. Training outfits
include those that `fit` sets aside for development. Validation outfits change only with --shuffle-contexts, --groups and
--variations. The same arguments write the same bytes.
"""

import argparse
import json
import random
import shutil
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of JSON Lines")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--shuffle-contexts", action="store_true")
    what.add_argument("--outfits", type=int)
    what.add_argument("--noise", type=float)
    what.add_argument("--withhold", type=float)
    what.add_argument("--groups", type=int)
    what.add_argument("--variations", type=float)
    options = parser.parse_args()
    if options.out.exists():
        sys.exit(f"{options.out} exists; choose another folder, or remove it")
    files = {name: options.data / name for name in ("outfits.jsonl", "articles.jsonl", "customers.jsonl", "schema.toml")}
    if missing := [str(file) for file in files.values() if not file.exists()]:
        sys.exit(f"{', '.join(missing)}: missing; --data must be a folder that `synthesise --format jsonl` wrote")
    if "# Added by import" in files["schema.toml"].read_text(encoding="utf-8"):
        sys.exit(f"{options.data} has what customers had: run `import {options.data} --no-history`, vary the result, and import that")
    outfits = rows(files["outfits.jsonl"])
    draw = random.Random(options.seed)
    if options.shuffle_contexts:
        shuffle_contexts(outfits, draw)
    elif options.outfits is not None:
        outfits = fewer(outfits, options.outfits)
    elif options.withhold is not None:
        schema = tomllib.loads(files["schema.toml"].read_text(encoding="utf-8"))
        least = schema.get("outfit", {"least": 2})["least"]
        outfits = withhold(outfits, rows(files["articles.jsonl"]), options.withhold, least, draw)
    elif options.groups is not None:
        groups = plant_groups(outfits, rows(files["articles.jsonl"]), options.groups, draw)
    elif options.variations is not None:
        outfits = vary_outfits(outfits, rows(files["articles.jsonl"]), options.variations, draw)
    else:
        add_noise(outfits, rows(files["articles.jsonl"]), options.noise, draw)
    half = options.out.with_name(options.out.name + ".part")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for name in list(files)[1:]:
        shutil.copyfile(files[name], half / name)
    with open(half / "outfits.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(outfit, ensure_ascii=False, separators=(",", ":")) + "\n" for outfit in outfits)
    if options.groups is not None:
        (half / "planted-groups.json").write_text(json.dumps(groups), encoding="utf-8")
    half.rename(options.out)


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_training(outfit):
    return outfit.get("split", "train") == "train"


def shuffle_contexts(outfits, draw):
    by_split = defaultdict(list)
    for outfit in outfits:
        by_split[is_training(outfit)].append(outfit)
    for split in by_split.values():
        contexts = [(outfit["customer"], outfit.get("features", {})) for outfit in split]
        draw.shuffle(contexts)
        for outfit, (customer, features) in zip(split, contexts):
            outfit["customer"], outfit["features"] = customer, features


def fewer(outfits, wanted):
    train = [outfit for outfit in outfits if is_training(outfit)]
    if not 0 < wanted <= len(train):
        sys.exit(f"--outfits must be from 1 to {len(train)}, not {wanted}")
    return train[:wanted] + [outfit for outfit in outfits if not is_training(outfit)]


def withhold(outfits, articles, share, least, draw):
    if not 0 < share < 1:
        sys.exit(f"--withhold must be between 0 and 1, not {share}")
    new = {article["id"] for article in draw.sample(articles, round(share * len(articles)))}
    for outfit in filter(is_training, outfits):
        outfit["articles"] = [article for article in outfit["articles"] if article not in new]
    return [outfit for outfit in outfits if len(outfit["articles"]) >= least]


def plant_groups(outfits, articles, count, draw):
    if count < 2:
        sys.exit(f"--groups must be at least 2, not {count}")
    type_of = {article["id"]: article["type"] for article in articles}
    by_type = count_by_type(outfits, type_of)
    group_of, choices = {}, {}
    for kind, counts in sorted(by_type.items()):
        shuffled = sorted(counts)
        draw.shuffle(shuffled)
        for place, article in enumerate(shuffled):
            group_of[article] = place % count
        for group in range(count):
            these = [article for article in shuffled if group_of[article] == group]
            choices[kind, group] = these, [counts[article] for article in these]
    drawn = []
    for outfit in outfits:
        group = draw.randrange(count)
        drawn.append(group)
        for place, article in enumerate(outfit["articles"]):
            these, counts = choices.get((type_of[article], group), ([], []))
            if these and draw.random() < 0.8:
                (other,) = draw.choices(these, counts)
                if other not in outfit["articles"]:
                    outfit["articles"][place] = other
    return {"articles": group_of, "outfits": drawn}


SEASONS, RECENT = 5, 1000


def vary_outfits(outfits, articles, share, draw):
    if not 0 < share <= 1:
        sys.exit(f"--variations must be above 0 and at most 1, not {share}")
    type_of = {article["id"]: article["type"] for article in articles}
    counts = count_by_type(outfits, type_of)
    seasons = {article: None if draw.random() < 1 / 3 else draw.randrange(SEASONS) for article in type_of}
    on_sale = [{id for id, first in seasons.items() if first in (None, season, season - 1)} for season in range(SEASONS)]
    shelves = defaultdict(list)
    for season, sold in enumerate(on_sale):
        for article in filter(sold.__contains__, type_of):
            shelves[season, type_of[article]].append((article, counts[type_of[article]][article] + 0.5))
    shelves = {key: tuple(zip(*shelf)) for key, shelf in shelves.items()}
    training = [outfit for outfit in outfits if is_training(outfit)]
    validation = [outfit for outfit in outfits if not is_training(outfit)]
    made = []
    for place, outfit in enumerate(training + validation):
        season = min(SEASONS - 1, int((SEASONS - 0.5) * place / len(training)))
        worn, exchanged = outfit["articles"], set()
        if made and draw.random() < share:
            worn = list(draw.choice(made[-RECENT:]))
            exchanged = set(draw.sample(range(len(worn)), draw.choice((1, 2))))
        for slot, article in enumerate(worn):
            shelf = shelves.get((season, type_of[article]))
            if shelf and (slot in exchanged or article not in on_sale[season]):
                (other,) = draw.choices(*shelf)
                worn[slot] = article if other in worn else other
        outfit["articles"] = worn
        if place < len(training):
            made.append(worn)
    return training + validation


def count_by_type(outfits, type_of):
    counts = defaultdict(Counter)
    for outfit in filter(is_training, outfits):
        for article in outfit["articles"]:
            counts[type_of[article]][article] += 1
    return counts


def add_noise(outfits, articles, share, draw):
    if not 0 < share <= 1:
        sys.exit(f"--noise must be above 0 and at most 1, not {share}")
    type_of = {article["id"]: article["type"] for article in articles}
    kinds = {kind: (list(counts), list(counts.values())) for kind, counts in count_by_type(outfits, type_of).items()}
    for outfit in filter(is_training, outfits):
        together = outfit["articles"]
        for place, article in enumerate(together):
            if draw.random() < share:
                others, counts = kinds[type_of[article]]
                if set(others) <= set(together):
                    continue
                while (other := draw.choices(others, counts)[0]) in together:
                    pass
                together[place] = other


if __name__ == "__main__":
    main()
