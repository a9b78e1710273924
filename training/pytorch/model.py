"""The paper's five methods, and `match`, in PyTorch. Tensors have the names and shapes of atelier-training's files."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-5


class Attributes(NamedTuple):
    """What articles are made of."""

    values: Tensor
    """A row for each article and a column for each value. Sparse, but on a GPU, where a product with a dense one is fast and
    can be recorded."""
    factors: Tensor
    """What each value counts in the match."""
    embeddings: Tensor | None
    """A row for each article, if articles have embeddings."""

    def to(self, device) -> "Attributes":
        values = self.values.to_dense() if torch.device(device).type == "cuda" else self.values
        return Attributes(*(part if part is None else part.to(device) for part in (values, self.factors, self.embeddings)))


class Linear(nn.Module):
    """x W + b, with W stored as [in, out]."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        x = x @ self.weight
        return x if self.bias is None else x + self.bias


class Table(nn.Module):
    def __init__(self, rows: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, width))


class FeatureTables(nn.Module):
    """A table for each feature."""

    def __init__(self, features: list[dict], width: int):
        super().__init__()
        rows = torch.tensor([0] + [feature["rows"] for feature in features])
        self.register_buffer("_rows_before", rows.cumsum(0)[:-1, None], persistent=False)
        # `add_module` would refuse a feature that is called as an attribute is, such as `type`.
        self._modules.update({feature["name"]: Table(feature["rows"], width) for feature in features})

    def sums(self, features: Tensor, power: float) -> Tensor:
        """[outfits, features, width]: each feature's sum over its values, over their number to this power; row 0 where it
        has none. All tables are read as one, because many small steps cost more than the sums."""
        taken = (features > 0).float()
        taken[..., 0] += taken.sum(-1) == 0
        shares = taken / taken.sum(-1, keepdim=True) ** power
        rows = torch.cat([table.weight for table in self.children()])[features + self._rows_before]
        return (rows * shares[..., None]).sum(-2)


class Composed(nn.Module):
    """A table whose rows are sums: an article's own vector, in the first columns, one for each of its values, and what its
    embedding adds to the own one."""

    def __init__(self, rows: int, own: int, values: int, width: int, components: int):
        super().__init__()
        self.own = nn.Parameter(torch.empty(rows, own))
        self.values = nn.Parameter(torch.empty(values, width))
        self.embedding = nn.Parameter(torch.zeros(components, own)) if components else None
        self.register_buffer("weight", torch.empty(rows, width))

    def compose(self, attributes: Attributes, kept: Tensor | None) -> Tensor:
        """Articles that are not `kept` have no own vector."""
        width = self.own.shape[1]
        sums = [attributes.values @ self.values[:, :width]]
        if self.embedding is not None:
            sums[0] = sums[0] + attributes.embeddings @ self.embedding
        if self.values.shape[1] > width:
            sums.append(attributes.values @ (attributes.factors * self.values[:, width:]))
        sums = torch.cat(sums, 1)
        own = self.own
        if kept is not None:
            own = own * F.pad(kept, (0, len(own) - len(kept)), value=1.0)[:, None]
        blank_and_padding = len(own) - len(sums)
        return F.pad(sums, (0, 0, 0, blank_and_padding)) + F.pad(own, (0, self.values.shape[1] - own.shape[1]))


class Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, EPSILON)


def normalised(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=EPSILON)


class Fnn(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int):
        super().__init__()
        self.first = Linear(inputs, hidden)
        self.second = Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x)))


