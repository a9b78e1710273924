"""Compares a service that asks MLServer, with mlserver_runtime.py, with a service that has its own sessions.

    pip install --no-deps -r docs/examples/requirements-model-server.txt
    PATH="$PWD/target/release:$PATH" python docs/examples/try_model_server.py /tmp/model-server

.ci/run does not run this.
"""

import argparse
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
RELEASE = EXAMPLES.parent.parent / "models/demo"
QUESTIONS = 20

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("work", type=Path)
parser.add_argument("--port", type=int, default=8120, help="the first of five")
options = parser.parse_args()
work, port = options.work.resolve(), options.port
METHODS = [method["method"] for method in json.loads((RELEASE / "release.json").read_text())["methods"]]
programs = []


def main():
    shutil.rmtree(work, ignore_errors=True)
    for method in METHODS:
        write(f"demo-{method}/model-settings.json", {"name": f"demo-{method}", "implementation": "mlserver_runtime.OnnxModel", "parameters": {"uri": str(RELEASE / f"{method}.onnx")}})  # fmt: skip
    # No worker processes: those of MLServer 1.7.1 do not start with uvloop 0.23.
    ports = {"http_port": port, "grpc_port": port + 1, "metrics_port": port + 2}
    write("settings.json", {"host": "127.0.0.1", **ports, "parallel_workers": 0})
    start("mlserver", ["mlserver", "start", work], f"http://127.0.0.1:{port}/v2/health/ready")
    local, remote = [
        serve(name, number, *flags)
        for name, number, flags in [
            ("local", port + 3, ["--set", "engine.device=cpu"]),
            ("remote", port + 4, ["--set", f"engine.remote=http://127.0.0.1:{port}"]),
        ]
    ]
    devices = set()
    for method in METHODS:
        compared, differing, distance = 0, 0, 0.0
        for question in questions(method):
            answers = [ask(address, question) for address in (local, remote)]
            devices.add(tuple(answer["device"] for answer in answers))
            for one, other in zip(*(suggestions(answer) for answer in answers), strict=True):
                compared += 1
                differing += one["article"]["id"] != other["article"]["id"]
                distance = max(distance, abs(one["share"] - other["share"]))
        print(f"{method}: {compared} suggestions, {differing} of another article, shares within {distance:.1e}", flush=True)
        assert differing == 0 and distance < 1e-4
    assert devices == {("cpu", "remote")}, devices
    batch = {"items": [question for method in METHODS for question in questions(method)][:100]}
    answers = [ask(address, batch, "/complete/batch")["items"] for address in (local, remote)]
    for one, other in zip(*answers, strict=True):
        assert [found["article"]["id"] for found in suggestions(one)] == [found["article"]["id"] for found in suggestions(other)]
    print(f"a batch of {len(answers[0])}: the same articles")


def write(name, settings):
    path = work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


def serve(name, number, *flags):
    address = f"http://127.0.0.1:{number}"
    atelier = ["atelier", "--database", f"sqlite:{work}/{name}.db"]
    subprocess.run([*atelier, "import", RELEASE], check=True)
    start(name, [*atelier, "serve", "--models", RELEASE.parent, "--address", f"127.0.0.1:{number}", *flags], f"{address}/readyz")
    return address


def start(name, command, ready):
    with open(work / f"{name}.log", "w") as log:
        program = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(EXAMPLES)})
    programs.append(program)
    while True:
        assert program.poll() is None, f"{name} stopped: see {work}/{name}.log"
        try:
            urllib.request.urlopen(ready).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)


def questions(method):
    """Validation outfits of the release with a blank for their last article; every other also lacks the one before."""
    lines = (RELEASE / "outfits.jsonl").read_text().splitlines()[:QUESTIONS]
    for number, outfit in enumerate(map(json.loads, lines)):
        known = outfit["articles"][: -1 - number % 2]
        blanks = [None] * (len(outfit["articles"]) - len(known))
        yield {"customer": outfit["customer"], "features": outfit.get("features", {}), "outfit": known + blanks, "method": method, "k": 20}


def suggestions(answer):
    return [found for blank in answer["blanks"] for found in blank["suggestions"]]


def ask(address, question, path="/complete"):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address + path, json.dumps(question).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


try:
    main()
finally:
    for program in programs:
        program.terminate()
    for program in programs:
        program.wait()
