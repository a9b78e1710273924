"""Both clients against the running service at ATELIER_URL, which has the demo world."""

import asyncio
import inspect
import os
import re

import httpx
import pandas as pd
import pytest

from atelier_client import AsyncClient, Client, ProblemError, frames

URL = os.environ["ATELIER_URL"]
OUTFIT = ["a-00134", None, "a-00568", "a-00259"]


@pytest.fixture
def client():
    with Client(URL) as client:
        yield client


def test_every_operation_has_a_method():
    document = httpx.get(f"{URL}/openapi.json").json()
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    names = [of["operationId"] for of in operations if of["tags"][0] not in ("documents", "agents")]
    assert len(names) > 30
    for name in names:
        method = re.sub("([A-Z])", lambda letter: "_" + letter[0].lower(), name)
        assert callable(getattr(Client, method)) and callable(getattr(AsyncClient, method))


def test_every_query_parameter_is_an_argument():
    document = httpx.get(f"{URL}/openapi.json").json()
    for operation in [operation for item in document["paths"].values() for operation in item.values()]:
        asked = {of["name"] for of in operation.get("parameters", []) if of["in"] == "query"} - {"cursor"}
        method = re.sub("([A-Z])", lambda letter: "_" + letter[0].lower(), operation["operationId"])
        if asked:
            assert asked <= set(inspect.signature(getattr(Client, method)).parameters), method


def test_an_outfit_is_completed_and_its_feedback_becomes_training_data(client):
    filters = {"types": {"1": ["coat"]}, "price": {"max": 300}}
    completion = client.complete_outfit(customer="c-000010", outfit=OUTFIT, k=3, filters=filters, explain=True)
    suggestions = completion["blanks"][0]["suggestions"]
    assert [found["rank"] for found in suggestions] == [1, 2, 3]
    event = {"completion_id": completion["completion_id"], "slot": 1, "customer": "c-000010"}
    event |= {"article": suggestions[0]["article"]["id"], "id": f"py-{completion['completion_id'][-20:]}", "kind": "bought"}
    assert client.report_feedback([event])[0]["recorded"] is True
    assert client.report_feedback([event])[0]["recorded"] is False
    worn = {"a-00134", "a-00568", "a-00259", event["article"]}
    assert any(set(outfit["articles"]) == worn for outfit in client.export_accepted_outfits())
    assert client.get_feedback_counts()["items"][0]["bought"] >= 1
    assert client.get_acceptance(by="slot", method="none", slot=7)["items"] == []
    acceptance = client.get_acceptance(by="type", days=2)
    assert {"value", "shown", "acceptance"} <= set(acceptance["items"][0]) and acceptance["total"]["bought"] >= 1


def test_many_outfits_are_answered_in_order(client):
    items = [{"outfit": OUTFIT, "k": 1}] * 5 + [{"customer": "nobody", "outfit": [None]}]
    answers = list(client.complete_outfits(iter(items), size=4))
    assert ["blanks" in answer for answer in answers] == [True] * 5 + [False]
    table = frames.suggestion_frame(answers)
    assert table["item"].tolist() == [0, 1, 2, 3, 4, 5] and "nobody" in table["problem"].iloc[5]


def test_a_batch_has_no_more_suggestions_than_the_service_takes(client):
    items = [{"outfit": ["a-00134", None, None], "k": 250, "filters": {"in_stock": False}}] * 48
    assert all("blanks" in answer for answer in client.complete_outfits(items))


def test_methods_are_compared_and_outfits_scored(client):
    comparison = client.compare_suggestions(customer="c-000010", outfit=OUTFIT, methods=["none", "gsu"], k=4)
    table = frames.comparison_frame(comparison)
    assert table.groupby("method").size().to_dict() == {"gsu": 4, "none": 4}
    score = client.score_outfit(customer="c-000010", outfit=["a-00134", "a-01243", "a-00568", "a-00259"])
    assert len(score["articles"]) == 4 and score["mean_log_probability"] < 0


def test_lists_are_read_page_after_page(client):
    ids = [article["id"] for article in client.list_articles(n=400)]
    assert len(set(ids)) == len(ids) >= 1500
    coats = list(client.list_articles(type="coat", where={"colour": "navy"}))
    assert coats and all((coat["type"], coat["colour"]) == ("coat", "navy") for coat in coats)


def test_frames_go_in_and_come_out(client):
    frame = pd.DataFrame({"id": ["py/1", "py 2"], "type": ["hat", "scarf"], "price": [29.9, None], "sizes": [["S", "M"], None]})
    brought = client.import_articles(frames.article_rows(frame))
    assert brought["added"] + brought["changed"] + brought["unchanged"] == 2 and brought["bad"] == 0
    assert "price" not in client.get_article("py 2") and client.get_article("py/1")["sizes"] == ["S", "M"]
    back = frames.article_frame(client.get_article(id) for id in frame["id"]).set_index("id")
    assert back.loc["py/1", "price"] == 29.9
    people = pd.DataFrame({"id": ["py-1", "py-2"], "age": pd.array([34, None], "Int64"), "fit": ["slim", "regular"]})
    assert client.import_customers(frames.customer_rows(people))["bad"] == 0
    assert client.get_customer("py-1")["features"] == {"age": 34, "fit": "slim"}
    outfits = pd.DataFrame({"customer": ["py-1"], "articles": [["a-00134", "a-01243", "a-00568", "a-00259"]], "occasion": ["office"]})
    assert client.import_outfits(frames.outfit_rows(outfits))["bad"] == 0
    assert next(client.list_customer_outfits("py-1"))["features"] == {"occasion": "office"}
    assert {"id", "age"} <= set(frames.customer_frame(client.list_customers(search="py-")).columns)
    for id in people["id"]:
        client.erase_customer(id)


