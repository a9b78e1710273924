#!/usr/bin/env python3
"""The whole loop on a simulated shop, through the real programs: events, a refresh, an experiment, a decision, a better release.

    cargo build --release --workspace --example research --bins
    PATH="$PWD/target/release:$PWD/target/release/examples:$PATH" python3 training/research/loop.py loop

The script creates the folder `loop`: loop.json has all figures, and the database, releases and logs lie beside it.

In weeks 1 to 4 the first release answers. Customers accept suggestions, buy, and send back. What they bought in week 1 comes as a
file of orders, later purchases as events. deploy/refresh exports that and makes a candidate in another folder, as on another machine,
unless it would cover too little of the catalogue; POST /releases takes it. A file without colours is refused before. In week 5 an experiment splits the customers between
both releases, with a look at the figures after each day until it decides; the script counts the same. The winner is shipped, and the
service restarted. In week 6, which neither release saw, nothing owned is suggested, and both answer the same questions.

A question is an outfit of the world with one blank. The customer accepts if the article that the world's taste model drew for the
blank is among the five suggested ones of its type. The world knows no release.

Two things were chosen so that the script takes minutes. The model is narrow. Fashions move by 0.5 a week (--movement), where the
simulation in docs/training.md has 0.2, so the first release ages faster and the difference is larger.

The number of questions follows from the difference. With two equal arms, about 75 % were accepted, and the interval after 1,968
questions reached 0.077 to each side: 3.1 standard errors, and 1.6 times the variance of independent questions. A difference of
0.09 then takes about 2,450 questions (80 % power). The script asks about 3,900, and fails if the experiment does not decide.
"""

import argparse
import collections
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import time
import urllib.error
import urllib.request

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
PAST, DAYS, SHOWN, TOGETHER = 4, 7, 5, 200
SIZE = "--articles 800 --customers 600 --outfits 300 --orders 250 --asked 800".split()
SETTINGS = """
fit = {epochs = 6, batch = 32, learning_rate = 0.003, warm_up = 0.5}
model = {width = 16, heads = 2, hidden = 32, blocks = 2, feature_width = 8, matching = 16, memory = 8}
"""
REFRESH = ["--weeks", "1", "--minutes", "9"]


