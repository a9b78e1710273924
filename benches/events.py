"""Measures how many events a second the service records, on SQLite.

    python3 benches/events.py                 (30 s; release build)

Starts the service on the demo's world and sends batches of 100 events from four callers: views, baskets, purchases, returns and
kept articles, of customers and visitors, one in five with the ticket of a completion. Prints the events a second, those of a
processor second of the service, and the time of a batch. Standard library only.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles

import speed

PORT = speed.PORTS["events"]
KINDS = ["viewed"] * 70 + ["added"] * 15 + ["bought"] * 10 + ["returned"] * 3 + ["kept"] * 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--callers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--tickets", type=float, default=0.2, help="the share of events with a ticket")
    arguments = parser.parse_args()
    os.chdir(speed.ROOT)
    target = speed.build_programs()
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(target / "atelier"), "--database", f"sqlite:{scratch}/events.db", "--set", "access.require_key=false"]
        subprocess.run([*command, "import", "models/demo"], check=True, stderr=subprocess.DEVNULL)
        log = open(Path(scratch) / "log", "w", encoding="utf-8")
        server = speed.Server("events", [*command, "serve", "--address", f"127.0.0.1:{PORT}"], "/readyz", log)
        try:
            measure(arguments, server)
        finally:
            server.stop()


def measure(arguments, server):
    suggested = tickets()
    before, began, took, failed = cpu(server), time.monotonic(), [], []
    until = began + arguments.seconds
    callers = [
        threading.Thread(target=call, args=(arguments, number, suggested, until, took, failed))
        for number in range(arguments.callers)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    seconds, used = time.monotonic() - began, cpu(server) - before
    events = len(took) * arguments.batch
    print(json.dumps({
        "machine": speed.machine(), "batch": arguments.batch, "callers": arguments.callers, "refused": len(failed),
        "events_per_second": round(events / seconds), "per_cpu_second": round(events / used),
        "batch_p50_ms": round(1000 * median(took), 1), "batch_p99_ms": round(1000 * quantiles(took, n=100)[98], 1),
    }))
    assert not failed, failed[:3]


def tickets():
    """Completions: each with its customer, its ticket and an article that it suggested."""
    found, connection = [], http.client.HTTPConnection("127.0.0.1", PORT)
    customers = [item["id"] for item in ask(connection, "GET", "/customers?n=200")["items"]]
    articles = [item["id"] for item in ask(connection, "GET", "/articles?n=500")["items"]]
    for customer in customers:
        body = {"customer": customer, "outfit": [random.choice(articles), None], "k": 20}
        answer = ask(connection, "POST", "/complete", body)
        for suggestion in answer["blanks"][0]["suggestions"]:
            found.append((customer, answer["completion_id"], suggestion["article"]["id"]))
    return found


def call(arguments, number, suggested, until, took, failed):
    connection, chance, batch = http.client.HTTPConnection("127.0.0.1", PORT), random.Random(number), 0
    while time.monotonic() < until:
        events = []
        for place in range(arguments.batch):
            customer, ticket, article = chance.choice(suggested)
            event = {"id": f"{number}-{batch}-{place}", "kind": chance.choice(KINDS), "article": article}
            event |= {"customer": customer} if chance.random() < 0.5 else {"visitor": f"v-{chance.random()}"}
            if event["kind"] in ("bought", "returned", "kept"):
                event |= {"order": f"{number}-{chance.randrange(100_000)}", "value": 49.9}
            if chance.random() < arguments.tickets:
                event["ticket"] = ticket
            events.append(event)
        began = time.monotonic()
        answer = ask(connection, "POST", "/events", events)
        took.append(time.monotonic() - began)
        failed += [item for item in answer if item.get("recorded") is not True]
        batch += 1


def ask(connection, method, path, body=None):
    headers = {"Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, (answer.status, text[:500])
    return json.loads(text)


def cpu(server):
    """The processor seconds that the service used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
