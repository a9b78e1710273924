"""A second world, deliberately unlike the fashion one: furnished rooms from a furniture shop.

    python3 training/examples/rooms.py theirs

writes a shop's own files: articles.csv, customers.jsonl, outfits.csv and schema.toml. docs/training.md continues from
there. Needs no packages; the same seed writes the same bytes.

The rules, which are not a softmax:
- A room starts with its anchor (a bed in a bedroom) and gets four to eight pieces, more if it is larger.
- A piece may be of the same series as the previous one. The probability depends on how many woods the customer likes:
  high for one, low for none or two.
- Otherwise it is drawn by liked wood, price relative to floor area, softness (children), and a long tail.
- Hard rules: no materials that the customer avoids, no leather or cane with a cat, and the widths of all pieces must
  fit along the walls, so the last pieces of a small room are narrow.
"""

import argparse
import csv
import json
import math
import pathlib
import random

WOODS = ["oak", "walnut", "birch", "pine", "black", "white"]
MATERIALS = ["wood", "glass", "leather", "cane", "felt", "cotton", "steel"]
MAKERS = ["Müßig", "Ångström", "Bœuf", "Nørre", "Żuk", "Hill"]
# By type: width range in cm, base price, possible materials.
TYPES = {
    "sofa": ((140, 280), 600, ["leather", "cotton", "felt"]),
    "armchair": ((60, 95), 250, ["leather", "cotton", "cane"]),
    "bed": ((90, 200), 450, ["wood", "steel", "cane"]),
    "table": ((60, 220), 300, ["wood", "glass", "steel"]),
    "desk": ((90, 180), 250, ["wood", "glass", "steel"]),
    "chair": ((40, 60), 90, ["wood", "cane", "felt", "steel"]),
    "shelf": ((30, 160), 150, ["wood", "glass", "steel"]),
    "wardrobe": ((80, 250), 500, ["wood", "glass"]),
    "lamp": ((15, 50), 80, ["steel", "glass", "cotton"]),
    "rug": ((0, 0), 140, ["cotton", "felt"]),
    "picture": ((0, 0), 40, ["wood", "glass"]),
    "mirror": ((0, 60), 90, ["glass", "wood"]),
}
ROOMS = {
    "living room": ["sofa", "table", "rug", "lamp", "shelf", "armchair", "picture", "mirror"],
    "bedroom": ["bed", "wardrobe", "lamp", "rug", "mirror", "chair", "picture", "shelf"],
    "study": ["desk", "chair", "lamp", "shelf", "picture", "rug", "armchair", "table"],
    "dining room": ["table", "chair", "lamp", "rug", "shelf", "picture", "mirror", "armchair"],
}
SCHEMA = f"""name = "rooms-6"

[[feature]]
name = "household"
label = "people in the household"
kind = "category"
values = ["1", "2", "3", "4"]

[[feature]]
name = "lives_with"
kind = "set"
values = ["cat", "dog", "children"]

[[feature]]
name = "likes"
label = "liked woods"
kind = "set"
values = {json.dumps(WOODS)}

[[feature]]
name = "avoids"
kind = "set"
values = {json.dumps(MATERIALS)}
excludes = "material"

[[feature]]
name = "floor_area"
kind = "number"
edges = [9, 12, 16, 20, 25, 32]
unit = "m²"

[[feature]]
name = "room"
kind = "category"
values = {json.dumps(list(ROOMS))}
"""


def articles(chance, count):
    """Makes series of one maker and one wood, each with some of the types."""
    made = []
    while len(made) < count:
        series = f"{chance.choice('BDFGKLMRSTV')}{chance.choice('aeiouäöü')}{chance.choice('lmnrst')}{chance.choice('aeo')}-{len(made)}"
        maker, wood, level = chance.choice(MAKERS), chance.choice(WOODS), math.exp(chance.gauss(0, 0.4))
        for kind in chance.sample(list(TYPES), chance.randint(5, 10)):
            (least, most), price, materials = TYPES[kind]
            made.append(
                {
                    "id": f"möbel-{len(made) + 1:04}",
                    "type": kind,
                    "series": series,
                    "maker": maker,
                    "wood": wood,
                    "material": chance.choice(materials),
                    "width_cm": chance.randint(least, most),
                    "price": round(price * level * math.exp(chance.gauss(0, 0.2)), 2),
                    "sought": 1 / (1 + chance.randrange(40)),
                }
            )
    return made[:count]


