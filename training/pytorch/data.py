"""Batches from the file that `atelier-training fit --prepare` writes."""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from safetensors.numpy import load_file

from model import Attributes


@dataclass
class Batch:
    slots: torch.Tensor
    features: torch.Tensor
    blank: torch.Tensor
    target: torch.Tensor
    weight: torch.Tensor

    def to(self, device) -> "Batch":
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in vars(self).values()))

    def part(self, rank: int, ranks: int) -> "Batch":
        return Batch(*(tensor[rank::ranks] for tensor in vars(self).values()))

    def __len__(self) -> int:
        return len(self.target)


class Split:
    """The outfits of one split, padded."""

    def __init__(self, file: dict, name: str, articles: int, features: int):
        self.articles = articles
        self.slots = padded(file[f"{name}.articles"], file[f"{name}.starts"], articles + 1)
        self.lengths = np.diff(file[f"{name}.starts"])
        values = padded(file[f"{name}.features"], file[f"{name}.feature_starts"], 0)
        self.features = values.reshape(len(self.slots), features, -1)
        self.task_weights = file["task_weights"]

    def __len__(self) -> int:
        return len(self.slots)

    def batch(self, outfits: np.ndarray, blanks: np.ndarray, others: np.ndarray | None = None) -> Batch:
        """Blanks a slot of each outfit, and those of `others` that are not -1. The outfits may repeat."""
        slots = self.slots[outfits]
        target = slots[np.arange(len(slots)), blanks]
        slots[np.arange(len(slots)), blanks] = self.articles
        if others is not None:
            second = np.flatnonzero(others >= 0)
            slots[second, others[second]] = self.articles
        longest = self.lengths[outfits].max()
        weight = torch.from_numpy(self.task_weights[target])
        arrays = [slots[:, :longest], self.features[outfits], blanks, target]
        return Batch(*(torch.from_numpy(array.astype(np.int64)) for array in arrays), weight)

    def every_slot(self, size: int):
        """Batches in which every slot of every outfit is asked for in turn."""
        outfits = np.repeat(np.arange(len(self)), self.lengths)
        blanks = np.concatenate([np.arange(length) for length in self.lengths])
        for start in range(0, len(outfits), size):
            yield self.batch(outfits[start : start + size], blanks[start : start + size])


class Data:
    def __init__(self, path, articles: int, features: int):
        file = load_file(path)
        self.training = Split(file, "training", articles, features)
        self.development = Split(file, "development", articles, features)
        self.attributes = attributes(file, articles) if "values" in file else None


def attributes(file: dict, articles: int) -> Attributes:
    starts, items = (torch.from_numpy(file[name].astype(np.int64)) for name in ("value_starts", "values"))
    factors = torch.from_numpy(file["value_factors"])[:, None]
    with warnings.catch_warnings():
        # PyTorch says that such tensors are new.
        warnings.simplefilter("ignore", UserWarning)
        rows = torch.sparse_csr_tensor(starts, items, torch.ones(len(items)), size=(articles, len(factors)))
    embeddings = torch.from_numpy(file["embeddings"]).view(articles, -1) if "embeddings" in file else None
    return Attributes(rows, factors, embeddings)


class Masks:
    """What each step sees: it depends on the seed and the epoch alone, so that several processes draw the same."""

    def __init__(self, split: Split, fit: dict, epoch: int):
        self.split, self.fit = split, fit
        self.random = np.random.default_rng([fit["seed"], epoch])
        self.order = self.random.permutation(len(split))

    def __iter__(self):
        size = self.fit["batch"]
        for start in range(0, len(self.order), size):
            yield self.batch(self.order[start : start + size])

    def batch(self, outfits: np.ndarray) -> Batch:
        lengths, random = self.split.lengths[outfits], self.random
        blanks = (random.random(len(outfits)) * lengths).astype(int)
        others = (blanks + 1 + (random.random(len(outfits)) * (lengths - 1)).astype(int)) % lengths
        others[random.random(len(outfits)) >= self.fit["second_blank"]] = -1
        dropped = random.random((len(outfits), self.split.features.shape[1])) < self.fit.get("drop_feature", 0)
        dropped |= random.random((len(outfits), 1)) < self.fit.get("drop_profile", 0)
        if self.fit.get("predict_second", False):
            second = np.flatnonzero(others >= 0)
            outfits, dropped = np.append(outfits, outfits[second]), np.concatenate([dropped, dropped[second]])
            blanks, others = np.append(blanks, others[second]), np.append(others, blanks[second])
        batch = self.split.batch(outfits, blanks, others)
        batch.features[torch.from_numpy(dropped)] = 0
        return batch


def padded(values: np.ndarray, starts: np.ndarray, empty: int) -> np.ndarray:
    lengths = np.diff(starts)
    rows = np.full((len(lengths), max(1, lengths.max(initial=0))), empty, np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = values
    return rows
