"""The requests of docs/api.md with the Python client, in the order of the page. clients/check runs them."""

import hashlib
import os
import time

from atelier_client import Client, ProblemError

url = os.environ.get("ATELIER_URL", "http://127.0.0.1:8080")
run = f"py-{time.time_ns()}"  # so that ids are new each time
client = Client(url)  # with a key: Client("https://…", key="atl_…"), or the variable ATELIER_KEY

# %% API keys
try:
    Client(url, key="atl_not-a-key").list_methods()
except ProblemError as problem:
    print(problem)

# %% Health
client.get_liveness()
print(client.get_readiness())

# %% Health
print(client.get_metrics().count("atelier_model_info{"), "models")

# %% Health
client.list_releases()
print(client.list_methods())

# %% The catalogue
client.put_article("new-coat", {"type": "coat", "colour": "red", "price": 189.0, "in_stock": True})
print(client.import_articles([
    {"id": "new-hat", "type": "hat", "price": 29.9},
    {"id": "new-scarf", "type": "scarf", "price": 35},
]))

# %% The catalogue
client.patch_article("new-coat", {"price": 149, "colour": None, "brand": "Linden"})
client.import_articles([{"id": "new-scarf", "in_stock": False}], mode="merge")
print(client.get_article("new-scarf"))

# %% The catalogue
try:
    client.put_article("new-coat", {"type": "coat"}, if_none_match="*")
except ProblemError as problem:
    print(problem.code, client.request("GET", "/articles/new-coat").headers["etag"])

# %% The catalogue
found = client.list_articles(search="linden wool", n=2)  # reads page after page, as far as you go
next(found)
list(client.list_articles(type="coat", where={"colour": "navy", "in_stock": "true"}))
client.delete_article("new-hat")
print(client.get_article("new-coat"))

# %% The catalogue
print(client.get_coverage())

# %% Feeds
begun = client.send_feed("shop", b"id,type,price\nfeed-hat,hat,29.90\n", mode="merge")
print(client.get_import(begun["id"])["state"], len(client.list_imports()["imports"]))

# %% Feeds
client.put_feed("nightly", {"url": "https://shop.invalid/feed.xml", "schedule": {"at": ["04:30"]}})
client.patch_feed("nightly", {"schedule": {"at": ["05:15"]}})
client.fetch_feed("nightly")
print(client.get_feed("nightly")["state"]["due_at"], len(client.list_feeds()["feeds"]))
client.delete_feed("nightly")

# %% Customers
mara = {"gender": "female", "age": 34, "preferred_colours": ["black", "red"], "nogo_materials": ["leather"]}
print(client.put_customer("mara", mara))

# %% Customers
print(client.patch_customer("mara", {"age": 35, "fit": "regular"}))

# %% Customers
client.import_customers([{"id": "noor", "features": {"gender": "male", "fit": "slim"}}])
next(client.list_customers())
print(client.get_customer("noor"))

# %% Completing an outfit
completion = client.complete_outfit(
    customer="mara", outfit=["a-00134", None, "a-00568", "a-00259", "a-00315"], k=3,
    filters={"types": {"1": ["coat", "blazer"]}, "price": {"max": 200}, "exclude": ["a-01243"]},
)
print(completion)

# %% What fits
print(client.complete_outfit(
    features={"gender": "female", "top_size": "M"}, outfit=["a-00134", None, "a-00568", "a-00259"], k=2,
    filters={"types": {"1": ["coat", "blazer"]}, "fit": False, "in_stock": False},
))

# %% Visitors, reasons and sets
print(client.complete_outfit(
    features={"gender": "female", "occasion": "office"}, outfit=["a-00134", "a-00568", None, "a-00259"],
    method="gsu", k=2, lift=True, explain=True, diversity=0.3,
))

# %% Visitors, reasons and sets
print(client.complete_outfit(customer="mara", outfit=["a-00134", None, "a-00568", None], k=2, sets=1))

# %% Visitors, reasons and sets
items = [{"customer": "mara", "outfit": ["a-00134", "a-00568", "a-00259", None], "k": 1}, {"customer": "nobody", "outfit": [None]}]
answers = client.complete_outfits(items)  # any number: it sends up to 64 at a time, and reads as you go
print({"items": list(answers)})

