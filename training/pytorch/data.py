"""Batches from the file that `atelier-training fit --prepare` writes. All outfits are kept on the training device."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

from model import Attributes


class Batch(NamedTuple):
    slots: Tensor
    features: Tensor
    blank: Tensor
    target: Tensor
    weight: Tensor


class Split:
    """The outfits of one split, padded."""

    def __init__(self, file: dict, name: str, articles: int, features: int, device: torch.device):
        self.articles, self.device = articles, device
        self.lengths = np.diff(file[f"{name}.starts"].astype(np.int64))
        slots = padded(file[f"{name}.articles"], file[f"{name}.starts"], articles + 1)
        values = padded(file[f"{name}.features"], file[f"{name}.feature_starts"], 0)
        self.slots = torch.from_numpy(slots).to(device)
        self.features = torch.from_numpy(values.reshape(len(slots), features, -1)).to(device)
        self.task_weights = torch.from_numpy(file["task_weights"]).to(device)

    def __len__(self) -> int:
        return len(self.slots)

    def batch(self, outfits: Tensor, blanks: Tensor, others: Tensor | None = None, width: int | None = None) -> Batch:
        """Blanks a slot of each outfit, and those of `others` that are not -1. The outfits may repeat. `width` is the
        length of the longest outfit, if known."""
        slots = self.slots[outfits, :width].long()
        target = slots.gather(1, blanks[:, None])
        slots = slots.scatter(1, blanks[:, None], self.articles)
        if others is not None:
            place = others.clamp(min=0)[:, None]
            slots = slots.scatter(1, place, torch.where(others[:, None] >= 0, self.articles, slots.gather(1, place)))
        target = target[:, 0]
        return Batch(slots, self.features[outfits].long(), blanks, target, self.task_weights[target])

    def every_slot(self, size: int):
        """Batches in which every slot of every outfit is asked for in turn."""
        outfits = np.repeat(np.arange(len(self)), self.lengths)
        blanks = np.concatenate([np.arange(length) for length in self.lengths])
        both = torch.from_numpy(np.stack([outfits, blanks])).to(self.device)
        for outfits, blanks in zip(both[0].split(size), both[1].split(size)):
            yield self.batch(outfits, blanks)


class Data:
    def __init__(self, path, articles: int, features: int, device: torch.device):
        file = load_file(path)
        self.training = Split(file, "training", articles, features, device)
        self.development = Split(file, "development", articles, features, device)
        self.attributes = attributes(file, articles).to(device) if "values" in file else None


def attributes(file: dict, articles: int) -> Attributes:
    starts, items = (torch.from_numpy(file[name].astype(np.int64)) for name in ("value_starts", "values"))
    factors = torch.from_numpy(file["value_factors"])[:, None]
    with warnings.catch_warnings():
        # PyTorch says that such tensors are new.
        warnings.simplefilter("ignore", UserWarning)
        rows = torch.sparse_csr_tensor(starts, items, torch.ones(len(items)), size=(articles, len(factors)))
    embeddings = torch.from_numpy(file["embeddings"]).view(articles, -1) if "embeddings" in file else None
    return Attributes(rows, factors, embeddings)


class Draw(NamedTuple):
    """What a step learns from: outfits by number, blanks, and dropped features. `share` is what each outfit counts in the
    loss, beside its type's weight."""

    outfits: Tensor
    blanks: Tensor
    others: Tensor
    dropped: Tensor
    share: Tensor

    def batch(self, split: Split, width: int) -> Batch:
        batch = split.batch(self.outfits, self.blanks, self.others, width)
        features = batch.features.masked_fill(self.dropped[..., None], 0)
        return batch._replace(features=features, weight=batch.weight * self.share)

    def filled(self, rows: int) -> "Draw":
        """With more rows, which count nothing."""
        missing = rows - len(self.share)
        filled = Draw(*(torch.cat([part, part[:1].expand(missing, *part.shape[1:])]) for part in self))
        filled.share[len(self.share) :] = 0
        return filled


def draw(split: Split, fit: dict, epoch: int, rank: int, ranks: int):
    """This process's part of an epoch's steps, each with its longest outfit's width. They depend on the seed and the epoch
    alone."""
    random, count, size = np.random.default_rng([fit["seed"], epoch]), len(split), fit["batch"]
    outfits = random.permutation(count)
    lengths = split.lengths[outfits]
    blanks = (random.random(count) * lengths).astype(np.int64)
    others = (blanks + 1 + (random.random(count) * (lengths - 1)).astype(np.int64)) % lengths
    others[random.random(count) >= fit["second_blank"]] = -1
    dropped = random.random((count, split.features.shape[1]), np.float32) < fit["drop_feature"]
    dropped |= random.random((count, 1)) < fit["drop_profile"]
    whole = (outfits, blanks, others, dropped, np.ones(count, np.float32))
    whole = [torch.from_numpy(array).to(split.device) for array in whole]
    for start in range(0, count, size):
        step = Draw(*(part[start : start + size] for part in whole))
        step = step._replace(share=step.share / len(step.share))
        yield Draw(*(part[rank::ranks] for part in step)), int(lengths[start : start + size].max())


def padded(values: np.ndarray, starts: np.ndarray, empty: int) -> np.ndarray:
    lengths = np.diff(starts)
    rows = np.full((len(lengths), max(1, lengths.max(initial=0))), empty, np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = values
    return rows
