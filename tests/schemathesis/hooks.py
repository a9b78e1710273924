"""Teaches schemathesis how to write JSON Lines, and what agents ask."""

import json

import schemathesis
from hypothesis import strategies as st

IDS = st.text(alphabet="abcxyz-0123456789/%| \0é", max_size=12)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=3)
FEATURES = st.dictionaries(st.sampled_from(["age", "gender", "fit", "x"]), VALUES, max_size=3)
LINES = {
    "/articles/bulk": {"id": IDS, "type": st.text(max_size=8), "price": VALUES},
    "/customers/bulk": {"id": IDS, "features": FEATURES},
    "/events/bulk": {"id": IDS, "kind": st.sampled_from(["viewed", "bought", "kept", "x"]), "customer": IDS, "visitor": IDS, "article": IDS, "time": VALUES,
                     "order": VALUES, "value": VALUES, "ticket": IDS},
    "/outfits/bulk": {"customer": IDS, "articles": st.lists(IDS, max_size=9), "split": st.sampled_from(["train", "x"])},
}

JSON = st.recursive(VALUES | IDS, lambda part: st.lists(part, max_size=4) | st.dictionaries(IDS, part, max_size=3), max_leaves=6)
TOOLS = ["search_catalogue", "complete", "looks", "similar", "score", "explain", "compare", "x"]
SLOTS = st.lists(st.none() | st.sampled_from(["a-00134", "a-01243", "a-00568"]) | IDS, max_size=5)
ARGUMENTS = {
    "outfit": SLOTS, "customer": st.just("c-000010") | JSON, "customers": st.lists(IDS, max_size=3), "features": FEATURES | JSON, "filters": JSON,
    "k": JSON, "n": JSON, "id": st.just("a-00134") | JSON, "search": JSON, "where": JSON, "fields": JSON, "methods": JSON, "x": JSON,
}  # fmt: skip
CALLS = st.fixed_dictionaries({
    "jsonrpc": st.just("2.0"), "id": st.integers(0, 9), "method": st.just("tools/call"),
    "params": st.fixed_dictionaries({"name": st.sampled_from(TOOLS), "arguments": st.fixed_dictionaries({}, optional=ARGUMENTS)}),
})  # fmt: skip


@schemathesis.serializer("application/x-ndjson")
def json_lines(context, value):
    """A string is the whole stream; anything else is a stream of one line."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_generate_body(context, strategy):
    """The document describes a stream as a string, and a random string has no objects. So make some of objects, and agents' calls of tools."""
    if context.operation.path == "/mcp":
        return strategy | CALLS
    fields = LINES.get(context.operation.path)
    if fields is None:
        return strategy
    line = st.fixed_dictionaries({}, optional=fields).map(json.dumps)
    return strategy | st.lists(line | st.text(max_size=20), max_size=5).map("\n".join)
