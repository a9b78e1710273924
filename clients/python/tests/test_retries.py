"""What the clients do when the service is busy or the connection is lost."""

import httpx
import pytest

from atelier_client import Client, ProblemError, _sync


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
        return Client("http://shop.example/", "atl_x", transport=httpx.MockTransport(self), **options)


def busy(seconds, status=429):
    headers = {"Retry-After": seconds} if seconds else {}
    return httpx.Response(status, json={"code": "queue-full", "detail": "x"}, headers=headers)


def done():
    return httpx.Response(200, json={"items": [], "next_cursor": None})


def test_it_waits_as_long_as_the_service_says(monkeypatch):
    server = Server(monkeypatch, busy("7"), busy("2", 503), done())
    server.client().complete_outfit(outfit=[None])
    assert server.waits == [7, 2]
    assert {str(request.url) for request in server.requests} == {"http://shop.example/v1/complete"}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer atl_x"}
    assert len({request.content for request in server.requests}) == 1


def test_a_date_is_understood(monkeypatch):
    server = Server(monkeypatch, busy("Wed, 21 Oct 2015 07:28:00 GMT"), done())
    server.client().get_routing()
    assert server.waits == [0]


def test_a_lost_connection_is_tried_again_with_growing_waits(monkeypatch):
    lost = httpx.ConnectError("lost")
    server = Server(monkeypatch, lost, lost, lost, lost)
    with pytest.raises(httpx.ConnectError):
        server.client().delete_article("a-1")
    assert len(server.waits) == 3 and 0.1 < server.waits[0] < 0.3 and 0.4 < server.waits[2] <= 1


def test_what_cannot_be_repeated_is_sent_once(monkeypatch):
    for send in [
        lambda client: client.patch_article("a-1", {"price": 1}),
        lambda client: client.import_articles([{"id": "a-1", "type": "hat"}]),
        lambda client: client.activate_release("demo"),
    ]:
        server = Server(monkeypatch, busy("1"))
        with pytest.raises(ProblemError, match="429 queue-full"):
            send(server.client())
        assert len(server.requests) == 1 and not server.waits


def test_it_gives_up_at_once_if_the_wait_is_too_long_or_the_problem_stays(monkeypatch):
    for answer in [busy("61"), busy("", 500), busy("", 404)]:
        server = Server(monkeypatch, answer)
        with pytest.raises(ProblemError):
            server.client().get_routing()
        assert not server.waits


def test_a_proxys_page_is_a_problem_too(monkeypatch):
    server = Server(monkeypatch, httpx.Response(404, text="<h1>Not here</h1>"))
    with pytest.raises(ProblemError) as refused:
        server.client().get_article("a/b")
    assert (refused.value.status, refused.value.code, refused.value.detail) == (404, "", "<h1>Not here</h1>")
    assert server.requests[0].url.raw_path == b"/v1/articles/a%2Fb"
