"""Trains a run that `atelier-training fit --prepare` made, on a CPU, a GPU or several.

    atelier-training fit --method gsu --data data/world --run runs/gsu --prepare
    python training/pytorch/fit.py runs/gsu                           # cuda if there is one
    torchrun --nproc-per-node 4 training/pytorch/fit.py runs/gsu      # four GPUs
    atelier-training evaluate --data data/world --runs runs/gsu

The run's folder then holds what `atelier-training fit` writes, except a checkpoint of its own (`pytorch.pt`), from
which the same command resumes.
"""

import argparse
import json
import math
import os
import shutil
import time
import tomllib
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from data import Data, Draw, draw
from model import Model, decayed

FLOOR = 0.01
# A run with `shorten` ends sooner if training is ahead of development by this much, in nats.
FAR_AHEAD = 0.1
# In its first part it then ends after so many epochs without improvement, in the middle of the second if it is so far behind its best.
PATIENCE = 8
FAR_BEHIND = 0.05
AT_ONCE = 1024
# A GPU's steps of one shape are recorded after so many, in which PyTorch allocates what it needs.
WARM_UP = 3
# Rows of a recorded step: a multiple of this, so that few shapes are recorded.
ROWS = 64
# Every so many steps the loss must be finite.
CHECK = 100


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments.add_argument("--eager", action="store_true", help="on a GPU, run each step without a CUDA graph, for debugging")
    options = arguments.parse_args()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device(options.device)
    if ranks > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        if device.type == "cuda":
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    elif device.type == "cuda" and not options.eager:
        torch.cuda.set_stream(torch.cuda.Stream(device))
    run = Run(options.run, device, rank, ranks)
    run.recording = device.type == "cuda" and ranks == 1 and not options.eager
    run.fit()
    if ranks > 1:
        dist.destroy_process_group()


