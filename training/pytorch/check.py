"""Compares the PyTorch models with atelier-training's on small models: logits, gradients, weights after ten steps.

    PYTHON=python3 cargo test -p atelier-training -- --ignored pytorch     # writes the folder and calls this program
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors
from torch.nn import functional as F

from data import attributes
from model import Model, decayed

STEPS, RATE = 10, 1e-3
# Some gradients are zero but for rounding, such as those of the keys' biases. A smaller epsilon makes steps of these.
EPSILON = 1e-6


def main():
    failed = False
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        logits, gradients, weights = check(folder)
        print(f"{folder.name:10} logits {logits:.1e}, gradients {gradients:.1e}, weights after {STEPS} steps {weights:.1e}")
        failed |= logits > 1e-5 or gradients > 1e-5 or weights > 1e-4
    sys.exit(1 if failed else 0)


def check(folder: Path) -> tuple[float, float, float]:
    """The largest differences."""
    expected = load_file(folder / "expected.safetensors")
    model = Model(json.loads((folder / "config.json").read_text()))
    model.load_state_dict(load_tensors(folder / "start.safetensors"))
    if "values" in expected:
        model.attributes = attributes(expected, model.config["articles"])
    outfits = len(expected["blank"])

    def integers(name, *shape):
        return torch.from_numpy(expected[name].astype(np.int64)).view(outfits, *shape)

    inputs = integers("slots", -1), integers("features", len(model.config["features"]), -1), integers("blank")
    target, share = integers("target"), torch.from_numpy(expected["weight"]) / outfits
    model.eval()
    logits = model(*inputs).detach().numpy().ravel()
    model.train()
    optimiser = torch.optim.AdamW(decayed(model, 0.01), lr=RATE, betas=(0.9, 0.999), eps=EPSILON)
    gradients = None
    for _ in range(STEPS):
        optimiser.zero_grad()
        (F.cross_entropy(model(*inputs, target), target, reduction="none") * share).sum().backward()
        gradients = gradients or {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
        optimiser.step()
    model.settle()
    return (
        difference(logits, expected["logits"]),
        max(difference(gradient, expected[f"gradient {name}"]) for name, gradient in gradients.items()),
        max(difference(tensor.numpy(), expected[f"after {name}"]) for name, tensor in model.state_dict().items()),
    )


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest, of large numbers relative to the largest."""
    return float(np.abs(found.ravel() - expected).max() / max(1, np.abs(expected).max()))


if __name__ == "__main__":
    main()