def test_articles_go_from_parquet_to_the_service_and_back(client, tmp_path):
    articles = [{"id": "py-parquet-1", "type": "hat", "sizes": ["S", "M"]}, {"id": "py-parquet-2", "type": "hat", "sizes": ["M"]}]
    pd.DataFrame(articles).to_parquet(tmp_path / "articles.parquet")
    frame = pd.read_parquet(tmp_path / "articles.parquet")
    assert client.import_articles(frames.article_rows(frame))["bad"] == 0
    back = frames.article_frame(client.get_article(article["id"]) for article in articles)
    assert back[["id", "type", "sizes"]].to_dict("records") == articles
    for article in articles:
        client.delete_article(article["id"])


def test_drafts_are_listed_on_request(client):
    client.put_customer("py-drafts", {})
    whole = client.save_outfit(customer="py-drafts", articles=["a-00134", "a-01243", "a-00568", "a-00259"])
    draft = client.save_outfit(customer="py-drafts", articles=["a-00134", None, "a-00568"])
    listed = [{outfit["id"] for outfit in client.list_customer_outfits("py-drafts", drafts=drafts)} for drafts in (None, True)]
    assert listed == [{whole["id"]}, {whole["id"], draft["id"]}]
    client.erase_customer("py-drafts")


def test_an_import_is_streamed(client):
    def rows():
        for number in range(20_000):
            yield {"id": f"c-000010-{number}", "features": {"age": number % 80}}
        yield {"id": ""}

    with pytest.raises(ProblemError) as refused:
        client.import_customers(rows())
    assert refused.value.code == "invalid" and refused.value.errors[0]["line"] == 20_001


def test_a_problem_says_where(client):
    with pytest.raises(ProblemError) as refused:
        client.complete_outfit(outfit=[None], k=9000)
    problem = refused.value
    assert (problem.status, problem.code, problem.errors[0]["pointer"]) == (422, "invalid", "/k")
    assert problem.request_id and "/k: k is from 1 to 250" in str(problem)


def test_changes_expect_versions(client):
    client.put_article("py-versioned", {"type": "hat"})
    with pytest.raises(ProblemError, match="precondition-failed"):
        client.put_article("py-versioned", {"type": "scarf"}, if_none_match="*")
    tag = client.request("GET", "/articles/py-versioned").headers["etag"]
    assert client.patch_article("py-versioned", {"price": 5}, if_match=tag)["price"] == 5
    with pytest.raises(ProblemError, match="precondition-failed"):
        client.delete_article("py-versioned", if_match=tag)
    client.delete_article("py-versioned")


def test_the_same_without_waiting():
    async def run():
        async with AsyncClient(URL) as client:
            alike = [client.complete_outfit(outfit=OUTFIT, method="gsu", k=1) for _ in range(8)]
            completions = await asyncio.gather(*alike)
            assert len({one["blanks"][0]["suggestions"][0]["article"]["id"] for one in completions}) == 1
            assert len([article async for article in client.list_articles(type="coat", n=20)]) > 20
            answers = [answer async for answer in client.complete_outfits([{"outfit": OUTFIT}] * 3, size=2)]
            assert len(answers) == 3
            assert (await client.import_articles([{"id": "py-async", "type": "hat"}]))["bad"] == 0
            await client.delete_article("py-async")

            async def rows():
                for number in range(3):
                    yield {"id": f"py-async-{number}", "type": "hat"}

            assert (await client.import_articles(rows()))["added"] == 3
            for number in range(3):
                await client.delete_article(f"py-async-{number}")
            with pytest.raises(ProblemError, match="not-found"):
                await client.get_article("py-async")

    asyncio.run(run())


def test_the_service_is_ready_and_routed(client):
    assert client.get_readiness()["status"] == "ready" and client.get_liveness() == {"status": "alive"}
    assert client.list_methods()["release"] == client.list_releases()["active"] == "demo"
    routing = client.get_routing()
    assert client.set_routing(**routing) == routing
    assert "atelier_" in client.get_metrics() and client.get_coverage()["known"] > 1000


def test_an_id_of_dots_names_nothing_else(client):
    for wrong in ("", ".", ".."):
        for call in (client.get_article, client.delete_article, client.erase_customer, client.activate_release):
            with pytest.raises(ValueError, match="no id"):
                call(wrong)


def test_a_key_goes_over_http_to_this_machine_only(monkeypatch):
    for safe in ("https://shop.example", "http://localhost:8080", "http://127.0.0.2", "http://[::1]:8080"):
        Client(safe, key="atl_x").close()
    for open_to_all in ("http://shop.example", "http://10.0.0.1:8080", "http://localhost.example", "http://127.0.0.1.example"):
        with pytest.raises(ValueError, match="https"):
            Client(open_to_all, key="atl_x")
        Client(open_to_all, key="atl_x", allow_http=True).close()
        Client(open_to_all).close()
    monkeypatch.setenv("ATELIER_KEY", "atl_x")
    with pytest.raises(ValueError, match="https"):
        AsyncClient("http://shop.example")