class Shop:
    """A running service, and the files of its shop."""

    def __init__(self, folder):
        self.folder, self.url, self.process = folder, None, None
        self.counts = collections.Counter()
        self.environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:{folder}/shop.db",
            "ATELIER__MODELS__FOLDER": f"{folder}/models",
            "ATELIER__MODELS__RELEASE": "first",
            "TMPDIR": str(folder),
        }

    def run(self, *command, **more):
        with open(self.folder / "log", "a") as log:
            return subprocess.run(command, cwd=self.folder, env={**self.environment, **more}, stdout=log, stderr=log)

    def must(self, *command):
        done = self.run(*command)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} failed: see {self.folder}/log")

    def start(self):
        command = ["atelier", "serve", "--address", "127.0.0.1:0", "--set", "access.require_key=false"]
        log = open(self.folder / "service.log", "w")
        self.process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise SystemExit(f"the service does not start: see {self.folder}/service.log")
        self.url = "http://" + line.split("http://")[1].split("/")[0].strip()

    def ask(self, method, path, body=None, kind="application/json", **headers):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind, **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def rows(self, week, table):
        with open(self.folder / f"shop/week-{week}/{table}.jsonl") as file:
            return [json.loads(line) for line in file]

    def open_week(self, week):
        """The week's catalogue, and its questions: an outfit, the blank, and the article that its customer wants."""
        self.must("atelier", "import", "--mirror", "--mirror-limit", "100", "--articles", f"shop/week-{week}/articles.jsonl")
        time.sleep(2)  # until the service has noticed
        types = {article["id"]: article["type"] for article in self.rows(week, "articles")}
        return [
            (outfit, slot, types[wanted])
            for outfit in self.rows(week, "outfits")
            for slot, wanted in enumerate(outfit["articles"])
        ]

    def questions(self, questions, events=None):
        """Asks, and says how many are accepted. `events` gets what customers saw and accepted."""
        accepted = 0
        for first in range(0, len(questions), TOGETHER):
            part = questions[first : first + TOGETHER]
            answers = self.ask("POST", "/complete/batch", {"items": [self.item(*question) for question in part]})
            for (outfit, slot, _), answer in zip(part, answers["items"]):
                wanted, customer = outfit["articles"][slot], outfit["customer"]
                [blank] = answer["blanks"]
                shown = [suggestion["article"]["id"] for suggestion in blank["suggestions"]]
                accepted += wanted in shown
                if events is not None:
                    self.counts[answer.get("arm"), "completions"] += 1
                    self.counts[answer.get("arm"), "accepted"] += wanted in shown
                    ticket = answer["completion_id"]
                    event = {"customer": customer, "ticket": ticket}
                    events.append({**event, "kind": "viewed", "article": shown[0], "id": f"{ticket}/viewed"})
                    if wanted in shown:
                        events.append({**event, "kind": "added", "article": wanted, "id": f"{ticket}/added"})
        return accepted

    @staticmethod
    def item(outfit, slot, kind):
        articles = [None if place == slot else article for place, article in enumerate(outfit["articles"])]
        # The customer is looking for this type. What is wanted is drawn from all articles that are sold.
        filters = {"types": {str(slot): [kind]}, "fit": False, "in_stock": False, "no_gos": False}
        asked = {"customer": outfit["customer"], "outfit": articles, "k": SHOWN, "filters": filters, "fields": []}
        return {**asked, "features": outfit["features"]} if outfit.get("features") else asked

    def report(self, events):
        for first in range(0, len(events), 1000):
            answers = self.ask("POST", "/events", events[first : first + 1000])
            bad = [answer for answer in answers if not answer.get("recorded") or "warning" in answer]
            if bad:
                raise SystemExit(f"an event was not recorded: {bad[0]}")

    def import_orders(self, week):
        """What customers bought and sent back, in the file from which `atelier-training import` makes outfits."""
        rows = self.rows(week, "events")
        back = {(row["order"], row["article"]) for row in rows if row["kind"] == "returned"}
        with open(self.folder / "orders.jsonl", "w") as file:
            for row in rows:
                if row["kind"] == "bought":
                    line = {name: row[name] for name in ("order", "customer", "article", "time")}
                    print(json.dumps({**line, "returned": (row["order"], row["article"]) in back}), file=file)
        self.must("atelier", "import", "--orders", "orders.jsonl")
        return len(rows)

    def refuse_forgotten_column(self, week):
        """A file of the catalogue without its colours, as with a forgotten `--map`, takes nothing away."""
        rows = [{name: value for name, value in row.items() if name != "colour"} for row in self.rows(week, "articles")]
        (self.folder / "forgotten.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = self.run("atelier", "import", "--mirror", "--mirror-limit", "99", "--articles", "forgotten.jsonl")
        kept = self.ask("GET", f"/articles/{rows[0]['id']}")
        if done.returncode == 0 or "--force" not in (self.folder / "log").read_text() or "colour" not in kept:
            raise SystemExit(f"a forgotten column took colours away: {kept}")

    def count_owned(self, questions, weeks):
        """How many customers were asked, none of whom is offered what they bought and kept."""
        owned = collections.defaultdict(set)
        for row in [row for week in weeks for row in self.rows(week, "events")]:
            change = owned[row["customer"]].add if row["kind"] == "bought" else owned[row["customer"]].discard
            change(row["article"])
        asked = {outfit["customer"]: (outfit, slot, kind) for outfit, slot, kind in questions if owned[outfit["customer"]]}
        items = [{**self.item(*question), "k": 50, "filters": {}} for question in asked.values()][:TOGETHER]
        for item, answer in zip(items, self.ask("POST", "/complete/batch", {"items": items})["items"]):
            shown = {suggestion["article"]["id"] for blank in answer["blanks"] for suggestion in blank["suggestions"]}
            if shown & owned[item["customer"]]:
                raise SystemExit(f"{item['customer']} is offered what they own: {shown & owned[item['customer']]}")
        return len(items)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="the folder to create")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--movement", type=float, default=0.5, help="how much fashions move in a week")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    shop = Shop(options.out.resolve())
    try:
        figures = loop(shop, options)
    finally:
        if shop.process:
            shop.stop()
    (shop.folder / "loop.json").write_text(json.dumps(figures, indent=2) + "\n")