# %% Rules
client.put_rule("own-brand", {
    "effect": "boost", "factor": 2, "articles": {"attributes": {"brand": ["Linden"]}},
    "when": {"features": {"gender": ["female"]}}, "state": "active",
})
client.patch_rule("own-brand", {"state": "off"})
client.get_rule("own-brand")
client.set_holdout(share=0)
client.get_holdout()
client.get_rule_effect("own-brand")
print(client.list_rules())
client.delete_rule("own-brand")

# %% Product pages
print(client.find_similar_articles("a-00134", customer="mara", n=2))
print(client.complete_look("a-00134", customer="mara", n=2, total_max=400))

# %% Looks
client.put_look("autumn-office", {
    "title": "Autumn office", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"],
    "when": {"features": {"gender": ["female"]}}, "state": "published",
})
client.patch_look("autumn-office", {"state": "draft"})
client.get_look("autumn-office")
print({"items": list(client.list_looks())})
client.delete_look("autumn-office")

# %% Comparing and scoring
print(client.compare_suggestions(
    customer="mara", outfit=["a-00134", None, "a-00568", "a-00259"], methods=["none", "gsu"], k=3, true_article="a-01243"
))

# %% Comparing and scoring
print(client.score_outfit(customer="mara", outfit=["a-00134", "a-01243", "a-00568", "a-00259"]))

# %% Feedback
event = {"completion_id": completion["completion_id"], "slot": 1, "customer": "mara"}
event["article"] = completion["blanks"][0]["suggestions"][0]["article"]["id"]
print(client.report_feedback([{**event, "id": f"view-{run}", "kind": "shown"}, {**event, "id": f"click-{run}", "kind": "accepted"}]))

# %% Feedback
print(client.get_feedback_counts())

# %% Feedback
print(client.get_acceptance(by="method", days=30))

# %% Feedback
for outfit in client.export_accepted_outfits():
    print(outfit)

# %% Events
event = {"kind": "bought", "customer": "mara", "article": "a-00568", "order": run, "value": 64.5}
print(client.record_events([{**event, "id": f"order-{run}/1"}]))

# %% Events
client.import_events([{"id": f"view-{run}", "kind": "viewed", "article": "a-00568"}])
print(client.get_event_counts(days=30))

# %% Saved outfits
kept = client.save_outfit(articles=["a-00134", "a-01243", "a-00568", "a-00259"], features={"occasion": "office"})
client.patch_outfit(kept["id"], {"customer": "mara"})
print(client.get_outfit(kept["id"]))

# %% Saved outfits
client.import_outfits([{"customer": "mara", "articles": ["a-00134", "a-00587", "a-00568", "a-00259"]}])
client.delete_outfit(kept["id"])
print({"items": list(client.list_customer_outfits("mara")), "next_cursor": None})

# %% Routing and releases
client.set_routing(default_method="match")
arms = [{"name": "today", "method": "match", "share": 1}, {"name": "new", "method": "gsu", "share": 1}]
client.put_experiment(f"autumn-{run}", {"arms": arms})
client.patch_experiment(f"autumn-{run}", {"state": "running", "share": 20})
client.patch_experiment(f"autumn-{run}", {"state": "shipped", "winner": "new"})
print(client.get_routing())

# %% Routing and releases
archive = b"the bytes of demo.tar.gz"
try:
    client.send_release(archive, hashlib.sha256(archive).hexdigest())
except ProblemError as problem:
    print(problem.code)

# %% Routing and releases
print(client.activate_release("demo"))

# %% Problems
try:
    client.complete_outfit(outfit=[None], k=9000)
except ProblemError as problem:
    print(problem.status, problem.code, problem.errors[0]["pointer"], problem.request_id)

# %% Problems
print(client.request("GET", "/openapi.json").json())

# %% Exporting and erasing a customer
print(client.export_customer("mara"))

# %% Exporting and erasing a customer
client.erase_customer("mara")
try:
    client.get_customer("mara")
except ProblemError as problem:
    print(problem.code)
