"""Orders of a made shop whose stylists' outfits are known: do orders teach what the outfits teach?

    atelier-training synthesise --articles 1000 --customers 1500 --outfits 6000 --validation 600 --out data/stylists
    python3 training/research/orders.py make data/stylists theirs --behaviour outfits
    atelier-training import theirs --orders theirs/orders.csv --no-history --out data/bought
    python3 training/research/orders.py judge data/bought data/stylists data/by-orders
    python3 training/research/orders.py judge data/stylists data/stylists data/by-stylists

`make` lets the customers of a synthetic world order, over a year, from the outfits that they were sent, and writes
articles.jsonl, customers.jsonl, schema.toml and orders.csv. No order looks into the validation split. The same arguments write the
same bytes. Behaviours, each with less of the outfits in it:

- outfits: keeps half of an outfit's pieces, in one order or in two within ten days
- mixed: the same, but one piece in three is returned, every second order also has an article that has nothing to do with it (a
  gift, a bargain: by popularity), and every outfit is followed by a refill
- refills: of an outfit one piece in four is kept, and two refills follow

A refill is two or three articles of the type of an earlier piece. `judge` makes a data folder that learns from the outfits of the
first one, and whose validation split is the second one's: the stylists' outfits that no customer ordered from. It leaves out
occasions, which orders do not have.
"""

import argparse
import csv
import datetime
import json
import pathlib
import random
import shutil

BEHAVIOURS = {
    # The share of pieces kept, of pieces returned, the chance of a stranger in an order, and refills after an outfit.
    "outfits": (0.5, 0.0, 0.0, 0),
    "mixed": (0.75, 1 / 3, 0.5, 1),
    "refills": (0.25, 0.1, 0.5, 2),
}
TABLES = ["articles.jsonl", "customers.jsonl", "schema.toml"]
LIMITS = "outfit = {least = 2, most = 12}\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = arguments.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("make", help="orders from a world's outfits")
    verb.add_argument("world", type=pathlib.Path)
    verb.add_argument("out", type=pathlib.Path)
    verb.add_argument("--behaviour", choices=BEHAVIOURS, default="mixed")
    verb.add_argument("--seed", type=int, default=1)
    verb = verbs.add_parser("judge", help="learns from one folder's outfits, is asked about another's")
    verb.add_argument("learned", type=pathlib.Path)
    verb.add_argument("world", type=pathlib.Path)
    verb.add_argument("out", type=pathlib.Path)
    arguments = arguments.parse_args()
    make(arguments) if arguments.verb == "make" else judge(arguments)


def rows(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def make(arguments):
    kept, returned, stranger, refills = BEHAVIOURS[arguments.behaviour]
    draw = random.Random(arguments.seed)
    types = {article["id"]: article["type"] for article in rows(arguments.world / "articles.jsonl")}
    of_type = {}
    for article, kind in types.items():
        of_type.setdefault(kind, []).append(article)
    sent = [outfit for outfit in rows(arguments.world / "outfits.jsonl") if outfit["split"] == "train"]
    worn = [article for outfit in sent for article in outfit["articles"]]
    orders = []

    def order(customer, time, articles):
        if articles and draw.random() < stranger:
            articles = [*articles, draw.choice(worn)]
        orders.append((time, customer, articles))

    for outfit in sent:
        customer, time = outfit["customer"], datetime.datetime(2025, 1, 1) + datetime.timedelta(minutes=draw.randrange(525_600))
        pieces = [article for article in outfit["articles"] if draw.random() < kept]
        first = pieces if draw.random() < 0.7 else pieces[: draw.randint(0, len(pieces))]
        order(customer, time, first)
        order(customer, time + datetime.timedelta(days=draw.uniform(1, 10)), pieces[len(first) :])
        for number in range(refills if pieces else 0):
            basic = of_type[types[draw.choice(pieces)]]
            refill = draw.sample(basic, min(len(basic), draw.randint(2, 3)))
            order(customer, time + datetime.timedelta(days=30 * (number + 1) + draw.uniform(0, 9)), refill)
    orders = sorted(order for order in orders if order[2])
    arguments.out.mkdir(parents=True)
    for name in TABLES[:2]:
        shutil.copy(arguments.world / name, arguments.out / name)
    write_schema(arguments.world, arguments.out)
    with open(arguments.out / "orders.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["order", "customer", "article", "time", "returned"])
        for number, (time, customer, articles) in enumerate(orders, 1):
            for article in articles:
                back = "yes" if draw.random() < returned else "no"
                table.writerow([number, customer, article, time.isoformat(timespec="minutes"), back])
    print(f"{arguments.out}: {len(orders):,} orders of {len(sent):,} outfits")


def judge(arguments):
    arguments.out.mkdir(parents=True)
    for name in TABLES[:2]:
        shutil.copy(arguments.learned / name, arguments.out / name)
    write_schema(arguments.learned, arguments.out)
    learned, asked = rows(arguments.learned / "outfits.jsonl"), rows(arguments.world / "outfits.jsonl")
    if arguments.learned == arguments.world:
        learned = [outfit for outfit in learned if outfit["split"] == "train"]
    asked = [outfit for outfit in asked if outfit["split"] == "validation"]
    for outfits, split in [(learned, "train"), (asked, "validation")]:
        for outfit in outfits:
            outfit.pop("features", None)
            outfit["split"] = split
    with open(arguments.out / "outfits.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(outfit, ensure_ascii=False) + "\n" for outfit in learned + asked)
    print(f"{arguments.out}: {len(learned):,} outfits to learn from, {len(asked):,} of stylists to be asked about")


def write_schema(source, target):
    """A shop's outfits may be smaller than a stylist's."""
    lines = (source / "schema.toml").read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if not line.startswith("outfit = ")]
    lines.insert(next(at for at, line in enumerate(lines) if line.startswith("name = ")) + 1, LIMITS)
    (target / "schema.toml").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
