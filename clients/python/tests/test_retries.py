"""What the clients do when the service is busy or the connection is lost."""

import asyncio
import io
import json
import re

import httpx
import pytest

from atelier_client import AsyncClient, Client, ProblemError, RefusedEventsError, UnreachableError, _sync


class Server:
    """Answers with what it is given, one after the other."""

    def __init__(self, monkeypatch, *answers):
        self.answers, self.requests, self.waits = list(answers), [], []
        monkeypatch.setattr(_sync.time, "sleep", self.waits.append)

    def __call__(self, request):
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **options):
        return Client("https://shop.example/", "atl_x", transport=httpx.MockTransport(self), **options)


def busy(seconds, status=429):
    headers = {"Retry-After": seconds} if seconds else {}
    return httpx.Response(status, json={"code": "queue-full", "detail": "x"}, headers=headers)


def done():
    return httpx.Response(200, json={"items": [], "next_cursor": None})


def test_it_waits_as_long_as_the_service_says(monkeypatch):
    server = Server(monkeypatch, busy("7"), busy("2", 503), done())
    server.client().complete_outfit(outfit=[None])
    assert server.waits == [7, 2]
    assert {str(request.url) for request in server.requests} == {"https://shop.example/v1/complete"}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer atl_x"}
    assert re.match(r"atelier-client/\d", server.requests[0].headers["user-agent"])
    assert len({request.content for request in server.requests}) == 1


def test_a_date_is_understood(monkeypatch):
    server = Server(monkeypatch, busy("Wed, 21 Oct 2015 07:28:00 GMT"), done())
    server.client().get_routing()
    assert server.waits == [0]


def test_a_lost_connection_is_tried_again_with_growing_waits(monkeypatch):
    lost = httpx.ConnectError("lost")
    server = Server(monkeypatch, lost, lost, lost, lost)
    with pytest.raises(UnreachableError, match=r"^no answer from https://shop.example/v1/: lost$") as unreachable:
        server.client().delete_article("a-1")
    assert unreachable.value.__cause__ is lost
    assert len(server.waits) == 3 and 0.1 < server.waits[0] < 0.3 and 0.4 < server.waits[2] <= 1


CHANGES = [
    lambda client: client.patch_article("a-1", {"price": 1}),
    lambda client: client.import_articles([{"id": "a-1", "type": "hat"}]),
    lambda client: client.activate_release("demo"),
]


@pytest.mark.parametrize("send", CHANGES)
def test_a_change_is_repeated_only_if_the_service_said_that_it_did_nothing(monkeypatch, send):
    server = Server(monkeypatch, busy("3"), done())
    send(server.client())
    assert server.waits == [3] and len({request.content for request in server.requests}) == 1
    for answer in [busy("1", 503), httpx.ReadError("lost")]:
        server = Server(monkeypatch, answer)
        with pytest.raises((ProblemError, UnreachableError)):
            send(server.client())
        assert len(server.requests) == 1 and not server.waits


def test_rows_that_can_be_read_once_are_sent_once(monkeypatch):
    server = Server(monkeypatch, busy("1"))
    with pytest.raises(ProblemError, match="429 queue-full"):
        server.client().import_articles(row for row in [{"id": "a-1", "type": "hat"}])
    assert not server.waits


def test_completions_are_not_compressed_and_lists_are(monkeypatch):
    server = Server(monkeypatch, done(), done(), done(), done())
    client = server.client()
    client.complete_outfit(outfit=[None])
    client.score_outfit(outfit=["a"])
    list(client.complete_outfits([{"outfit": [None]}]))
    list(client.list_articles())
    asked = [request.headers["accept-encoding"] for request in server.requests]
    assert asked[:3] == ["identity"] * 3 and "gzip" in asked[3]


def test_rows_of_an_export_end_at_line_feeds_only(monkeypatch):
    rows = [{"customer": "a\u2028b\u2029c\u0085d"}, {"customer": "é"}]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    pieces = (text[at : at + 1] for at in range(len(text)))
    server = Server(monkeypatch, httpx.Response(200, content=pieces))
    assert list(server.client().export_accepted_outfits()) == rows


def test_it_gives_up_at_once_if_the_wait_is_too_long_or_the_problem_stays(monkeypatch):
    for answer in [busy("61"), busy("", 500), busy("", 404)]:
        server = Server(monkeypatch, answer)
        with pytest.raises(ProblemError):
            server.client().get_routing()
        assert not server.waits


def test_a_message_says_each_thing_once(monkeypatch):
    server = Server(monkeypatch, httpx.Response(422, json={"code": "invalid", "detail": "k is large", "errors": [{"pointer": "/k", "detail": "k is large"}]}))
    with pytest.raises(ProblemError, match="^422 invalid: /k: k is large$"):
        server.client().get_routing()


def test_a_feed_is_sent_as_bytes_or_while_a_file_is_read(monkeypatch):
    feed = bytes(range(256)) * 1000
    server = Server(monkeypatch, busy("1"), done(), done())
    server.client().send_feed("shop", feed, mode="mirror", dry_run=True, map=["a=b", "c="])
    server.client().send_feed("shop", io.BytesIO(feed))
    assert [request.content == feed for request in server.requests] == [True] * 3 and server.waits == [1]
    first = server.requests[0]
    assert str(first.url).endswith("/v1/feeds/shop?table=articles&mode=mirror&skip_bad=false&dry_run=true&map=a%3Db&map=c%3D")
    assert first.headers["content-type"] == "application/octet-stream"


def test_a_proxys_page_is_a_problem_too(monkeypatch):
    server = Server(monkeypatch, httpx.Response(404, text="<h1>Not here</h1>"))
    with pytest.raises(ProblemError) as refused:
        server.client().get_article("a/b")
    assert (refused.value.status, refused.value.code, refused.value.detail) == (404, "", "<h1>Not here</h1>")
    assert server.requests[0].url.raw_path == b"/v1/articles/a%2Fb"


def results(request):
    """Records all events but those of nobody."""
    sent = json.loads(request.content)
    assert len(sent) <= 1000
    bad = {"type": "about:blank", "status": 422, "code": "invalid", "detail": "there is no customer \"nobody\""}
    return httpx.Response(200, json=[bad if of["customer"] == "nobody" else {"id": of["id"], "recorded": True} for of in sent])


def events(*customers):
    return [{"id": str(at), "kind": "bought", "customer": name, "article": "a"} for at, name in enumerate(customers)]


def test_each_event_of_a_list_is_recorded():
    with Client(transport=httpx.MockTransport(results)) as client:
        assert len(client.record_events(iter(events(*["mara"] * 2500)))) == 2500
        assert client.record_events([]) == []
        with pytest.raises(TypeError, match="pass a list"):
            client.record_events(events("mara")[0])


def test_a_refused_event_is_an_error_unless_asked_otherwise():
    some = events("mara", "nobody", "mara")
    with Client(transport=httpx.MockTransport(results)) as client:
        for report in (client.record_events, client.report_feedback):
            with pytest.raises(RefusedEventsError, match="^1 of 3 events were refused: event 1: there is no customer") as refused:
                report(some)
            assert report(some, partial=True) == refused.value.items
            assert [item.get("code") for item in refused.value.items] == [None, "invalid", None]


def test_thousands_of_calls_at_once_all_end():
    running, most = 0, 0

    async def answer(request):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return httpx.Response(200, json={})

    async def ask():
        async with AsyncClient(transport=httpx.MockTransport(answer)) as client:
            await asyncio.gather(*[client.get_routing() for _ in range(1200)])

    asyncio.run(ask())
    assert 1 < most <= 16