def customer(chance, number):
    household = chance.choices([1, 2, 3, 4], [4, 4, 2, 2])[0]
    features = {"household": household, "floor_area": round(chance.gauss(11 + 4 * household, 4), 1)}
    likes = chance.sample(WOODS, chance.choices([0, 1, 2], [2, 5, 3])[0])
    avoids = chance.sample(MATERIALS[1:4], chance.choices([0, 1], [3, 2])[0])
    others = [one for one, share in [("cat", 0.25), ("dog", 0.2)] if chance.random() < share]
    if household > 2 and chance.random() < 0.8:
        others.append("children")
    features.update({"likes": likes, "avoids": avoids, "lives_with": others})
    features["floor_area"] = max(6.0, features["floor_area"])
    known = {name: value for name, value in features.items() if chance.random() > 0.05}
    return {"id": f"käufer-{number:05}", "features": known}, features


def furnish(chance, by_type, who, room):
    """The pieces of one room, or None if too few fit."""
    area, likes = who["floor_area"], who["likes"]
    matching = {0: 0.25, 1: 0.75, 2: 0.4}[len(likes)]
    never = set(who["avoids"]) | ({"leather", "cane"} if "cat" in who["lives_with"] else set())
    anchor, *rest = ROOMS[room]
    wanted = min(8, max(4, round(chance.gauss(3 + area / 7, 1))))
    wall, pieces = 220 + 22 * area, []
    for kind in [anchor] + chance.sample(rest, len(rest)):
        fitting = [a for a in by_type[kind] if a["material"] not in never and a["width_cm"] <= wall]
        same = [a for a in fitting if pieces and a["series"] == pieces[-1]["series"]]
        if not fitting or len(pieces) == wanted:
            continue
        if same and chance.random() < matching:
            piece = chance.choice(same)
        else:
            weights = [weight(a, who, TYPES[kind][1]) for a in fitting]
            piece = chance.choices(fitting, weights)[0]
        wall -= piece["width_cm"]
        pieces.append(piece)
    return pieces if len(pieces) >= 4 else None


def weight(article, who, usual):
    level = math.log(article["price"] / usual) - (who["floor_area"] - 18) / 25
    liked = 5.0 if article["wood"] in who["likes"] else 1.0
    soft = 3.0 if "children" in who["lives_with"] and article["material"] in ("felt", "cotton") else 1.0
    return article["sought"] * liked * soft * math.exp(-2.0 * level * level)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--articles", type=int, default=400)
    parser.add_argument("--customers", type=int, default=3000)
    parser.add_argument("--rooms", type=int, default=20000)
    parser.add_argument("--validation", type=int, default=1000)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    catalogue = articles(chance, options.articles)
    by_type = {kind: [a for a in catalogue if a["type"] == kind] for kind in TYPES}
    people = [customer(chance, number) for number in range(1, options.customers + 1)]
    # The last tenth are new customers, with rooms in the validation split only.
    known = len(people) * 9 // 10
    rooms = []
    while len(rooms) < options.rooms + options.validation:
        validation = len(rooms) >= options.rooms
        new = validation and chance.random() < 0.3
        row, who = people[chance.randrange(known, len(people)) if new else chance.randrange(known)]
        room = chance.choice(list(ROOMS))
        pieces = furnish(chance, by_type, who, room)
        if pieces:
            ids = [piece["id"] for piece in chance.sample(pieces, len(pieces))]
            rooms.append([row["id"], "|".join(ids), "validation" if validation else "train", room])

    options.out.mkdir(parents=True, exist_ok=True)
    columns = [name for name in catalogue[0] if name != "sought"]
    with open(options.out / "articles.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns, extrasaction="ignore")
        table.writeheader()
        table.writerows(catalogue)
    with open(options.out / "customers.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row, _ in people)
    with open(options.out / "outfits.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["customer", "articles", "split", "room"])
        table.writerows(rooms)
    (options.out / "schema.toml").write_text(SCHEMA, encoding="utf-8")


if __name__ == "__main__":
    main()
