"""The client; generate.py makes _sync.py of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal, Self, Unpack

import httpx

from . import _types as t
from ._common import (
    BYTES,
    IDEMPOTENT,
    PLAIN,
    TEMPORARY,
    AsyncPieces,
    AsyncRows,
    ProblemError,
    UnreachableError,
    at,
    awaited,
    batches,
    conditions,
    given,
    headers,
    line,
    parts,
    pause,
    recorded,
)


class AsyncClient:
    """One service. `key` is an API key, by default the variable ATELIER_KEY. It is sent over https, or on this machine; with
    `allow_http` also over http to other hosts.

    Requests are repeated up to `retries` times: after 429 all but imports of rows that cannot be read twice, after a lost
    connection, 502, 503 and 504 those that do the same when they are sent twice. It waits as long as the answer's
    Retry-After says, but raises the problem at once if that is more than `max_wait` seconds. Without an answer it raises
    UnreachableError. At most `concurrency` requests run at once; the others wait for their turn.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout: float = 30,
        retries: int = 3,
        max_wait: float = 60,
        concurrency: int = 16,
        allow_http: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        base = url.rstrip("/") + "/v1"
        sent = headers(url, key, allow_http)
        # A connection is waited for as long as it takes: there are enough for all turns.
        limits = httpx.Timeout(timeout, pool=None)
        self._http = httpx.AsyncClient(base_url=base, headers=sent, timeout=limits, transport=transport)
        self._retries, self._max_wait = retries, max_wait
        self._turns = asyncio.Semaphore(concurrency)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request(
        self, method: str, path: str, *, repeat: bool | None = None, stream: bool = False, **request: Any
    ) -> httpx.Response:
        """Any request, with the client's key and retries: for headers of the answer, such as the ETag."""
        repeat = method in IDEMPOTENT if repeat is None else repeat
        once = isinstance(request.get("content"), (Iterator, AsyncIterator))
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                sent = self._http.build_request(method, path, **request)
                async with self._turns:
                    response = await self._http.send(sent, stream=stream)
            except httpx.TransportError as error:
                if last or not repeat or once:
                    raise UnreachableError(self._http.base_url, error) from error
                wait = pause(attempt)
            else:
                if response.is_success:
                    return response
                await response.aread()
                wait = pause(attempt, response)
                # The service did nothing before it said 429.
                again = response.status_code == 429 or (repeat and response.status_code in TEMPORARY)
                if last or once or not again or wait > self._max_wait:
                    raise ProblemError(response)
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _json(self, method: str, path: str, **request: Any) -> Any:
        return (await self.request(method, path, **request)).json()

    async def _ask(self, path: str, body: Any) -> Any:
        return await self._json("POST", path, json=body, headers=PLAIN, repeat=True)

    async def _pages(self, path: str, params: dict[str, Any]) -> AsyncIterator[Any]:
        while True:
            page = await self._json("GET", path, params=params)
            for item in page["items"]:
                yield item
            if page["next_cursor"] is None:
                return
            params = {**params, "cursor": page["next_cursor"]}

    async def _import(self, table: str, rows: AsyncRows, **params: Any) -> Any:
        kind = {"Content-Type": "application/x-ndjson"}
        lines = _Lines(rows)
        content = aiter(lines) if isinstance(rows, (Iterator, AsyncIterator)) else lines
        return await self._json(
            "POST", at(table, "bulk"), params=params, content=content, headers=kind, timeout=None
        )

    # Completion

    async def complete_outfit(self, **body: Unpack[t.Complete]) -> t.Completion:
        """Suggests articles for each None of the outfit."""
        return await self._ask("/complete", body)

    async def complete_outfits(self, items: Iterable[t.Complete], size: int = 64) -> AsyncIterator[t.Item]:
        """Completes any number of outfits, up to `size` in a request: each gets its answer or its problem, in order."""
        for some in batches(items, size):
            answer = await self._ask("/complete/batch", {"items": some})
            for item in answer["items"]:
                yield item

    async def compare_suggestions(self, **body: Unpack[t.Compare]) -> t.Comparison:
        """Compares methods or customers on one blank."""
        return await self._ask("/compare", body)

    async def score_outfit(self, **body: Unpack[t.Score]) -> t.Scored:
        """Scores a complete outfit."""
        return await self._ask("/score", body)

    # Feedback

    async def report_feedback(self, events: Iterable[t.FeedbackEvent], *, partial: bool = False) -> list[t.FeedbackItem]:
        """Reports any number of outcomes of suggestions. If some are refused, it raises RefusedEventsError, or with
        `partial=True` returns their problems among the results, in order."""
        return await self._events("/feedback", events, partial)

    async def record_events(self, events: Iterable[t.Event], *, partial: bool = False) -> list[t.EventItem]:
        """Records any number of events of customers and visitors. If some are refused, it raises RefusedEventsError, or with
        `partial=True` returns their problems among the results, in order."""
        return await self._events("/events", events, partial)

    async def _events(self, path: str, events: Iterable[Any], partial: bool) -> list[Any]:
        items: list[Any] = []
        for some in parts(events):
            items += await self._json("POST", path, json=some, repeat=True)
        return recorded(items, partial)

    async def import_events(self, rows: AsyncRows) -> t.EventsImported:
        """Records events while they are read, and leaves out bad ones."""
        return await self._import("events", rows)

    async def get_event_counts(self, *, days: int | None = None) -> t.EventCounts:
        """How many events happened in the last days, by kind."""
        return await self._json("GET", "/events/counts", params=given(days=days))

    async def get_feedback_counts(self) -> t.FeedbackCounts:
        return await self._json("GET", "/feedback/counts")

    async def get_acceptance(
        self,
        *,
        by: str | None = None,
        days: int | None = None,
        release: str | None = None,
        method: str | None = None,
        arm: str | None = None,
        type: str | None = None,
        slot: int | None = None,
        source: str | None = None,
    ) -> t.Acceptance:
        """Acceptance of the last days' suggestions, by day, method, release, arm, type, slot, source, or a feature of the
        customers. The others count only some suggestions."""
        only = given(by=by, days=days, release=release, method=method, arm=arm, type=type, slot=slot, source=source)
        return await self._json("GET", "/feedback/acceptance", params=only)

    async def export_accepted_outfits(self) -> AsyncIterator[dict[str, Any]]:
        """Completed outfits as training data, as they arrive."""
        response = await self.request("GET", "/feedback/outfits.jsonl", stream=True, timeout=None)
        try:
            # Not at U+2028 and the like, which JSON may contain.
            rest = b""
            async for piece in response.aiter_bytes():
                *rows, rest = (rest + piece).split(b"\n")
                for row in rows:
                    yield json.loads(row)
        except httpx.TransportError as error:
            raise UnreachableError(self._http.base_url, error) from error
        finally:
            await response.aclose()

    # Articles

    def list_articles(
        self, *, search: str | None = None, type: str | None = None, where: Mapping[str, str] | None = None, n: int | None = None
    ) -> AsyncIterator[t.Article]:
        """All articles that fit, page after page; `where` names attributes and their values."""
        conditions = [f"{name}:{value}" for name, value in (where or {}).items()]
        return self._pages("/articles", given(search=search, type=type, where=conditions or None, n=n))

    async def get_article(self, id: str) -> t.Article:
        return await self._json("GET", at("articles", id))

    async def put_article(
        self, id: str, article: t.ArticlePut, *, if_match: str | None = None, if_none_match: str | None = None
    ) -> t.ArticleStored:
        """Adds or replaces an article; with `if_none_match="*"` it only adds."""
        return await self._json("PUT", at("articles", id), json=article, headers=conditions(if_match, if_none_match))

    async def find_similar_articles(
        self, id: str, *, customer: str | None = None, store: str | None = None, n: int | None = None
    ) -> t.SimilarArticles:
        params = given(customer=customer, store=store, n=n)
        return await self._json("GET", at("articles", id, "similar"), params=params)

    async def patch_article(self, id: str, change: t.ArticlePatch, *, if_match: str | None = None) -> t.ArticleStored:
        """Sets the attributes that the change names; None removes one."""
        return await self._json("PATCH", at("articles", id), json=change, headers=conditions(if_match))

    async def delete_article(self, id: str, *, if_match: str | None = None) -> None:
        await self.request("DELETE", at("articles", id), headers=conditions(if_match))

    async def import_articles(
        self, rows: AsyncRows, *, mode: Literal["replace", "merge", "delete"] = "replace", skip_bad: bool = False
    ) -> t.Received:
        """Stores articles while they are read, all or none."""
        return await self._import("articles", rows, mode=mode, skip_bad=skip_bad)

    async def get_coverage(self) -> t.ArticleCoverage:
        return await self._json("GET", "/coverage")

    # Customers

    def list_customers(self, *, search: str | None = None, n: int | None = None) -> AsyncIterator[t.Customer]:
        """All customers that fit, page after page."""
        return self._pages("/customers", given(search=search, n=n))

    async def get_customer(self, id: str) -> t.Customer:
        return await self._json("GET", at("customers", id))

    async def put_customer(
        self, id: str, features: t.Features, *, if_match: str | None = None, if_none_match: str | None = None
    ) -> t.CustomerStored:
        """Adds or replaces a customer; with `if_none_match="*"` it only adds."""
        sent = conditions(if_match, if_none_match)
        return await self._json("PUT", at("customers", id), json={"features": features}, headers=sent)

    async def patch_customer(
        self, id: str, features: t.Features, *, if_match: str | None = None
    ) -> t.CustomerStored:
        """Sets the features that are named; None removes one."""
        sent = conditions(if_match)
        return await self._json("PATCH", at("customers", id), json={"features": features}, headers=sent)

    async def erase_customer(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes everything that is stored about a customer."""
        await self.request("DELETE", at("customers", id), headers=conditions(if_match))

    async def export_customer(self, id: str) -> t.CustomerExport:
        """Everything that is stored about a customer."""
        return await self._json("GET", at("customers", id, "export"), timeout=None)

    def list_customer_outfits(
        self, id: str, *, drafts: bool | None = None, n: int | None = None
    ) -> AsyncIterator[t.Outfit]:
        """A customer's outfits, page after page; with `drafts=True` those with blanks, too."""
        return self._pages(at("customers", id, "outfits"), given(drafts=drafts, n=n))

    async def import_customers(
        self, rows: AsyncRows, *, mode: Literal["replace", "merge", "delete"] = "replace", skip_bad: bool = False
    ) -> t.Received:
        """Stores customers while they are read, all or none."""
        return await self._import("customers", rows, mode=mode, skip_bad=skip_bad)

    # Outfits

    async def save_outfit(self, **body: Unpack[t.OutfitSave]) -> t.OutfitStored:
        """Saves an outfit; the same one is stored once."""
        return await self._json("POST", "/outfits", json=body, repeat=True)

    async def get_outfit(self, id: int) -> t.Outfit:
        return await self._json("GET", at("outfits", id))

    async def patch_outfit(self, id: int, change: t.OutfitPatch) -> t.Outfit:
        """Gives a draft to a customer, names it, or sets its note."""
        return await self._json("PATCH", at("outfits", id), json=change)

    async def delete_outfit(self, id: int) -> None:
        await self.request("DELETE", at("outfits", id))

    async def import_outfits(self, rows: AsyncRows, *, skip_bad: bool = False) -> t.Received:
        """Stores outfits while they are read, all or none."""
        return await self._import("outfits", rows, skip_bad=skip_bad)

    # Feeds

    async def send_feed(
        self,
        name: str,
        file: bytes | AsyncPieces,
        *,
        table: Literal["articles", "customers", "outfits"] = "articles",
        mode: Literal["replace", "merge", "mirror", "delete"] = "replace",
        skip_bad: bool = False,
        dry_run: bool = False,
        mirror_limit: int | None = None,
        force: bool | None = None,
        format: str | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        map: list[str] | None = None,
    ) -> t.Import:
        """Sends a file: bytes, one that is open, or pieces. It is imported in the background; `get_import` says how far it is."""
        sent = file if isinstance(file, bytes) else aiter(awaited(file))
        options = given(mirror_limit=mirror_limit, force=force, format=format, delimiter=delimiter, encoding=encoding, map=map)
        params = {"table": table, "mode": mode, "skip_bad": skip_bad, "dry_run": dry_run, **options}
        return await self._json("POST", at("feeds", name), params=params, content=sent, headers=BYTES, timeout=None)

    async def list_imports(self) -> t.Imports:
        return await self._json("GET", "/imports")

    async def get_import(self, id: int) -> t.Import:
        return await self._json("GET", at("imports", id))

    async def cancel_import(self, id: int) -> t.Import:
        return await self._json("DELETE", at("imports", id))

    async def undo_import(self, id: int) -> t.Import:
        return await self._json("POST", at("imports", id, "undo"))

    async def list_feeds(self) -> t.Feeds:
        return await self._json("GET", "/feeds")

    async def get_feed(self, name: str) -> t.Feed:
        return await self._json("GET", at("feeds", name))

    async def put_feed(
        self, name: str, feed: t.Feed, *, if_match: str | None = None, if_none_match: str | None = None
    ) -> t.Feed:
        return await self._json("PUT", at("feeds", name), json=feed, headers=conditions(if_match, if_none_match))

    async def patch_feed(self, name: str, change: t.FeedPatch, *, if_match: str | None = None) -> t.Feed:
        """Sets the fields that the change names; None removes one."""
        return await self._json("PATCH", at("feeds", name), json=change, headers=conditions(if_match))

    async def delete_feed(self, name: str, *, if_match: str | None = None) -> None:
        await self.request("DELETE", at("feeds", name), headers=conditions(if_match))

    async def fetch_feed(self, name: str, *, again: bool | None = None, force: bool | None = None) -> t.Import:
        return await self._json("POST", at("feeds", name, "fetch"), params=given(again=again, force=force))

    # Rules

    async def list_rules(self) -> t.Rules:
        return await self._json("GET", "/rules")

    async def get_rule(self, name: str) -> t.Rule:
        return await self._json("GET", at("rules", name))

    async def put_rule(
        self,
        name: str,
        rule: t.Rule,
        *,
        dry_run: bool = False,
        preview: bool = False,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> t.RuleStored:
        """Adds or replaces a rule; with `dry_run` it only checks it, and with `preview` also tries it on recent questions."""
        params, headers = {"dry_run": dry_run, "preview": preview}, conditions(if_match, if_none_match)
        return await self._json("PUT", at("rules", name), params=params, json=rule, headers=headers)

    async def patch_rule(
        self,
        name: str,
        change: t.RulePatch,
        *,
        dry_run: bool = False,
        preview: bool = False,
        if_match: str | None = None,
    ) -> t.RuleStored:
        """Sets the fields that the change names; None removes one."""
        params, headers = {"dry_run": dry_run, "preview": preview}, conditions(if_match)
        return await self._json("PATCH", at("rules", name), params=params, json=change, headers=headers)

    async def delete_rule(self, name: str, *, if_match: str | None = None) -> None:
        await self.request("DELETE", at("rules", name), headers=conditions(if_match))

    async def get_rule_effect(self, name: str, *, days: int | None = None) -> t.RuleEffects:
        """Outcomes of suggestions that the rule could change, with rules and in the holdout."""
        return await self._json("GET", at("rules", name, "effect"), params=given(days=days))

    async def get_holdout(self) -> t.Holdout:
        return await self._json("GET", "/holdout")

    async def set_holdout(self, **body: Unpack[t.Holdout]) -> t.Holdout:
        return await self._json("PUT", "/holdout", json=body)

    # Experiments

    async def list_experiments(self) -> t.Experiments:
        return await self._json("GET", "/experiments")

    async def get_experiment(self, name: str) -> t.Experiment:
        return await self._json("GET", at("experiments", name))

    async def put_experiment(
        self,
        name: str,
        experiment: t.Experiment,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> t.Experiment:
        """Adds an experiment, or replaces a draft."""
        headers = conditions(if_match, if_none_match)
        return await self._json("PUT", at("experiments", name), json=experiment, headers=headers)

    async def patch_experiment(
        self, name: str, change: t.ExperimentPatch, *, if_match: str | None = None
    ) -> t.Experiment:
        """Starts, ramps, stops or ships it."""
        return await self._json("PATCH", at("experiments", name), json=change, headers=conditions(if_match))

    async def delete_experiment(self, name: str, *, if_match: str | None = None) -> None:
        """Deletes a draft."""
        await self.request("DELETE", at("experiments", name), headers=conditions(if_match))

    async def get_experiment_figures(self, name: str) -> t.ExperimentFigures:
        """What it shows, and what may be concluded."""
        return await self._json("GET", at("experiments", name, "figures"))

    async def get_experiment_customers(self, name: str, *, format: str = "csv") -> bytes:
        """A row for each customer and arm, as `csv` or `parquet`."""
        return (await self.request("GET", at("experiments", name, "customers"), params={"format": format})).content

    # Looks

    async def complete_look(
        self,
        article: str,
        *,
        customer: str | None = None,
        n: int | None = None,
        total_max: float | None = None,
        store: str | None = None,
        explain: bool = False,
    ) -> t.Looks:
        """Looks with an article, for its product page."""
        params = given(customer=customer, n=n, total_max=total_max, store=store, explain=explain or None)
        return await self._json("GET", at("articles", article, "looks"), params=params)

    def list_looks(self, *, n: int | None = None) -> AsyncIterator[t.Look]:
        """All looks, page after page."""
        return self._pages("/looks", given(n=n))

    async def get_look(self, name: str) -> t.Look:
        return await self._json("GET", at("looks", name))

    async def put_look(
        self, name: str, look: t.Look, *, if_match: str | None = None, if_none_match: str | None = None
    ) -> t.LookStored:
        return await self._json("PUT", at("looks", name), json=look, headers=conditions(if_match, if_none_match))

    async def patch_look(self, name: str, change: t.LookPatch, *, if_match: str | None = None) -> t.LookStored:
        """Sets the fields that the change names; None removes one."""
        return await self._json("PATCH", at("looks", name), json=change, headers=conditions(if_match))

    async def delete_look(self, name: str, *, if_match: str | None = None) -> None:
        await self.request("DELETE", at("looks", name), headers=conditions(if_match))

    # Releases and the service

    async def list_methods(self) -> t.Methods:
        return await self._json("GET", "/methods")

    async def list_releases(self) -> t.Releases:
        return await self._json("GET", "/releases")

    async def send_release(self, archive: bytes | AsyncPieces, sha256: str) -> t.Release:
        """Sends a packed release, with the SHA-256 of the archive in hexadecimal."""
        sent = archive if isinstance(archive, bytes) else aiter(awaited(archive))
        headers = {**BYTES, "X-Content-SHA256": sha256}
        return await self._json("POST", "/releases", content=sent, headers=headers, timeout=None)

    async def activate_release(self, name: str, *, force: bool = False) -> t.Methods:
        return await self._json("POST", at("releases", name, "activate"), params={"force": force}, timeout=None)

    async def get_routing(self) -> t.Routing:
        return await self._json("GET", "/routing")

    async def set_routing(self, **body: Unpack[t.Routing]) -> t.Routing:
        return await self._json("PUT", "/routing", json=body)

    async def get_readiness(self) -> t.Ready:
        return await self._json("GET", "/readyz")

    async def get_liveness(self) -> t.Alive:
        return await self._json("GET", "/livez")

    async def get_metrics(self) -> str:
        """All measurements, as OpenMetrics text."""
        return (await self.request("GET", "/metrics")).text


class _Lines:
    """JSON Lines, in pieces of about 64 KiB. Each iteration reads the rows from the beginning."""

    def __init__(self, rows: AsyncRows) -> None:
        self._rows = rows

    async def __aiter__(self) -> AsyncIterator[bytes]:
        piece = bytearray()
        async for row in awaited(self._rows):
            piece += line(row)
            if len(piece) >= 1 << 16:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)
