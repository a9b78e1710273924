#!/usr/bin/env python3
"""Writes a release of format 2, whose model suggests articles that it was not trained with.

    pip install --no-deps -r docs/examples/requirements.txt
    python3 docs/examples/export_open_release.py models/open

The model is that of export_release.py in two parts: the trunk as ONNX, which reads the rows of articles instead of their
numbers, and the tables that rows are made of. Here a row is the sum of one vector for each of an article's values, so an
article that is put into the catalogue later has a row, too. docs/model-contract.md explains the rest.
"""

import json
import struct
import sys
from pathlib import Path

import export_release as closed
import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

# An article's values, by attribute. They are numbered in alphabetical order of attributes, then of words.
VALUES = {"colour": sorted(closed.COLOURS), "style": sorted(closed.STYLES), "type": sorted(closed.TYPES)}

# What the shop's own encoder says of an article that nobody described: here how much of each style and colour it sees.
EMBEDDED = closed.STYLES + closed.COLOURS


def projection() -> dict:
    """What the model takes of an embedding: here all of its numbers as they are."""
    return {"mean": [0.0] * len(EMBEDDED), "components": np.eye(len(EMBEDDED)).tolist()}


def value_vectors() -> np.ndarray:
    """[values, d]: each value has its own column, the same as in the closed model."""
    columns = closed.STYLES + closed.COLOURS + closed.TYPES
    words = [word for attribute in sorted(VALUES) for word in VALUES[attribute]]
    vectors = np.zeros((len(words), len(columns)), np.float32)
    for row, word in enumerate(words):
        vectors[row, columns.index(word)] = 1.0
    return vectors


def trunk() -> ModelProto:
    """Rows of visible articles and the customer's features in, the input of the last layer out."""
    width = value_vectors().shape[1]
    whole = closed.bag_of_articles(personal=True)
    nodes, node = list(whole.graph.node), helper.make_node
    # In `kinds` 0 is an article, 1 a blank, 2 padding; the rows of the last two hold nothing.
    start = [one.output[0] for one in nodes].index("vectors_sum")
    head = [
        node("Equal", ["kinds", "article"], ["is_article"]),
        node("Cast", ["is_article"], ["visible"], to=TensorProto.FLOAT),
        node("ReduceSum", ["visible", "axis_1"], ["visible_count"], keepdims=1),
        node("Max", ["visible_count", "one"], ["divisor"]),
        node("Unsqueeze", ["visible", "axis_2"], ["visible_column"]),
        node("Mul", ["rows", "visible_column"], ["vectors"]),
    ]
    nodes = head + [one for one in nodes[start:] if one.output[0] != "logits"]
    left_out = ("articles.weight", "vocabulary.weight", "vocabulary")
    weights = [tensor for tensor in whole.graph.initializer if tensor.name not in left_out]
    weights.append(numpy_helper.from_array(np.array(0, np.int64), "article"))
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["batch", "slots", width])
    inputs = [rows, closed.int64_input("kinds", ["batch", "slots"]), *list(whole.graph.input)[1:]]
    hidden = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", width])
    graph = helper.make_graph(nodes, "bag_of_rows", inputs, [hidden], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tables() -> dict:
    """What rows of the trunk's input (`articles`) and of the last layer (`vocabulary`, `bias`) are made of."""
    vectors, count = value_vectors(), len(closed.ARTICLES)
    # An embedding says an article's style and colour, as its values would.
    seen = np.eye(len(EMBEDDED), vectors.shape[1], dtype=np.float32)
    own = np.zeros((count, vectors.shape[1]), np.float32)
    return {
        "articles.own": own,
        "articles.values": vectors,
        "articles.embedding": seen,
        "vocabulary.own": own,
        "vocabulary.values": vectors,
        "vocabulary.embedding": seen,
        "bias.own": np.zeros(count, np.float32),
        "bias.values": np.zeros(len(vectors), np.float32),
        "bias.embedding": np.zeros(len(EMBEDDED), np.float32),
    }


def safetensors(tensors: dict) -> bytes:
    """The format of Hugging Face: a header's length, the header as JSON, and the numbers."""
    header, body = {}, b""
    for name, array in tensors.items():
        data = array.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: export_open_release.py FOLDER, for instance models/open")
    model = trunk()
    checker.check_model(model, full_check=True)
    more = {
        "c.safetensors": safetensors(tables()),
        "encoder.json": json.dumps({"values": VALUES, "ranges": {}, "embedding": projection()}).encode(),
    }
    manifest = {"format": 2, "encoder": "encoder.json"}
    closed.write_release(Path(sys.argv[1]), {"c": model}, "c", closed.SCHEMA, closed.ARTICLES, more, manifest)


if __name__ == "__main__":
    main()
