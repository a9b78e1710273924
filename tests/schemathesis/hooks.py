"""Teaches schemathesis how to write JSON Lines."""

import json

import schemathesis
from hypothesis import strategies as st

IDS = st.text(alphabet="abcxyz-0123456789/%| \0é", max_size=12)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=3)
FEATURES = st.dictionaries(st.sampled_from(["age", "gender", "fit", "x"]), VALUES, max_size=3)
LINES = {
    "/articles/bulk": {"id": IDS, "type": st.text(max_size=8), "price": VALUES},
    "/customers/bulk": {"id": IDS, "features": FEATURES},
    "/outfits/bulk": {"customer": IDS, "articles": st.lists(IDS, max_size=9), "split": st.sampled_from(["train", "x"])},
}


@schemathesis.serializer("application/x-ndjson")
def json_lines(context, value):
    """A string is the whole stream; anything else is a stream of one line."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_generate_body(context, strategy):
    """The document describes a stream as a string, and a random string has no objects. So make some of objects."""
    fields = LINES.get(context.operation.path)
    if fields is None:
        return strategy
    line = st.fixed_dictionaries({}, optional=fields).map(json.dumps)
    return strategy | st.lists(line | st.text(max_size=20), max_size=5).map("\n".join)
