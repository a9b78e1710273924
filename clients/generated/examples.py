"""The examples of docs/api.md with the client that openapi-generator makes for Python, against the service at ATELIER_URL.

It prints the answer that each example shows, and ../guide.py compares them.
"""

import json
import os
import time

import openapi_client as api
from openapi_client.exceptions import ApiException

client = api.ApiClient(api.Configuration(host=os.environ["ATELIER_URL"] + "/v1"))
articles, completion, customers, documents, experiments, feedback, feeds, looks, outfits, releases, rules, service = (
    kind(client)
    for kind in (
        api.ArticlesApi, api.CompletionApi, api.CustomersApi, api.DocumentsApi, api.ExperimentsApi,
        api.FeedbackApi, api.FeedsApi, api.LooksApi, api.OutfitsApi, api.ReleasesApi, api.RulesApi, api.ServiceApi,
    )
)


def show(answer):
    print(json.dumps(client.sanitize_for_serialization(answer)))


def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except ApiException as problem:
        return problem
    raise AssertionError("it was not refused")


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


for key in ({"access_token": "atl_not-a-key"}, {"api_key": {"header": "atl_not-a-key"}}):
    keyed = api.ReleasesApi(api.ApiClient(api.Configuration(host=client.configuration.host, **key)))
    unknown = refused(keyed.list_methods)
show(unknown.data)
assert service.get_liveness().status == "alive"
show(service.get_readiness())
assert "atelier_model_info{" in service.get_metrics()
assert releases.list_releases().active == "demo"
show(releases.list_methods())

articles.put_article("new-coat", {"type": "coat", "colour": "red", "price": 189.0, "in_stock": True})
show(articles.import_articles(lines({"id": "new-hat", "type": "hat", "price": 29.9}, {"id": "new-scarf", "type": "scarf", "price": 35})))
articles.patch_article("new-coat", {"price": 149, "colour": None, "brand": "Linden"})
articles.import_articles(lines({"id": "new-scarf", "in_stock": False}), mode="merge")
show(articles.get_article("new-scarf"))
show(refused(articles.put_article, "new-coat", {"type": "coat"}, if_none_match="*").data)
version = articles.get_article_with_http_info("new-coat").headers["etag"]
assert refused(articles.get_article, "new-coat", if_none_match=version).status == 304
assert articles.list_articles(search="linden wool", n=2).next_cursor
coats = articles.list_articles(type="coat", where=["colour:navy", "in_stock:true"])
assert coats.items[0].additional_properties["colour"] == "navy"
articles.delete_article("new-hat")
show(articles.get_article("new-coat"))
show(articles.get_coverage())
odd = "ü/50 % wool?#+&.."
articles.put_article(odd, {"type": "hat", "variants": [{"id": "S/1", "stock": {"zurich": 1}, "fabric": "felt"}]})
assert articles.get_article(odd).id == odd
articles.delete_article(odd, if_match="*")

imports = api.ImportsApi(client)
sent = imports.send_feed("shop", b"id,type,price\nfed,hat,29.90\n", mode="merge")
while (ended := imports.get_import(sent.id)).state in ("waiting", "running"):
    time.sleep(0.05)
assert (ended.state, ended.result.added) == ("done", 1), ended
show(ended)
assert imports.list_imports().imports[0].id == sent.id
assert refused(imports.cancel_import, sent.id).data.code == "conflict"
assert imports.undo_import(sent.id).state == "undone"
nightly = api.Feed.from_dict({"url": "https://shop.invalid/feed.xml", "schedule": {"at": ["04:30"]}})
assert feeds.put_feed("nightly", nightly).schedule.at == ["04:30"]
assert feeds.patch_feed("nightly", {"schedule": {"at": ["05:15"]}}).schedule.at == ["05:15"]
feeds.fetch_feed("nightly")
assert feeds.list_feeds().feeds[0].name == feeds.get_feed("nightly").name
feeds.delete_feed("nightly")

mara = {"gender": "female", "age": 34, "preferred_colours": ["black", "red"], "nogo_materials": ["leather"]}
show(customers.put_customer("mara", api.CustomerPut(features=mara)))
show(customers.patch_customer("mara", api.CustomerPatch(features={"age": 35, "fit": "regular"})))
customers.import_customers(lines({"id": "noor", "features": {"gender": "male", "fit": "slim"}}))
assert len(customers.list_customers(n=1).items) == 1
show(customers.get_customer("noor"))

filters = {"types": {"1": ["coat", "blazer"]}, "price": {"max": 200}, "exclude": ["a-01243"]}
outfit = ["a-00134", None, "a-00568", "a-00259", "a-00315"]
completed = completion.complete_outfit(api.Complete(customer="mara", outfit=outfit, k=3, filters=api.Filters.from_dict(filters)))
show(completed)
for body in (
    {
        "features": {"gender": "female", "top_size": "M"}, "outfit": ["a-00134", None, "a-00568", "a-00259"], "k": 2,
        "filters": {"types": {"1": ["coat", "blazer"]}, "fit": False, "in_stock": False},
    },
    {
        "features": {"gender": "female", "occasion": "office"}, "outfit": ["a-00134", "a-00568", None, "a-00259"],
        "method": "gsu", "k": 2, "lift": True, "explain": True, "diversity": 0.3,
    },
    {"customer": "mara", "outfit": ["a-00134", None, "a-00568", None], "k": 2, "sets": 1},
):
    show(completion.complete_outfit(api.Complete.from_dict(body)))
