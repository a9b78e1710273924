"""`training/benches/step.rs` in PyTorch: [GSU] as a user of PyTorch would write it.

Forward, backward and AdamW on random outfits of 4 to 8 articles (mean five), V=30,000, 23 features,
batch 1024; prints outfits per second. Not part of the workspace's build: `pip install torch`, then

    taskset -c 0,1 python training/benches/gsu_pytorch.py
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

V, D, HEADS, FEATURES, FEATURE_WIDTH, ROWS = 30_000, 128, 8, 23, 32, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.state = nn.Linear(D, D)
        self.ffn = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D))
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x, state, mask, blank=None):
        b, s, _ = x.shape
        q, k, v = (t.view(b, s, HEADS, D // HEADS).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if blank is not None:
            x = x[torch.arange(b), blank][:, None]
            q = q[torch.arange(b), :, blank][:, :, None]
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, -1, D)
        x = self.norm1(x + F.dropout(self.out(a), 0.1, self.training))
        x = F.layer_norm(x + F.dropout(self.state(state)[:, None].expand_as(x), 0.1, self.training), (D,))
        return self.norm2(x + F.dropout(self.ffn(x), 0.1, self.training))


class Gsu(nn.Module):
    def __init__(self, blank_only):
        super().__init__()
        self.blank_only = blank_only
        self.articles = nn.Embedding(V + 2, D)
        self.features = nn.ModuleList(nn.Embedding(ROWS, FEATURE_WIDTH) for _ in range(FEATURES))
        fnn = lambda i, h: nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, D))
        self.context = fnn(FEATURES * FEATURE_WIDTH, D)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.updates = nn.ModuleList(fnn(D, 2 * D) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.transform, self.head = nn.Linear(D, D), nn.Linear(D, V)
        for table in (self.articles, self.head):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, articles, features, blank):
        mask = (articles != V + 1)[:, None, None, :]
        x = F.dropout(self.articles(articles), 0.1, self.training)
        state = self.context(torch.cat([e(features[:, i]) for i, e in enumerate(self.features)], -1))
        for i, block in enumerate(self.blocks):
            last = i == 3
            x = block(x, state, mask, blank if last and self.blank_only else None)
            if not last:
                state = self.norms[i](state + F.dropout(self.updates[i](state), 0.1, self.training))
        x = x[:, 0] if self.blank_only else x[torch.arange(len(blank)), blank]
        return self.head(F.gelu(self.transform(x)))


def batch(size, generator):
    lengths = torch.multinomial(torch.tensor([0.45, 0.3, 0.13, 0.07, 0.05]), size, True, generator=generator) + 4
    articles = torch.randint(0, V, (size, 8), generator=generator)
    articles[torch.arange(8)[None] >= lengths[:, None]] = V + 1
    blank = (torch.rand(size, generator=generator) * lengths).long()
    targets = articles[torch.arange(size), blank].clone()
    articles[torch.arange(size), blank] = V
    return articles, torch.randint(0, ROWS, (size, FEATURES), generator=generator), blank, targets


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--batch", type=int, default=1024)
    arguments.add_argument("--steps", type=int, default=12)
    arguments.add_argument("--blank-only", action="store_true", help="compute the last block at the blank only")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = Gsu(options.blank_only)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    generator = torch.Generator().manual_seed(1)
    times = []
    for _ in range(options.steps):
        articles, features, blank, targets = batch(options.batch, generator)
        start = time.perf_counter()
        loss = F.cross_entropy(model(articles, features, blank), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        times.append(time.perf_counter() - start)
    times = times[2:]
    print(f"torch {torch.__version__} {options.threads} threads, blank only {options.blank_only}: median "
          f"{options.batch / statistics.median(times):.0f} outfits/s, best {options.batch / min(times):.0f}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
