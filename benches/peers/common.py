"""Shared by both peers: the model, the articles and the customers, as a user of ONNX Runtime would keep them.

A request is `POST /complete` with {"customer", "outfit": [id | null …], "k"}, as Atelier takes it; an answer has the
best k articles that are not in the outfit, with their probabilities. No filters, no attributes, no database:
customers are encoded beforehand, so the peers have less to do than the service that they stand beside.
"""

import json
import os
from pathlib import Path

# ONNX Runtime reads it when it is imported, and sends telemetry without it.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime


class Model:
    def __init__(self, release: str, whole: str, method: str, threads: int):
        folder = Path(release)
        with open(folder / "articles.jsonl", encoding="utf-8") as file:
            self.ids = [json.loads(line)["id"] for line in file]
        self.index = {article: place for place, article in enumerate(self.ids)}
        self.customers = {}
        with open(folder.parent / "encoded.jsonl", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                self.customers[row["id"]] = row["features"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(
            str(Path(whole) / f"{method}.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def complete(self, requests: list[dict]) -> list[dict]:
        """Answers all requests in one run; shorter outfits are padded."""
        blank, padding = len(self.ids), len(self.ids) + 1
        slots = max(len(request["outfit"]) for request in requests)
        articles = np.full((len(requests), slots), padding, dtype=np.int64)
        blanks = np.zeros(len(requests), dtype=np.int64)
        contexts = [self.customers[request["customer"]] for request in requests]
        values = max(1, max(len(given) for context in contexts for given in context))
        features = np.zeros((len(requests), len(contexts[0]), values), dtype=np.int64)
        for row, (request, context) in enumerate(zip(requests, contexts)):
            for place, article in enumerate(request["outfit"]):
                articles[row, place] = blank if article is None else self.index[article]
            blanks[row] = request["outfit"].index(None)
            for place, given in enumerate(context):
                features[row, place, : len(given)] = given
        inputs = {"articles": articles, "blank": blanks, "features": features}
        logits = self.session.run(["logits"], inputs)[0]
        return [self.answer(*pair) for pair in zip(requests, logits)]

    def answer(self, request: dict, logits: np.ndarray) -> dict:
        exponentials = np.exp(logits - logits.max())
        total = exponentials.sum()
        taken = [self.index[article] for article in request["outfit"] if article is not None]
        logits[taken] = -np.inf
        k = request["k"]
        best = np.argpartition(logits, -k)[-k:]
        best = best[np.argsort(-logits[best])]
        suggestions = [
            {"rank": rank + 1, "article": {"id": self.ids[place]}, "probability": float(exponentials[place] / total)}
            for rank, place in enumerate(best)
        ]
        admissible = len(self.ids) - len(set(taken))
        return {"blanks": [{"admissible": admissible, "suggestions": suggestions}], "warnings": []}