items = [{"customer": "mara", "outfit": ["a-00134", "a-00568", "a-00259", None], "k": 1}, {"customer": "nobody", "outfit": [None]}]
show(completion.complete_outfits(api.BatchBody.from_dict({"items": items})))
own = api.Rule.from_dict({
    "effect": "boost", "factor": 2, "articles": {"attributes": {"brand": ["Linden"]}},
    "when": {"features": {"gender": ["female"]}}, "state": "active",
})
assert rules.put_rule("own-brand", own, dry_run=True).article_count == rules.put_rule("own-brand", own).article_count > 0
rules.patch_rule("own-brand", {"state": "off"})
assert rules.get_rule("own-brand").state == "off"
show(rules.list_rules())
rules.delete_rule("own-brand")
assert len(articles.find_similar_articles("a-00134", customer="mara", n=2).items) == 2
show(looks.complete_look("a-00134", customer="mara", n=2, total_max=400))
own = api.Look.from_dict({
    "title": "Autumn office", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"],
    "when": {"features": {"gender": ["female"]}}, "state": "published",
})
assert looks.put_look("autumn-office", own).warnings == []
looks.patch_look("autumn-office", {"state": "draft"})
assert looks.get_look("autumn-office").state == "draft"
show(looks.list_looks())
looks.delete_look("autumn-office")
compared = {
    "customer": "mara", "outfit": ["a-00134", None, "a-00568", "a-00259"], "methods": ["none", "gsu"], "k": 3,
    "true_article": "a-01243",
}
show(completion.compare_suggestions(api.Compare.from_dict(compared)))
show(completion.score_outfit(api.Score(customer="mara", outfit=["a-00134", "a-01243", "a-00568", "a-00259"])))

coat = completed.blanks[0].suggestions[0].article.id
event = {"completion_id": completed.completion_id, "slot": 1, "customer": "mara", "article": coat}
events = [{**event, "id": "view-1", "kind": "shown"}, {**event, "id": "click-1", "kind": "accepted"}]
foreign = {**events[0], "id": "view-2", "completion_id": "foreign"}
*taken, problem = feedback.report_feedback([api.FeedbackEvent.from_dict(event) for event in [*events, foreign]])
show(taken)
assert problem.code == "not-found" and problem.recorded is None
show(feedback.get_feedback_counts())
show(feedback.get_acceptance(by="method", days=30))
print(feedback.export_accepted_outfits().decode(), end="")

happened = api.EventsApi(client)
sold = {"id": "order-1/1", "kind": "bought", "customer": "mara", "article": "a-00568", "order": "1", "value": 64.5}
show(happened.record_events([api.Event.from_dict(sold)]))
happened.import_events(lines({"id": "view-3", "kind": "viewed", "article": "a-00568"}))
show(happened.get_event_counts(days=30))

articles_kept = ["a-00134", "a-01243", "a-00568", "a-00259"]
kept = outfits.save_outfit(api.OutfitSave(articles=articles_kept, features={"occasion": "office"}))
outfits.patch_outfit(kept.id, api.OutfitPatch(customer="mara"))
show(outfits.get_outfit(kept.id))
outfits.import_outfits(lines({"customer": "mara", "articles": ["a-00134", "a-00587", "a-00568", "a-00259"]}))
outfits.delete_outfit(kept.id)
show(customers.list_customer_outfits("mara"))

releases.set_routing(api.Routing(default_method="match"))
arms = [api.Arm(name="today", method="match", share=1), api.Arm(name="new", method="gsu", share=1)]
experiments.put_experiment("autumn", api.Experiment(arms=arms))
experiments.patch_experiment("autumn", {"state": "running", "share": 20})
assert experiments.get_experiment_figures("autumn").decision.state == "collecting"
assert experiments.get_experiment_customers("autumn").startswith(b"customer,arm,")
experiments.patch_experiment("autumn", {"state": "shipped", "winner": "new"})
assert experiments.get_experiment("autumn").winner == "new"
experiments.put_experiment("winter", api.Experiment(arms=arms))
experiments.delete_experiment("winter")
assert len(experiments.list_experiments().experiments) == 1
show(releases.get_routing())
show(releases.activate_release("demo"))
large = api.Complete.model_construct(outfit=[None], k=9000)
show(refused(completion.complete_outfit, large).data)
for text in (documents.get_docs_page(), documents.get_problems_page(), documents.get_document("api.md"), documents.list_documents()):
    assert "Atelier" in text or "Problem" in text
show(documents.get_open_api_document())
show(customers.export_customer("mara"))
customers.erase_customer("mara")
show(refused(customers.get_customer, "mara").data)
