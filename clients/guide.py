"""Runs docs/examples/api.py or api.ts, which make the requests of docs/api.md, against the service at ATELIER_URL with an untouched demo:

    python guide.py python | ts
    python guide.py COMMAND…     # a program that does the same with another client, and prints each answer that is shown

A cell, which begins with `%%` and the title of its section, makes the requests of one shell example. What it prints last, if that is an object or
a list, must have all that the guide shows as its answer.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from blocks import check

DOCS = Path(__file__).resolve().parent.parent / "docs"
NEXT = "-- next example --"
RUN = {
    "python": ("py", [sys.executable, "-"], "import builtins, json, sys\nbuiltins.print = lambda *values: sys.stdout.write(json.dumps(values, default=str) + '\\n')\n", f"sys.stdout.write('{NEXT}\\n')\n"),
    "ts": ("ts", ["node", "--input-type=module"], "console.log = (...values) => void process.stdout.write(JSON.stringify(values) + '\\n');\n", f"process.stdout.write('{NEXT}\\n');\n"),
}


def examples():
    """The section of each shell example, and the answer that is shown."""
    found, section = [], None
    for title, kind, code in re.findall(r"^#{2,3} ([^\n]+)$|^```(\w+)\n(.*?)^```$", (DOCS / "api.md").read_text(), re.DOTALL | re.MULTILINE):
        if title:
            section = title
        elif kind == "sh":
            found.append((section, None))
        else:
            found[-1] = (section, json.loads(code))
    return found


def cells(ending):
    """What a file does before its first cell, and the title and code of each cell."""
    before, *rest = re.split(r"^(?:#|//) %% (.+)\n", (DOCS / f"examples/api.{ending}").read_text(), flags=re.MULTILINE)
    return before, list(zip(rest[::2], rest[1::2], strict=True))


language = sys.argv[1]
if language not in RUN:
    answers = subprocess.run(sys.argv[1:], text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    shown = [answer for _, answer in examples() if answer is not None]
    for answer, printed in zip(shown, answers, strict=True):
        check(answer, json.loads(printed))
    print(f"{len(shown)} answers are as shown")
    sys.exit()
ending, command, before, after = RUN[language]
steps = examples()
first, parts = cells(ending)
sections, titles = [section for section, _ in steps], [title for title, _ in parts]
assert titles == sections, f"docs/examples/api.{ending} has the cells {titles}, docs/api.md examples in {sections}"
program = before + first + after.join(code for _, code in parts)
ran = subprocess.run(command, input=program, text=True, stdout=subprocess.PIPE)
printed = ran.stdout.split(NEXT + "\n")
assert ran.returncode == 0, f"failed after {printed[-1]}"
checked = 0
for (_, shown), said in zip(steps, printed, strict=True):
    last = json.loads(said.splitlines()[-1]) if said.strip() else []
    if shown is not None and len(last) == 1 and isinstance(last[0], dict | list):
        check(shown, last[0])
        checked += 1
print(f"{len(steps)} examples ran, {checked} gave the answer that is shown")
assert checked >= 25