class Run:
    def __init__(self, folder: Path, device: torch.device, rank: int, ranks: int):
        self.folder, self.device, self.rank, self.ranks = folder, device, rank, ranks
        config = tomllib.loads((folder / "config.toml").read_text())
        self.fit_config, self.adamw = config["fit"], config["adamw"]
        model = config["model"]
        self.data = Data(folder / "data.safetensors", model["articles"], len(model["features"]), device)
        self.model = Model(model)
        self.model.load_state_dict(load_file(folder / "start.safetensors"))
        self.model.to(device)
        if self.data.attributes is not None:
            self.model.attributes = self.data.attributes
            if self.fit_config["drop_own"] > 0:
                self.model.kept = torch.ones(model["articles"], device=device)
        self.parallel = DistributedDataParallel(self.model) if ranks > 1 else self.model
        adamw, on_gpu = self.adamw, device.type == "cuda"
        self.optimiser = torch.optim.AdamW(
            decayed(self.model, adamw["weight_decay"]),
            lr=torch.zeros((), device=device),
            betas=(adamw["beta1"], adamw["beta2"]),
            eps=adamw["epsilon"],
            fused=on_gpu,
            capturable=on_gpu,
        )
        self.epochs, self.steps = [], 0
        self.recording, self.seen, self.recorded = False, {}, {}
        self.checkpoint = folder / "pytorch.pt"
        # A start at the logit may be the best.
        self.start = self.evaluate()["cross_entropy"] if self.fit_config["begin_at_logit"] else math.inf
        if rank == 0 and self.start < math.inf and not self.checkpoint.exists():
            shutil.copyfile(folder / "start.safetensors", folder / "best.safetensors")
        if self.checkpoint.exists():
            self.resume()

    def fit(self):
        fit, start = self.fit_config, time.monotonic()
        torch.manual_seed(fit["seed"] * 1000 + len(self.epochs) * self.ranks + self.rank)
        while len(self.epochs) < self.count_epochs() and self.waited() < self.patience():
            began = time.monotonic()
            training = self.epoch(len(self.epochs))
            learning = time.monotonic() - began
            development = self.evaluate()
            record = {
                "epoch": len(self.epochs) + 1,
                "step": self.steps,
                "learning_rate": self.rate(self.steps - 1),
                "training": {"cross_entropy": training, "total": training},
                "development": development,
                "best": all(development["cross_entropy"] < loss for loss in [self.start, *self.losses()]),
                "seconds": time.monotonic() - began,
                "outfits_per_second": len(self.data.training) / learning,
            }
            self.epochs.append(record)
            if self.rank == 0:
                self.save(record["best"])
                print(
                    f"epoch {record['epoch']}: training {training:.4f}, development "
                    f"{development['cross_entropy']:.4f}, recall@1 {100 * development['recall_at_1']:.2f} %, "
                    f"{record['outfits_per_second']:.0f} outfits/s, {time.monotonic() - start:.0f} s",
                    flush=True,
                )

    def epoch(self, epoch: int) -> float:
        """Trains for an epoch; the mean cross-entropy over its outfits."""
        self.parallel.train()
        total = torch.zeros(2, device=self.device)
        for part, width in draw(self.data.training, self.fit_config, epoch, self.rank, self.ranks):
            for group in self.optimiser.param_groups:
                group["lr"].fill_(self.rate(self.steps))
            self.drop_own()
            total += self.replayed_step(part, width) if self.recording else self.step(part, width)
            self.steps += 1
            # A check makes a GPU wait. Several processes must all end after the same step.
            if self.ranks == 1 and self.steps % CHECK == 0 and not torch.isfinite(total[0]):
                break
        if self.ranks > 1:
            dist.all_reduce(total)
        mean = (total[0] / total[1]).item()
        if not math.isfinite(mean):
            raise SystemExit(f"the loss is {mean} at step {self.steps}: start again with a lower learning rate")
        return mean

    def drop_own(self):
        """Drops some articles' own vectors in the next step, the same in all processes."""
        if self.model.kept is not None:
            random = torch.Generator().manual_seed(self.fit_config["seed"] * 1_000_003 + self.steps)
            self.model.kept.copy_(torch.rand(self.model.config["articles"], generator=random) >= self.fit_config["drop_own"])

    def step(self, part: Draw, width: int) -> torch.Tensor:
        """One step; the summed cross-entropy of this process's part, and its outfits."""
        batch = part.batch(self.data.training, width)
        logits = self.parallel(batch.slots, batch.features, batch.blank, batch.target)
        losses = F.cross_entropy(logits, batch.target, reduction="none")
        self.optimiser.zero_grad(set_to_none=True)
        # The processes' gradients are averaged, so each takes its share of the whole batch times their number.
        ((losses * batch.weight).sum() * self.ranks).backward()
        self.optimiser.step()
        counts = (part.share > 0).float()
        return torch.stack([(losses.detach() * counts).sum(), counts.sum()])

    def replayed_step(self, part: Draw, width: int) -> torch.Tensor:
        """Replays the step as a CUDA graph: launching its kernels takes longer than running them."""
        rows = math.ceil(len(part.share) / ROWS) * ROWS
        part, shape = part.filled(rows), (rows, width)
        if shape not in self.recorded:
            self.seen[shape] = self.seen.get(shape, 0) + 1
            if self.seen[shape] <= WARM_UP:
                return self.step(part, width)
            graph, inputs = torch.cuda.CUDAGraph(), Draw(*(tensor.clone() for tensor in part))
            with torch.cuda.graph(graph):
                output = self.step(inputs, width)
            self.recorded[shape] = graph, inputs, output
        graph, inputs, output = self.recorded[shape]
        for held, tensor in zip(inputs, part):
            held.copy_(tensor)
        graph.replay()
        return output

    def count_epochs(self) -> int:
        """A third with `shorten`, if training is far ahead of development then."""
        third = self.third()
        if third and len(self.epochs) >= third and self.lead(self.epochs[third - 1]) > FAR_AHEAD:
            return third
        return self.fit_config["epochs"]

    def patience(self) -> int:
        patience, third = self.fit_config["patience"], self.third()
        if not third or not self.epochs:
            return patience
        losses = self.losses()
        if len(losses) <= third and self.lead(self.epochs[-1]) > FAR_AHEAD:
            return min(patience, PATIENCE)
        if len(losses) >= 2 * third and losses[-1] - min(self.start, *losses) > FAR_BEHIND:
            return min(patience, third)
        return patience

    def losses(self) -> list[float]:
        return [epoch["development"]["cross_entropy"] for epoch in self.epochs]

    @staticmethod
    def lead(epoch: dict) -> float:
        return epoch["development"]["cross_entropy"] - epoch["training"]["cross_entropy"]

    def third(self) -> int:
        """A third of the epochs with `shorten`, or 0."""
        return self.fit_config["epochs"] // 3 if self.fit_config["shorten"] else 0

    def rate(self, step: int) -> float:
        """Rises linearly over the warm-up, then falls along half a cosine; with `shorten` it falls twice, the second time after
        a third of the epochs."""
        fit = self.fit_config
        each = math.ceil(len(self.data.training) / fit["batch"])
        warm_up, first, total = (epochs * each for epochs in (fit["warm_up"], self.third() or fit["epochs"], fit["epochs"]))
        step += 1
        if step < warm_up:
            return fit["learning_rate"] * step / warm_up
        begins, ends = (warm_up, first) if step <= first else (first, total)
        passed = min((step - begins) / max(ends - begins, 1), 1)
        return fit["learning_rate"] * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * passed)) / 2)

    @torch.no_grad()
    def evaluate(self) -> dict:
        """Scores on the development split; equal logits share the mean of their ranks, as in `evaluate`."""
        self.model.eval()
        self.model.settle()
        losses, ranks = [], []
        for batch in self.data.development.every_slot(AT_ONCE):
            logits = self.model(batch.slots, batch.features, batch.blank)
            true = logits.gather(1, batch.target[:, None])
            ranks.append((logits > true).sum(1) + ((logits == true).sum(1) - 1) / 2)
            losses.append(F.cross_entropy(logits, batch.target, reduction="none"))
        losses, ranks = torch.cat(losses), torch.cat(ranks)
        scores = {f"recall_at_{k}": (ranks <= k - 1).float().mean().item() for k in (1, 5, 250)}
        return {"cross_entropy": losses.mean().item(), **scores, "mrr": (1 / (1 + ranks)).mean().item()}

    def waited(self) -> int:
        """Epochs since the best one, or the start."""
        best = [place for place, epoch in enumerate(self.epochs) if epoch["best"]]
        return len(self.epochs) - 1 - best[-1] if best else len(self.epochs)

    def save(self, best: bool):
        if best:
            with safe_open(self.folder / "start.safetensors", "pt") as start:
                header = start.metadata()
            weights = {name: weight.cpu().contiguous() for name, weight in self.model.state_dict().items()}
            save_file(weights, self.folder / "best.partial", header)
            os.replace(self.folder / "best.partial", self.folder / "best.safetensors")
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "epochs": self.epochs,
            "steps": self.steps,
        }
        torch.save(state, self.folder / "pytorch.partial")
        os.replace(self.folder / "pytorch.partial", self.checkpoint)
        (self.folder / "metrics.jsonl").write_text("".join(json.dumps(epoch) + "\n" for epoch in self.epochs))
        running = {"outfits": 0, "cross_entropy": 0.0, "total": 0.0, "steps": None, "pairs": 0, "pair": None, "seconds": 0.0}
        state = {"checkpoint": self.checkpoint.name, "running": running, "epochs": self.epochs}
        (self.folder / "state.json").write_text(json.dumps(state))

    def resume(self):
        state = torch.load(self.checkpoint, map_location=self.device)
        self.model.load_state_dict(state["model"])
        # The settings of this device, not of the one that saved.
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state["optimiser"]["state"], "param_groups": groups})
        self.epochs, self.steps = state["epochs"], state["steps"]


if __name__ == "__main__":
    main()
