"""pandas in and out; needs the extra `pandas`.

A frame's rows go into `import_articles` and its siblings, and what the service answers becomes a frame. Frames of
`pandas.read_parquet` go in as they are: lists come as arrays, and times as timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from . import _types as t


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A cell that is missing is left out."""
    for values in frame.itertuples(index=False, name=None):
        cells = zip(frame.columns, values)
        yield {str(name): value for name, value in cells if not (pd.api.types.is_scalar(value) and pd.isna(value))}


def article_rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """For `import_articles`: the columns `id`, `type`, and any attributes."""
    return _rows(frame)


def customer_rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """For `import_customers`: the column `id`, and one for each feature."""
    for row in _rows(frame):
        yield {"id": row.pop("id"), "features": row}


def outfit_rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """For `import_outfits`: the columns `customer`, `articles` (lists) and `split`, and one for each feature."""
    for row in _rows(frame):
        named: dict[str, Any] = {name: row.pop(name) for name in ("customer", "articles", "split") if name in row}
        yield named | {"features": row}


def article_frame(articles: Iterable[t.Article]) -> pd.DataFrame:
    """A row for each article, a column for each attribute."""
    return pd.DataFrame(list(articles))


def customer_frame(customers: Iterable[t.Customer]) -> pd.DataFrame:
    """A row for each customer, a column for each feature."""
    return pd.DataFrame([{"id": customer["id"], **customer["features"]} for customer in customers])


def suggestion_frame(completions: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each suggestion, with the place of its completion and the slot. A problem has a row with its `detail`."""
    rows: list[dict[str, Any]] = []
    for place, completion in enumerate(completions):
        if "detail" in completion:
            rows.append({"item": place, "problem": completion["detail"]})
            continue
        head = {"item": place, "method": completion["method"], "completion_id": completion["completion_id"]}
        for blank in completion["blanks"]:
            rows += [{**head, "slot": blank["slot"], **_suggested(found)} for found in blank["suggestions"]]
    return pd.DataFrame(rows)


def comparison_frame(comparison: t.Comparison) -> pd.DataFrame:
    """A row for each suggestion of each column."""
    rows: list[dict[str, Any]] = []
    for column in comparison["columns"]:
        head = {"method": column["method"], "customer": column.get("customer")}
        rows += [{**head, **_suggested(found)} for found in column["suggestions"]]
    return pd.DataFrame(rows)


def _suggested(found: Mapping[str, Any]) -> dict[str, Any]:
    article = found["article"]
    numbers = {name: found.get(name) for name in ("rank", "probability", "share", "lift")}
    return {**numbers, "article": article["id"], "type": article["type"], "price": article.get("price")}
