"""What both clients share, and neither waits for."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, time as clock
from decimal import Decimal
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from ipaddress import ip_address
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from . import _types as t

T = TypeVar("T")
Pieces = Iterable[bytes]
AsyncPieces = Pieces | AsyncIterable[bytes]
Rows = Iterable[Mapping[str, Any]]
AsyncRows = Rows | AsyncIterable[Mapping[str, Any]]

# Sending these twice does what sending them once does.
IDEMPOTENT = {"GET", "HEAD", "PUT", "DELETE"}
TEMPORARY = {429, 502, 503, 504}
# The service's limit, `batch_suggestions` of x-limits.
BATCH_SUGGESTIONS = 20_000
# The service's limit of events in one request.
EVENTS = 1_000
# Compressing a completion takes longer than sending it as it is.
PLAIN = {"Accept-Encoding": "identity"}
BYTES = {"Content-Type": "application/octet-stream"}


class ProblemError(Exception):
    """The service refused a request: an RFC 9457 problem."""

    def __init__(self, response: httpx.Response) -> None:
        try:
            problem = response.json()
        except ValueError:
            problem = {}
        if not isinstance(problem, dict):
            problem = {}
        self.status: int = response.status_code
        #: Identifies the kind of problem; it never changes. Empty if another server answered, such as a proxy.
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail", response.text[:200])
        self.request_id: str = problem.get("request_id", response.headers.get("x-request-id", ""))
        #: The located errors: a `pointer`, `parameter` or `line`, and the `detail`.
        self.errors: list[dict[str, Any]] = problem.get("errors", [])
        # The detail of a problem with one error is that of the error.
        said = [] if any(error["detail"] == self.detail for error in self.errors) else [self.detail]
        for error in self.errors:
            place = error.get("pointer") or error.get("parameter") or error.get("line")
            said.append(f"{place}: {error['detail']}" if place else error["detail"])
        super().__init__(f"{self.status} {self.code}: " + "; ".join(said))


class UnreachableError(Exception):
    """There was no answer, or only a part of one: a lost connection or a timeout. `__cause__` is httpx's error."""

    def __init__(self, url: object, error: httpx.TransportError) -> None:
        super().__init__(f"no answer from {url}: {error or type(error).__name__}")


class RefusedEventsError(Exception):
    """The service refused some events and recorded the others."""

    def __init__(self, items: list[Any]) -> None:
        #: The result or the problem of each event, in order.
        self.items = items
        refused = [(index, item) for index, item in enumerate(items) if "recorded" not in item]
        said = "; ".join(f"event {index}: {problem['detail']}" for index, problem in refused[:3])
        more = f"; and {len(refused) - 3} more" if len(refused) > 3 else ""
        super().__init__(f"{len(refused)} of {len(items)} events were refused: {said}{more}")


def headers(url: str, key: str | None, allow_http: bool) -> dict[str, str]:
    sent = {"User-Agent": f"atelier-client/{version('atelier-client')}"}
    key = key or os.environ.get("ATELIER_KEY")
    if not key:
        return sent
    to = httpx.URL(url)
    if to.scheme != "https" and not allow_http and not _is_here(to.host):
        raise ValueError(f"over http everyone on the way to {to.host} could read the key: use https://, or pass allow_http=True")
    return {**sent, "Authorization": f"Bearer {key}"}


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def at(*steps: object) -> str:
    """A path; a slash in an id is %2F. A step of dots would lead to another path, and an empty one to the whole table."""
    for step in steps:
        if str(step) in ("", ".", ".."):
            raise ValueError(f"{step!r} is no id that can be part of an address")
    return "/" + "/".join(quote(str(step), safe="") for step in steps)


def given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def conditions(if_match: str | None, if_none_match: str | None = None) -> dict[str, str]:
    return given(**{"If-Match": if_match, "If-None-Match": if_none_match})


def pause(attempt: int, response: httpx.Response | None = None) -> float:
    """How many seconds to wait: what the service says, or twice as long each time."""
    said = response.headers.get("retry-after", "") if response is not None else ""
    if said.isdigit():
        return float(said)
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    return float(min(0.25 * 2**attempt, 8) * random.uniform(0.5, 1))


def batches(items: Iterable[t.Complete], size: int) -> Iterator[list[t.Complete]]:
    """Up to `size` items each, and no more suggestions than the service takes in one batch."""
    some: list[t.Complete] = []
    total = 0
    for item in items:
        blanks = sum(slot is None for slot in item["outfit"])
        asked = max(blanks, 1) * ((item.get("k") or 5) + item.get("sets", 0))
        if some and total + asked > BATCH_SUGGESTIONS:
            yield some
            some, total = [], 0
        some.append(item)
        total += asked
        if len(some) >= size:
            yield some
            some, total = [], 0
    if some:
        yield some


def parts(events: Iterable[T]) -> Iterator[list[T]]:
    """Lists that the service takes in one request."""
    if isinstance(events, Mapping):
        raise TypeError("one event was given: pass a list of events")
    rest = iter(events)
    while some := list(islice(rest, EVENTS)):
        yield some


def recorded(items: list[T], partial: bool) -> list[T]:
    if not partial and any("recorded" not in item for item in items):  # type: ignore[operator]
        raise RefusedEventsError(items)
    return items


async def awaited(rows: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row


def line(row: Mapping[str, Any]) -> bytes:
    """A row as JSON; values of numpy and pandas become Python's.

    Raises TypeError, which names the column, for what JSON cannot say.
    """
    try:
        return _json(dict(row)).encode() + b"\n"
    except (TypeError, ValueError):
        for name, value in row.items():
            try:
                _json(value)
            except (TypeError, ValueError) as error:
                raise TypeError(f"column {name!r} contains {value!r:.200}, which JSON cannot say: {error}") from error
        raise


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON has for a value of another type. pandas' own are told by their names: it need not be installed."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (date, clock)):
        return value.isoformat()
    if isinstance(value, Decimal):
        whole = value.is_finite() and value.as_tuple().exponent >= 0  # type: ignore[operator]
        return int(value) if whole else float(value)
    if hasattr(value, "tolist"):
        # Times in nanoseconds would become numbers.
        moments = getattr(value.dtype, "kind", "") == "M"
        return (value.astype("datetime64[us]") if moments else value).tolist()
    raise TypeError(f"it is a {type(value).__name__}")
