"""What becomes of a frame's cells."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from atelier_client import frames
from atelier_client._common import line


def sent(rows):
    return [json.loads(line(row)) for row in rows]


@pytest.mark.parametrize("options", [{}, {"dtype_backend": "pyarrow"}, {"dtype_backend": "numpy_nullable"}])
def test_articles_from_parquet_are_as_they_were(tmp_path, options):
    rows = [
        {
            "id": "a-1", "type": "coat", "price": Decimal("79.90"), "stock": 3, "in_stock": True, "sizes": ["S", "M"],
            "since": dt.date(2026, 11, 21), "seen": dt.datetime(2026, 11, 21, 13, 34, 56), "embedding": [0.5, 1.5],
            "dimensions": {"width": 1.5, "sizes": ["S"]}, "number": Decimal("9007199254740993"),
        },
        {"id": "a-2", "type": "hat", "sizes": ["M"], "embedding": [], "stock": 0},
        {"id": "a-3", "type": "hat", "sizes": [None, "L"]},
    ]  # fmt: skip
    pd.DataFrame(rows).astype({"stock": "Int64", "in_stock": "boolean"}).to_parquet(tmp_path / "a.parquet")
    first, second, third = sent(frames.article_rows(pd.read_parquet(tmp_path / "a.parquet", **options)))
    assert first == {
        "id": "a-1", "type": "coat", "price": 79.9, "stock": 3, "in_stock": True, "sizes": ["S", "M"],
        "since": "2026-11-21", "seen": "2026-11-21T13:34:56", "embedding": [0.5, 1.5],
        "dimensions": {"width": 1.5, "sizes": ["S"]}, "number": 9007199254740993,
    }  # fmt: skip
    assert second == {"id": "a-2", "type": "hat", "sizes": ["M"], "embedding": [], "stock": 0}
    assert third == {"id": "a-3", "type": "hat", "sizes": [None, "L"]}


def test_customers_and_outfits_from_parquet(tmp_path):
    people = pd.DataFrame({"id": [1, 2], "age": [34.0, None], "preferred_colours": [["red"], None]})
    people.to_parquet(tmp_path / "c.parquet")
    assert sent(frames.customer_rows(pd.read_parquet(tmp_path / "c.parquet"))) == [
        {"id": 1, "features": {"age": 34, "preferred_colours": ["red"]}},
        {"id": 2, "features": {}},
    ]
    outfits = pd.DataFrame({"customer": ["c"], "articles": [["a", "b"]], "occasion": ["office"]})
    outfits.to_parquet(tmp_path / "o.parquet")
    assert sent(frames.outfit_rows(pd.read_parquet(tmp_path / "o.parquet"))) == [
        {"customer": "c", "articles": ["a", "b"], "features": {"occasion": "office"}}
    ]


def test_what_json_cannot_say_names_its_column():
    for value in [b"bytes", float("nan"), np.array([1.0, np.inf]), pd.Timedelta(days=1), np.timedelta64(1, "s"), {1, 2}]:
        with pytest.raises(TypeError, match="column 'colour' contains "):
            line({"id": "a", "colour": value})


def test_times_stay_times():
    moments = np.array(["2026-11-21T13:34:56.5", "NaT"], "datetime64[ns]")
    assert json.loads(line({"a": moments, "b": pd.NaT, "c": pd.NA, "d": np.int64(7), "e": np.bool_(True)})) == {
        "a": ["2026-11-21T13:34:56.500000", None], "b": None, "c": None, "d": 7, "e": True,
    }  # fmt: skip
