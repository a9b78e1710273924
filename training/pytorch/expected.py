"""Computes what the Rust models are compared with: logits, gradients, the losses of ten steps, the logits after these.

    ATELIER_WRITE_PYTORCH=1 PYTHON=python3 cargo test -p atelier-training --lib pytorch     # calls this program
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_tensors
from torch.nn import functional as F

from data import attributes
from model import Model, decayed

STEPS, RATE = 10, 1e-3


def main():
    folder, out = Path(sys.argv[1]), sys.argv[2]
    numbers = {f"{model.name} {name}": values for model in folder.iterdir() for name, values in compute(model).items()}
    source = Path(__file__).with_name("model.py").read_bytes()
    save_file(numbers, out, {"model.py": hashlib.sha256(source).hexdigest()})


def compute(folder: Path) -> dict[str, np.ndarray]:
    given = load_file(folder / "given.safetensors")
    with safe_open(folder / "start.safetensors", "pt") as start:
        model = Model(json.loads(start.metadata()["config"]))
    model.load_state_dict(load_tensors(folder / "start.safetensors"))
    if "values" in given:
        model.attributes = attributes(given, model.config["articles"])
    outfits = len(given["blank"])

    def integers(name, *shape):
        return torch.from_numpy(given[name].astype(np.int64)).view(outfits, *shape)

    inputs = integers("slots", -1), integers("features", len(model.config["features"]), -1), integers("blank")
    target, share = integers("target"), torch.from_numpy(given["weight"]) / outfits
    numbers, losses = {"logits": model.eval()(*inputs)}, []
    optimiser = torch.optim.AdamW(decayed(model, 0.01), lr=RATE, betas=(0.9, 0.999), eps=1e-8)
    model.train()
    for step in range(STEPS):
        optimiser.zero_grad()
        losses.append((F.cross_entropy(model(*inputs, target), target, reduction="none") * share).sum())
        losses[-1].backward()
        if step == 0:
            numbers |= {f"gradient {name}": p.grad.clone() for name, p in model.named_parameters()}
        optimiser.step()
    model.settle()
    numbers |= {"losses": torch.stack(losses), "logits after": model.eval()(*inputs)}
    return {name: values.detach().numpy() for name, values in numbers.items()}


if __name__ == "__main__":
    main()
