#!/usr/bin/env python3
"""Writes a complete release for Atelier without Atelier's training tool.

    pip install --no-deps -r docs/examples/requirements.txt
    python3 docs/examples/export_release.py models/example

To make your own release, call `write_release` with your schema, your articles in the order of the model's
vocabulary, and one ONNX model per method. The models here are tiny, with weights made by hand: an article's
vector is its style, colour and type, an outfit is the mean of its articles, and the customer's tastes are
added. docs/model-contract.md explains the rest, and how torch.onnx.export replaces `bag_of_articles`.
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
# The weight of the customer's taste relative to the outfit's look.
TASTE = 3.0

# The vocabulary: article 0 of the model is the first line of the file.
ARTICLES = [
    {"id": f"{style}-{colour}-{kind}", "type": kind, "style": style, "colour": colour, "price": 20 + 30 * TYPES.index(kind)}
    for style in STYLES
    for colour in COLOURS
    for kind in TYPES
]


def article_vectors() -> np.ndarray:
    """[V+2, d]: one row per article, then zeros for the blank and the padding, which add nothing."""
    rows = np.zeros((len(ARTICLES) + 2, len(STYLES) + len(COLOURS) + len(TYPES)), np.float32)
    for row, article in zip(rows, ARTICLES):
        row[STYLES.index(article["style"])] = 1.0
        row[len(STYLES) + COLOURS.index(article["colour"])] = 1.0
        row[len(STYLES) + len(COLOURS) + TYPES.index(article["type"])] = 1.0
    return rows


def feature_vectors() -> np.ndarray:
    """[features, rows, d]: all features' tables, padded to the longest; row 0 is "not given"."""
    longest = 1 + max(len(values) for values in FEATURES)
    tables = np.zeros((len(FEATURES), longest, article_vectors().shape[1]), np.float32)
    for place in range(len(STYLES)):
        tables[0, 1 + place, place] = TASTE
    for place in range(len(COLOURS)):
        tables[1, 1 + place, len(STYLES) + place] = TASTE
    return tables


def bag_of_articles(personal: bool) -> ModelProto:
    """A method as an ONNX graph, with or without the customer's features."""
    count, width = len(ARTICLES), article_vectors().shape[1]
    # A good article repeats the outfit's style and colours, with another type.
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
        # Do not count the blank (V) and the padding (V+1).
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
    # A bag has no positions, so `blank` is not used, but it must be declared.
    inputs = [int64_input("articles", ["batch", "slots"]), int64_input("blank", ["batch"])]
    if personal:
        inputs.append(int64_input("features", ["batch", len(FEATURES), "values"]))
        tables = feature_vectors()
        # All tables as one, and the offset of each feature in it.
        weights["features.weight"] = tables.reshape(-1, width)
        weights["begins"] = (np.arange(len(FEATURES), dtype=np.int64) * tables.shape[1]).reshape(1, -1, 1)
        weights["zero"] = np.array(0, np.int64)
        # A value of 0 means none: it is not counted, and its row 0 is zero here. A model that learns row 0 must use
        # it only for a feature without any value.
        nodes[-1:-1] = [
            node("Greater", ["features", "zero"], ["is_given"]),
            node("Cast", ["is_given"], ["given"], to=TensorProto.FLOAT),
            node("ReduceSum", ["given", "axis_2"], ["given_count"], keepdims=1),
            node("Max", ["given_count", "one"], ["given_divisor"]),
            node("Add", ["features", "begins"], ["taste_rows"]),
            node("Gather", ["features.weight", "taste_rows"], ["tastes"]),
            node("ReduceSum", ["tastes", "axis_2"], ["tastes_sum"], keepdims=0),
            node("Div", ["tastes_sum", "given_divisor"], ["tastes_mean"]),
            node("ReduceSum", ["tastes_mean", "axis_1"], ["customer"], keepdims=0),
            node("Add", ["outfit_hidden", "customer"], ["hidden"]),
        ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", count])
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "bag_of_articles", inputs, [logits], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def int64_input(name: str, axes: list):
    """An int64 input; an axis with a name instead of a length is dynamic."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def parameters(model: ModelProto) -> int:
    """Counts as the paper does: without the embeddings of articles and features, and the last dense layer."""
    left_out = ("articles.", "features.", "vocabulary")
    floats = [tensor for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT and tensor.dims]
    return sum(int(np.prod(tensor.dims)) for tensor in floats if not tensor.name.startswith(left_out))


def write_release(
    folder: Path, models: dict, default: str, schema: str, articles: list, more: dict = {}, fields: dict = {}
) -> None:
    """Writes a release named after its folder. `models` maps methods (none, c, np, gs, gsu, …) to models, `more` the names
    of further files to their contents; `fields` are added to the manifest."""
    if folder.exists():
        sys.exit(f"{folder} is there already: a release never changes, so name another")
    # Use a hidden name until it is complete. Atelier lists folders with a release.json, which is written last.
    work = folder.with_name(f".{folder.name}.new")
    work.mkdir(parents=True)
    methods = []
    for method, model in models.items():
        counted = parameters(model)
        helper.set_model_props(model, {"method": method, "release": folder.name, "parameters": str(counted)})
        (work / f"{method}.onnx").write_bytes(model.SerializeToString())
        methods.append({"method": method, "file": f"{method}.onnx", "parameters": counted, "metrics": {}})
        if f"{method}.safetensors" in more:
            methods[-1]["tables"] = f"{method}.safetensors"
    for name, content in more.items():
        (work / name).write_bytes(content)
    (work / "schema.toml").write_text(schema, encoding="utf-8")
    lines = "".join(json.dumps(article, ensure_ascii=False) + "\n" for article in articles)
    (work / "articles.jsonl").write_text(lines, encoding="utf-8")
    manifest = {
        "format": 1,
        "name": folder.name,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commands": [" ".join(["python3", *sys.argv])],
        # A digest of the training data distinguishes releases trained on other data.
        "data": {"name": "by hand", "fingerprint": hashlib.sha256(lines.encode()).hexdigest()},
        "schema": "schema.toml",
        "articles": "articles.jsonl",
        "default_method": default,
        "methods": methods,
        "files": {path.name: entry(path) for path in sorted(work.iterdir())},
        **fields,
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
