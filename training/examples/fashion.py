"""Two public sets of real outfits as a shop's own files, for `atelier-training import`.

    git clone https://github.com/ivan-serrano-hernandez/hackathon-Mango_Challenge
    python3 training/examples/fashion.py mango hackathon-Mango_Challenge theirs/mango
    git clone https://github.com/BundleRec/bundle_recommendation
    python3 training/examples/fashion.py bundles bundle_recommendation theirs/bundles

mango: outfits of a fashion house, made by its stylists, with attributes and without customers (a datathon's data).
bundles: clothes that one person bought in a session and that annotators saw as belonging together, with titles and buyers.

Neither repository has a licence: nothing of them is in this one, and whoever publishes figures or models should ask first.
Needs no packages.
"""

import argparse
import collections
import csv
import json
import pathlib

# The columns of Mango's products, by our names. `type` is what a stylist would call the article.
MANGO = {
    "type": "des_product_type",
    "family": "des_product_family",
    "group": "des_product_aggregated_family",
    "category": "des_product_category",
    "colour": "des_agrup_color_eng",
    "shade": "des_color_specification_esp",
    "fabric": "des_fabric",
    "line": "des_line",
    "gender": "des_sex",
    "age": "des_age",
}
# Where nothing is known of customers, a context has one value, and conditioned methods learn nothing from it.
NOBODY = '[[feature]]\nname = "who"\nkind = "category"\nvalues = ["unknown"]\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=("mango", "bundles"))
    parser.add_argument("clone", type=pathlib.Path, help="the clone of the set's repository")
    parser.add_argument("out", type=pathlib.Path, help="the folder to write")
    arguments = parser.parse_args()
    read = mango if arguments.set == "mango" else bundles
    articles, customers, outfits, schema = read(arguments.clone)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, rows in ("articles", articles), ("customers", customers), ("outfits", outfits):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (arguments.out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (arguments.out / "schema.toml").write_text(schema, encoding="utf-8")
    print(f"{arguments.out}: {len(articles)} articles, {len(customers)} customers, {len(outfits)} outfits")


def mango(clone):
    folder = clone / "datathon/dataset"
    products = table(folder / "product_data.csv")
    articles = []
    for row in products:
        known = {ours: row[theirs] for ours, theirs in MANGO.items() if row[theirs]}
        # Articles of one model differ in colour.
        articles.append({"id": row["cod_modelo_color"], "model": row["cod_modelo_color"].split("-")[0], **known})
    worn = collections.defaultdict(dict)
    for row in table(folder / "outfit_data.csv"):
        worn[row["cod_outfit"]][row["cod_modelo_color"]] = None
    outfits = [{"customer": "anyone", "articles": list(ids)} for ids in worn.values() if len(ids) >= 2]
    schema = 'name = "mango-1"\noutfit = {least = 2, most = 12}\n' + NOBODY
    return articles, [{"id": "anyone", "features": {}}], outfits, schema


def bundles(clone):
    folder = clone / "dataset/clothing"
    titles = {row["item ID"]: row["titles"] for row in table(folder / "item_titles.csv")}
    paths = {row["item ID"]: category(row["categories"]) for row in table(folder / "item_categories.csv")}
    items = collections.defaultdict(dict)
    for row in table(folder / "bundle_item.csv"):
        items[row["bundle ID"]][row["item ID"]] = None
    buyers = {row["bundle ID"]: row["user ID"] for row in table(folder / "user_bundle.csv")}
    outfits, used = [], set()
    for bundle, ids in items.items():
        if len(ids) >= 2 and bundle in buyers:
            outfits.append({"customer": f"u-{buyers[bundle]}", "articles": [f"i-{item}" for item in ids]})
            used.update(ids)
    articles = []
    for item in sorted(used, key=int):
        path = paths.get(item) or ["other"]
        row = {"id": f"i-{item}", "type": path[-1], "department": path[0], "category": path[min(1, len(path) - 1)]}
        title = titles.get(item, "").strip()
        if title:
            # Amazon's titles begin with the brand.
            row.update(name=title, brand=title.split()[0])
        articles.append(row)
    customers = [{"id": id, "features": {}} for id in sorted({outfit["customer"] for outfit in outfits})]
    schema = 'name = "bundles-1"\noutfit = {least = 2, most = 12}\n' + NOBODY
    return articles, customers, outfits, schema


def category(text):
    """The longest path of "[[Clothing, Shoes & Jewelry,Women,…],[…]]", without its root, whose name has a comma."""
    paths = text.strip("[]").split("],[")
    paths = [path.replace("Clothing, Shoes & Jewelry", "").split(",") for path in paths]
    paths = [[part.strip() for part in path if part.strip()] for path in paths]
    return max(paths, key=len)


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
