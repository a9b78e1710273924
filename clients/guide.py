"""Runs the clients' examples of docs/api.md in one language, against the service at ATELIER_URL with an untouched demo:

    python guide.py python | ts
    python guide.py COMMAND…     # a program that does the same with another client, and prints each answer that is shown

What an example prints last, if it is an object or a list, must have all that the guide shows as its answer.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = (Path(__file__).resolve().parent.parent / "docs/api.md").read_text()
NEXT = "-- next example --"
RUN = {
    "python": ([sys.executable, "-"], "import builtins, json, sys\nbuiltins.print = lambda *values: sys.stdout.write(json.dumps(values, default=str) + '\\n')\n", f"sys.stdout.write('{NEXT}\\n')\n"),
    "ts": (["node", "--input-type=module"], "console.log = (...values) => void process.stdout.write(JSON.stringify(values) + '\\n');\n", f"process.stdout.write('{NEXT}\\n');\n"),
}


def examples(language):
    """The code in the language, and the answer that is shown, of each example. A shell block starts one."""
    found = [["", None]]
    for kind, code in re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL):
        if kind == "sh":
            found.append(["", None])
        elif kind == language:
            found[-1][0] = code
        elif kind == "json":
            found[-1][1] = json.loads(code)
    return found


def check(shown, found, place=""):
    """An ellipsis stands for anything, and ends a list early."""
    if shown == "…":
        assert found is not None, f"{place} is missing"
    elif isinstance(shown, dict):
        for name, value in shown.items():
            assert name in found, f"{place}/{name} is missing in {found}"
            check(value, found[name], f"{place}/{name}")
    elif isinstance(shown, list):
        more = bool(shown) and shown[-1] == "…"
        some = shown[: len(shown) - more]
        assert len(some) <= len(found) if more else len(some) == len(found), f"{place}: {found}"
        for number, (one, other) in enumerate(zip(some, found)):
            check(one, other, f"{place}/{number}")
    else:
        assert shown == found, f"{place}: {found} instead of {shown}"


language = sys.argv[1]
if language not in RUN:
    answers = subprocess.run(sys.argv[1:], text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    shown = [answer for _, answer in examples(language) if answer is not None]
    for answer, printed in zip(shown, answers, strict=True):
        check(answer, json.loads(printed))
    print(f"{len(shown)} answers are as shown")
    sys.exit()
command, before, after = RUN[language]
steps = examples(language)
lacking = [number for number, (code, _) in enumerate(steps) if not code]
assert not lacking, f"these examples of docs/api.md are not in {language}: {lacking}"
program = before + after.join(code for code, _ in steps)
program = program.replace("http://127.0.0.1:8080", os.environ["ATELIER_URL"])
ran = subprocess.run(command, input=program, text=True, stdout=subprocess.PIPE)
printed = ran.stdout.split(NEXT + "\n")
assert ran.returncode == 0, f"failed after {printed[-1]}"
checked = 0
for (code, shown), said in zip(steps, printed, strict=True):
    last = json.loads(said.splitlines()[-1]) if said.strip() else []
    if shown is not None and len(last) == 1 and isinstance(last[0], dict | list):
        check(shown, last[0])
        checked += 1
print(f"{len(steps)} examples ran, {checked} gave the answer that is shown")
assert checked >= 25