class Attention(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        width = config["width"]
        self.heads = config["heads"]
        self.query = Linear(width, width)
        self.key_value = Linear(width, 2 * width)
        self.out = Linear(width, width)
        self.norm = Norm(width)
        self.dropout = nn.Dropout(config["dropout"])

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> Tensor:
        def split(x: Tensor) -> Tensor:
            return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        keys, values = self.key_value(source).chunk(2, -1)
        mixed = F.scaled_dot_product_attention(split(self.query(x)), split(keys), split(values), attn_mask=mask)
        return self.norm(x + self.dropout(self.out(mixed.transpose(1, 2).flatten(2))))


class Block(nn.Module):
    def __init__(self, config: dict, state: bool):
        super().__init__()
        width = config["width"]
        self.attention = Attention(config)
        self.state = Linear(width, width) if state else None
        self.fnn = Fnn(width, config["hidden"], width)
        self.norm = Norm(width)
        self.read_dropout = nn.Dropout(config["dropout"])
        self.dropout = nn.Dropout(config["dropout_elsewhere"])

    def forward(self, x: Tensor, source: Tensor, mask: Tensor, state: Tensor | None) -> Tensor:
        x = self.attention(x, source, mask)
        if self.state is not None:
            x = normalised(x + self.read_dropout(self.state(state)[:, None].expand_as(x)))
        return self.norm(x + self.dropout(self.fnn(x)))


class Update(nn.Module):
    """How the global state changes between two blocks."""

    def __init__(self, config: dict):
        super().__init__()
        self.fnn = Fnn(config["width"], config["hidden"], config["width"])
        self.norm = Norm(config["width"])
        self.dropout = nn.Dropout(config["dropout_elsewhere"])

    def forward(self, state: Tensor) -> Tensor:
        return self.norm(state + self.dropout(self.fnn(state)))


class Concat(nn.Module):
    """FNN([x; c]), its first matrix in two parts."""

    def __init__(self, width: int, context: int):
        super().__init__()
        self.article = Linear(width, width, bias=False)
        self.context = Linear(context, width)
        self.out = Linear(width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        return self.out(F.relu(self.article(x) + self.context(context)[:, None]))


# The memory's weights, and the match, are multiplied by these, so that they learn faster.
GAIN = 10
DAMPINGS = (1.0, 0.1, 0.01)
MATCH_GAIN = 3


class Memory(nn.Module):
    """What goes with what, by counts, and which articles the outfit and the features name."""

    def __init__(self, config: dict):
        super().__init__()
        self.count = config["articles"]
        self.first, rows = [], 0
        for feature in config["features"]:
            of_articles = feature["name"] in config.get("of_articles", [])
            self.first.append(rows if of_articles else None)
            rows += feature["rows"] if of_articles else 0
        # Of what was beside the visible articles, by damping; of these; of each feature whose values are articles.
        features = sum(first is not None for first in self.first)
        self.weights = nn.Parameter(torch.zeros(len(DAMPINGS) + 1 + features))
        for name in ("articles", "counts", "expected"):
            self.register_buffer(name, torch.zeros(self.count + 2, config["memory"]))
        self.register_buffer("named", torch.zeros(rows))
        # What whole outfits count: nothing here.
        self.register_buffer("outfits", torch.zeros(7))

    def forward(self, logits: Tensor, slots: Tensor, features: Tensor, target: Tensor | None, kept: Tensor | None):
        """Adds to the logits. What is learned from must not count itself: the targets' own appearance is taken off."""
        visible = (slots < self.count).float()
        weights = GAIN * self.weights
        beside, own = weights[: len(DAMPINGS)], weights[len(DAMPINGS)]
        logits = logits.scatter_add(1, slots.clamp(max=self.count - 1), visible * own)
        articles, counts, expected = self.articles[slots].long(), self.counts[slots], self.expected[slots]
        if target is not None:
            # Without this outfit some would not have reached a place.
            cutoff = strengths(counts, expected)[..., -1:, 0]
            is_own = (articles == target[:, None, None]) & (counts > 0)
            without = (counts - 1).clamp(min=0)
            remembered = strengths(without, expected)[..., 0] > cutoff
            counts = torch.where(is_own, without * remembered, counts)
        boosts = strengths(counts, expected) @ beside
        if kept is not None:
            boosts = boosts * kept[articles] * F.pad(kept, (0, 2))[slots][..., None]
        logits = logits.scatter_add(1, articles.flatten(1), (boosts * visible[..., None]).flatten(1))
        source = len(DAMPINGS) + 1
        for place, first in enumerate(self.first):
            if first is not None:
                values = features[:, place]
                named = self.named[values + first].long()
                boosts = ((values > 0) & (named > 0)) * weights[source]
                logits = logits.scatter_add(1, (named - 1).clamp(min=0), boosts)
                source += 1
        return logits


def strengths(counts: Tensor, expected: Tensor) -> Tensor:
    """How much counts say, by damping."""
    return torch.stack([torch.log1p(counts / (expected + damping)) for damping in DAMPINGS], -1)


class Model(nn.Module):
    """`config` is the table `model` of a run's config.toml."""

    def __init__(self, config: dict):
        super().__init__()
        self.config = config
        method, width = config["method"], config["width"]
        if method not in ("none", "c", "np", "gs", "gsu", "match"):
            raise SystemExit(f"the method {method} is not written in PyTorch; train it with `atelier-training fit`")
        self.matching = config.get("matching", 0)
        articles, values, wide = config["articles"], config.get("values", 0), width + self.matching
        self.attributes = None
        if values:
            components = config.get("embedding", 0)
            self.articles = Composed(articles + 2, width, values, wide, components)
            self.vocabulary = Composed(articles, width, values, wide, components)
            self.vocabulary.own_bias = nn.Parameter(torch.zeros(articles))
            self.vocabulary.value_biases = nn.Parameter(torch.zeros(values))
            if components:
                self.vocabulary.embedding_biases = nn.Parameter(torch.zeros(components))
            self.vocabulary.register_buffer("bias", torch.zeros(articles))
        else:
            self.articles = Table(articles + 2, width)
            self.vocabulary = Table(articles, width)
            self.vocabulary.bias = nn.Parameter(torch.zeros(articles))
        if self.matching:
            self.match = FeatureTables(config["features"], self.matching)
        self.memory = Memory(config) if config.get("memory", 0) else None
        if method != "none":
            self.features = FeatureTables(config["features"], config["feature_width"])
            context = len(config["features"]) * config["feature_width"]
        self.concat = Concat(width, context) if method == "c" else None
        self.position = Linear(context, width) if method == "np" else None
        self.state = Fnn(context, width, width) if method in ("gs", "gsu", "match") else None
        updates = config["blocks"] - 1 if method in ("gsu", "match") else 0
        self.updates = nn.ModuleList(Update(config) for _ in range(updates))
        self.blocks = nn.ModuleList(Block(config, self.state is not None) for _ in range(config["blocks"]))
        self.transform = Linear(width, width)
        self.kept = None
        self.dropout = nn.Dropout(config["dropout_elsewhere"])

    def forward(self, slots: Tensor, features: Tensor, blank: Tensor, target: Tensor | None = None) -> Tensor:
        """Logits of the articles at `blank`. `slots` is [outfits, slots] with padding V+1 anywhere; `features` is
        [outfits, features, values], where 0 is nothing; `target` is what is learned."""
        articles, vocabulary, bias = self.tables()
        width = self.config["width"]
        rows = F.embedding(slots, articles)
        x = self.dropout(rows[..., :width])
        padded = slots == self.config["articles"] + 1
        state = None
        if self.config["method"] != "none":
            context = self.context(features)
        if self.concat is not None:
            x = self.concat(x, context)
        elif self.position is not None:
            x = torch.cat([self.position(context)[:, None], x], 1)
            padded = F.pad(padded, (1, 0))
            blank = blank + 1
        elif self.state is not None:
            state = self.state(context)
        mask = ~padded[:, None, None, :]
        for place, block in enumerate(self.blocks):
            last = place + 1 == len(self.blocks)
            x = block(x[torch.arange(len(x), device=x.device), blank][:, None] if last else x, x, mask, state)
            if place < len(self.updates):
                state = self.updates[place](state)
        hidden = F.gelu(self.transform(x[:, 0]))
        if self.matching:
            # The rows of blanks and padding are zero in the match's columns.
            matched = rows[..., width:].sum(1) + self.match.sums(features, 0.5).sum(1)
            hidden = torch.cat([hidden, MATCH_GAIN * matched], 1)
        logits = hidden @ vocabulary.T + bias
        if self.memory is None:
            return logits
        return self.memory(logits, slots, features, target, self.kept if self.training else None)

    def tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """The articles' rows, those of the last dense layer, and its biases."""
        if self.attributes is None or not self.training:
            return self.articles.weight, self.vocabulary.weight, self.vocabulary.bias
        return self.composed(self.kept)

    def composed(self, kept: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        head, attributes = self.vocabulary, self.attributes
        bias = head.own_bias if kept is None else head.own_bias * kept
        bias = bias + (attributes.values @ head.value_biases[:, None])[:, 0]
        if attributes.embeddings is not None:
            bias = bias + attributes.embeddings @ head.embedding_biases
        return (*(table.compose(attributes, kept) for table in (self.articles, head)), bias)

    @torch.no_grad()
    def settle(self):
        """Stores the sums, with which the model answers and which its file holds."""
        if self.attributes is not None:
            self.articles.weight, self.vocabulary.weight, self.vocabulary.bias = self.composed(None)

    def context(self, features: Tensor) -> Tensor:
        return self.features.sums(features, 1).flatten(1)


def decayed(model: nn.Module, decay: float) -> list[dict]:
    """Parameters for AdamW: matrices decay, vectors do not."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
