#!/usr/bin/env python3
"""Writes a whole release that Atelier serves, without Atelier's own training tool.

    pip install numpy onnx
    python3 docs/examples/export_release.py models/example

What it takes to make a release of your own is `write_release`: give it your schema, your articles in the
order of the model's vocabulary, and one ONNX model a method. The models here are as small as a model can
be, with weights made by hand: an article's vector is its style, its colour and its type, an outfit is the
mean of its articles, and a customer's tastes are added to that. docs/model-contract.md explains the rest,
and where torch.onnx.export takes the place of `bag_of_articles`.
"""

import hashlib
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

STYLES = ["classic", "sporty"]
COLOURS = ["black", "blue", "red"]
TYPES = ["shirt", "trousers", "shoes", "coat"]

# The first line of every feature's table is "not given"; the values follow in this order.
SCHEMA = f"""name = "example-2"

[[feature]]
name = "style"
kind = "category"
values = {json.dumps(STYLES)}

[[feature]]
name = "preferred_colours"
kind = "set"
values = {json.dumps(COLOURS)}
"""
FEATURES = [STYLES, COLOURS]
# How much a customer's taste weighs beside the outfit's own look.
TASTE = 3.0

# The vocabulary: article 0 of the model is the first line of the file.
ARTICLES = [
    {"id": f"{style}-{colour}-{kind}", "type": kind, "style": style, "colour": colour, "price": 20 + 30 * TYPES.index(kind)}
    for style in STYLES
    for colour in COLOURS
    for kind in TYPES
]


def article_vectors() -> np.ndarray:
    """[V+2, d]: a row an article, then the blank's and the padding's, which are nought and so add nothing."""
    rows = np.zeros((len(ARTICLES) + 2, len(STYLES) + len(COLOURS) + len(TYPES)), np.float32)
    for row, article in zip(rows, ARTICLES):
        row[STYLES.index(article["style"])] = 1.0
        row[len(STYLES) + COLOURS.index(article["colour"])] = 1.0
        row[len(STYLES) + len(COLOURS) + TYPES.index(article["type"])] = 1.0
    return rows


def feature_vectors() -> np.ndarray:
    """[features, rows, d]: the tables of all features, as long as the longest; row 0 is "not given"."""
    longest = 1 + max(len(values) for values in FEATURES)
    tables = np.zeros((len(FEATURES), longest, article_vectors().shape[1]), np.float32)
    for place in range(len(STYLES)):
        tables[0, 1 + place, place] = TASTE
    for place in range(len(COLOURS)):
        tables[1, 1 + place, len(STYLES) + place] = TASTE
    return tables