def loop(shop, options):
    world = ["--seed", str(options.seed), "--movement", str(options.movement)]
    figures = {"seed": options.seed, "movement": options.movement, "weeks": [], "days": []}
    shop.must("research", "shop", "--out", "shop", "--weeks", str(PAST + 2), *SIZE, *world)
    (shop.folder / "settings.toml").write_text(SETTINGS)
    shop.must("atelier-training", "import", "shop/first", "--out", "data")
    shop.must("atelier-training", "fit", "--data", "data", "--config", "settings.toml", "--run", "run")
    shop.must("atelier-training", "release", "--name", "first", "--data", "data", "--runs", "run")
    shop.must("atelier", "import", "shop/first")
    shop.start()

    for week in range(1, PAST + 1):
        questions, events = shop.open_week(week)[::10], []
        accepted = shop.questions(questions, events)
        at = time.gmtime(time.time() - (PAST + 0.5 - week) * 7 * 86400)
        shop.report([{**event, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", at)} for event in events])
        if week == 1:
            recorded = shop.import_orders(week)
        else:
            bought = (shop.folder / f"shop/week-{week}/events.jsonl").read_bytes()
            done = shop.ask("POST", "/events/bulk", bought, "application/x-ndjson")
            if done["refused"] or done["unknown_articles"]:
                raise SystemExit(f"purchases were refused: {done}")
            recorded = done["recorded"]
        figures["weeks"].append({"week": week, "asked": len(questions), "accepted": accepted, "bought": recorded})
        print(f"week {week}: {accepted} of {len(questions)} suggestions accepted; {recorded} purchases and returns", flush=True)

    shop.refuse_forgotten_column(PAST)
    trained = shop.folder / "elsewhere"
    shutil.copytree(shop.folder / "models/first", trained / "first")
    done = shop.run(DEPLOY / "refresh", trained, *REFRESH, "--least-known", "1")
    said = (shop.folder / "log").read_text().splitlines()[-1]
    if done.returncode != 3 or "of the catalogue, at least 100.0 wanted" not in said:
        raise SystemExit(f"a refresh did not say how much it would cover: {said}")
    print(said, flush=True)
    done = shop.run(DEPLOY / "refresh", trained, *REFRESH)
    if done.returncode != 0:
        raise SystemExit(f"no candidate: see {shop.folder}/log")
    [candidate] = [path for path in trained.iterdir() if path.name != "first"]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(candidate, candidate.name)
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    shop.ask("POST", "/releases", packed.getvalue(), "application/gzip", **{"X-Content-SHA256": digest})
    figures["candidate"] = candidate.name
    print(f"candidate {candidate.name}: {candidate}/model-card.md", flush=True)

    questions = shop.open_week(PAST + 1)
    arms = [{"name": "today", "share": 1}, {"name": "new", "release": candidate.name, "share": 1}]
    shop.ask("PUT", "/experiments/refresh", {"arms": arms, "metric": "accepted"})
    shop.ask("PATCH", "/experiments/refresh", {"state": "running"}, "application/merge-patch+json")
    decision = {"state": "collecting", "winner": None}
    for day in range(DAYS):
        # Whole outfits: a customer's questions are of one day.
        customers = sorted({outfit["customer"] for outfit, *_ in questions})
        todays = set(customers[day::DAYS])
        events = []
        shop.questions([question for question in questions if question[0]["customer"] in todays], events)
        shop.report(events)
        found = shop.ask("GET", "/experiments/refresh/figures")
        decision, arms = found["decision"], {arm["arm"]: arm for arm in found["arms"]}
        for name, arm in arms.items():
            own = {figure: shop.counts[f"refresh/{name}", figure] for figure in ("completions", "accepted")}
            if any(arm[figure] != count for figure, count in own.items()):
                raise SystemExit(f"the figures of {name} are {arm}, the script counts {own}")
        [difference] = [one for one in found["differences"] if one["metric"] == "accepted"]
        figures["days"].append({"day": day + 1, "arms": found["arms"], "difference": difference, "decision": decision})
        show = difference["difference"]
        shares = ", ".join(
            f"{name} {arm['accepted']} of {arm['completions']} ({arm['customers']} customers)" for name, arm in arms.items()
        )
        interval = f"{show['value']:+.3f} ({show['low']:+.3f} to {show['high']:+.3f})" if show else "too few customers"
        print(f"day {day + 1}: {shares}; {interval}; {decision['state']}", flush=True)
        if decision["state"] != "collecting":
            break
    if decision["winner"] is None:
        raise SystemExit(f"the experiment did not decide for a release: {decision}")
    shop.ask(
        "PATCH", "/experiments/refresh", {"state": "shipped", "winner": decision["winner"]}, "application/merge-patch+json"
    )
    live = shop.ask("GET", "/methods")["release"]
    shop.stop()
    shop.start()
    if shop.ask("GET", "/methods")["release"] != live:
        raise SystemExit(f"{live} is not live after a restart")
    print(f"shipped {decision['winner']}: {live} is live", flush=True)

    questions = shop.open_week(PAST + 2)
    owners = shop.count_owned(questions, range(1, PAST + 1))
    print(f"nothing that they own is suggested to {owners} customers", flush=True)
    after = {"asked": len(questions), live: shop.questions(questions)}
    shop.ask("POST", "/releases/first/activate", {})
    after["first"] = shop.questions(questions)
    shop.ask("POST", f"/releases/{live}/activate", {})
    after["owners"] = owners
    figures.update(decision=decision, live=live, after=after)
    print(
        f"week {PAST + 2}, which neither saw: {after[live] / len(questions):.1%} accepted with {live}, "
        f"{after['first'] / len(questions):.1%} with first",
        flush=True,
    )
    return figures


main()
