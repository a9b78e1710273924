"""Measures every page of the browser test with a large catalogue, and fails if one is slow.

    python3 benches/pages.py                (`just pages`; 30,000 articles, release build)

Signs in as the admin and gets each page that `tests/it/browser/every_page.rs` names, with the customers and the release that
there are here. Prints the 50th and 95th percentile of the times until the last byte, in milliseconds, and the processor
time of the service, which says more on a busy machine. Fails if a 95th percentile is above the limit. Standard library only.
"""

import argparse
import http.client
import os
import re
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import scale
import speed

LIST = speed.ROOT / "tests/it/browser/every_page.rs"
# Those that the listed pages name.
METHODS = ("gsu", "none", "latent")
# Pages that refuse, as in the browser test, and one about a key that is not there in this database.
EXPECTED = {"not-found": 404, "routing-refused": 422, "revoke-key": 404}
# A customer's pages for each of the test's customers.
CUSTOMERS = {"c-014871": "c-000871", "c-019029": "c-001029", "c-000010": "c-000010"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--articles", type=int, default=30_000)
    parser.add_argument("--times", type=int, default=20, help="how often each page is read")
    parser.add_argument("--limit", type=float, default=50, help="the most milliseconds of a page's 95th percentile")
    parser.add_argument("--report-only", action="store_true", help="do not fail if a page is slow")
    arguments = parser.parse_args()
    os.chdir(speed.ROOT)
    target = speed.build_programs()
    release = scale.make(target, arguments.articles, "pages", METHODS)
    server = scale.start(target, release)
    try:
        cookie = sign_in(target, server, release)
        found = [measure(server, cookie, name, path, arguments.times)
                 for name, path in [("sign-in", None), *pages(release)]]
    finally:
        server.stop()
    print(f"{arguments.articles:,} articles, {speed.machine()}; each page {arguments.times} times")
    print("| page | status | p50, ms | p95, ms | processor, ms | kB |\n|---|---|---|---|---|---|")
    for name, status, p50, p95, used, size in found:
        print(f"| {name} | {status} | {p50:.1f} | {p95:.1f} | {used:.1f} | {size / 1000:.0f} |")
    wrong = [f"{name}: status {status}" for name, status, *_ in found if status != EXPECTED.get(name, 200)]
    slow = [f"{name}: {p95:.1f} ms" for name, _, _, p95, *_ in found if p95 > arguments.limit]
    if wrong:
        sys.exit("these pages did not answer as in the browser test: " + ", ".join(wrong))
    if slow and not arguments.report_only:
        sys.exit(f"slower than {arguments.limit:.0f} ms: " + ", ".join(slow))


def pages(release):
    """The names and addresses of the browser test's pages."""
    text = re.sub(r"\\\n\s*", "", LIST.read_text(encoding="utf-8"))
    lists = re.findall(r"^const \w+: Pages = &\[(.*?)^\];", text, re.MULTILINE | re.DOTALL)
    found = [pair for each in lists for pair in re.findall(r'"([\w-]+)",\s*"(/[^"]*)"', each)]
    assert len(found) > 20, f"{LIST} has only {len(found)} pages"
    for name, path in found:
        for theirs, ours in CUSTOMERS.items():
            path = path.replace(theirs, ours)
        yield name, path.replace("/releases/demo", f"/releases/{release.name}")


def sign_in(target, server, release):
    """The session's cookie."""
    command = [str(target / "atelier"), "--database", f"sqlite:{scale.database(release)}", "sign-in-link"]
    line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    link = re.search(r"/sign-in/(\w+)", line).group(1)
    form = urllib.parse.urlencode({"link": link})
    status, headers, _ = request(connect(server), "POST", "/sign-in/link", form,
                                 {"content-type": "application/x-www-form-urlencoded"})
    assert status == 303, f"signing in: status {status}"
    return headers["set-cookie"].split(";")[0]


def measure(server, cookie, name, path, times):
    path, headers = (path, {"cookie": cookie}) if path else ("/sign-in", {})
    connection = connect(server)
    took = []
    headers["accept"] = "text/html"
    # The first time, the page may read what it then keeps.
    request(connection, "GET", path, None, headers)
    before = processor_ms(server)
    for _ in range(times):
        began = time.perf_counter()
        status, _, body = request(connection, "GET", path, None, headers)
        took.append(1000 * (time.perf_counter() - began))
    used = (processor_ms(server) - before) / times
    took.sort()
    return name, status, took[len(took) // 2], took[min(len(took) - 1, len(took) * 95 // 100)], used, len(body)


def connect(server):
    return http.client.HTTPConnection(server.url.removeprefix("http://"))


def request(connection, method, path, body, headers):
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def processor_ms(server):
    """Processor time of all threads so far."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


if __name__ == "__main__":
    main()