def bag_of_articles(personal: bool) -> ModelProto:
    """A method as an ONNX graph: with the customer's features, or without."""
    count, width = len(ARTICLES), article_vectors().shape[1]
    # What goes with an outfit: its style and colours again, and another type.
    trunk = np.diag([2.0] * (len(STYLES) + len(COLOURS)) + [-4.0] * len(TYPES)).astype(np.float32)
    weights = {
        "articles.weight": article_vectors(),
        "trunk.weight": trunk,
        "vocabulary.weight": article_vectors()[:count].T.copy(),
        "vocabulary": np.array(count, np.int64),
        "one": np.array(1.0, np.float32),
        "axis_1": np.array([1], np.int64),
        "axis_2": np.array([2], np.int64),
    }
    node = helper.make_node
    nodes = [
        # Blank and padding are counted out: they are V and V+1.
        node("Less", ["articles", "vocabulary"], ["is_article"]),
        node("Cast", ["is_article"], ["visible"], to=TensorProto.FLOAT),
        node("ReduceSum", ["visible", "axis_1"], ["visible_count"], keepdims=1),
        node("Max", ["visible_count", "one"], ["divisor"]),
        node("Gather", ["articles.weight", "articles"], ["vectors"]),
        node("ReduceSum", ["vectors", "axis_1"], ["vectors_sum"], keepdims=0),
        node("Div", ["vectors_sum", "divisor"], ["outfit"]),
        node("MatMul", ["outfit", "trunk.weight"], ["hidden" if not personal else "outfit_hidden"]),
        node("MatMul", ["hidden", "vocabulary.weight"], ["logits"]),
    ]
    # A bag has no places, so `blank` is not used; it must be there all the same.
    inputs = [whole("articles", ["batch", "slots"]), whole("blank", ["batch"])]
    if personal:
        inputs.append(whole("features", ["batch", len(FEATURES), "values"]))
        tables = feature_vectors()
        # One table out of all, and where each feature's begins in it.
        weights["features.weight"] = tables.reshape(-1, width)
        weights["begins"] = (np.arange(len(FEATURES), dtype=np.int64) * tables.shape[1]).reshape(1, -1, 1)
        weights["nought"] = np.array(0, np.int64)
        # A value of 0 is none: it is not counted, and row 0, which it points to, is nought here. A model that
        # learns a row 0 must give it to a feature with no value at all, and to no other.
        nodes[-1:-1] = [
            node("Greater", ["features", "nought"], ["is_given"]),
            node("Cast", ["is_given"], ["given"], to=TensorProto.FLOAT),
            node("ReduceSum", ["given", "axis_2"], ["given_count"], keepdims=1),
            node("Max", ["given_count", "one"], ["given_divisor"]),
            node("Add", ["features", "begins"], ["rows"]),
            node("Gather", ["features.weight", "rows"], ["tastes"]),
            node("ReduceSum", ["tastes", "axis_2"], ["tastes_sum"], keepdims=0),
            node("Div", ["tastes_sum", "given_divisor"], ["tastes_mean"]),
            node("ReduceSum", ["tastes_mean", "axis_1"], ["customer"], keepdims=0),
            node("Add", ["outfit_hidden", "customer"], ["hidden"]),
        ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", count])
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "bag_of_articles", inputs, [logits], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def whole(name: str, axes: list):
    """An int64 input; an axis that has a name instead of a length takes any length."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def parameters(model: ModelProto) -> int:
    """As the paper counts: without the embeddings of articles and features, and without the last dense layer."""
    left_out = ("articles.", "features.", "vocabulary")
    floats = [tensor for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT and tensor.dims]
    return sum(int(np.prod(tensor.dims)) for tensor in floats if not tensor.name.startswith(left_out))


def write_release(folder: Path, models: dict, default: str, schema: str, articles: list) -> None:
    """A release whose name is its folder's. `models` is by method: none, c, np, gs, gsu, …"""
    if folder.exists():
        sys.exit(f"{folder} is there already: a release never changes, so name another")
    # Under another name until it is whole. Atelier lists what has a release.json, which is written last.
    work = folder.with_name(f".{folder.name}.new")
    work.mkdir(parents=True)
    methods = []
    for method, model in models.items():
        counted = parameters(model)
        helper.set_model_props(model, {"method": method, "release": folder.name, "parameters": str(counted)})
        (work / f"{method}.onnx").write_bytes(model.SerializeToString())
        methods.append({"method": method, "file": f"{method}.onnx", "parameters": counted, "metrics": {}})
    (work / "schema.toml").write_text(schema, encoding="utf-8")
    lines = "".join(json.dumps(article, ensure_ascii=False) + "\n" for article in articles)
    (work / "articles.jsonl").write_text(lines, encoding="utf-8")
    manifest = {
        "format": 1,
        "name": folder.name,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commands": [" ".join(["python3", *sys.argv])],
        # Where the weights come from: a digest of the training data tells releases apart that learnt from others.
        "data": {"name": "by hand", "fingerprint": hashlib.sha256(lines.encode()).hexdigest()},
        "schema": "schema.toml",
        "articles": "articles.jsonl",
        "default_method": default,
        "methods": methods,
        "files": {path.name: entry(path) for path in sorted(work.iterdir())},
    }
    (work / "release.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    work.rename(folder)


def entry(path: Path) -> dict:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: export_release.py FOLDER, for instance models/example")
    models = {"none": bag_of_articles(personal=False), "c": bag_of_articles(personal=True)}
    for model in models.values():
        checker.check_model(model, full_check=True)
    write_release(Path(sys.argv[1]), models, default="c", schema=SCHEMA, articles=ARTICLES)


if __name__ == "__main__":
    main()
