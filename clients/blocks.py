"""Runs every block of every page, as it stands and in the page's order, in a copy of the repository:

    python blocks.py [PAGE]…          # all pages, with the programs in CARGO_TARGET_DIR/debug, and what clients/check installs
    python blocks.py --whole PAGE…    # with those in release, and as many epochs as the page trains

A block is fenced, or indented by four spaces. One that can't run here has `<!-- not run: REASON -->` above it; one that another test takes from
the page has `<!-- run by FILE -->`. Programs on the PATH stand in for two things only: `cargo` takes the programs that are built, and a service goes
on behind the page's next block, at a free port. Without `--whole`, `fit` trains one block for one epoch.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHOLE = "--whole" in sys.argv
PROGRAMS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / ("release" if WHOLE else "debug")
PAGES = ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "training/**/*.md", "clients/*/README.md"]
# A new mark is a decision: it is counted here.
NOT_RUN = {"GPU": 2, "PyTorch": 1, "encoder": 1, "browser": 2, "packages": 1, "Docker": 1, "CI": 1, "long": 6, "sketch": 4}
# A page that a test compares or runs as a whole.
RUN_BY = {"docs/reference.md": "tests/it/cli/reference.rs"}
DEMO = "export DATABASE_URL=sqlite:demo.db\natelier import models/demo\natelier --set access.require_key=false --set models.release=demo serve\n"
KEY = "key=$(atelier key create --label reader --scope complete,catalogue,admin)\n"
# Files and services that the reader has when the page begins.
GIVEN = {
    "README.md": """
printf 'id,type\\na,coat\\nb,hat\\n' >articles.csv; echo '{"id": "c"}' >customers.jsonl; echo '{"customer": "c", "articles": ["a", "b"]}' >outfits.jsonl
python3 -c 'import pyarrow.json, pyarrow.parquet; pyarrow.parquet.write_table(pyarrow.json.read_json("outfits.jsonl"), "outfits.parquet")'
""",
    "docs/api.md": DEMO,
    "docs/events.md": DEMO + "printf 'id,kind,article\\n1,viewed,a-00134\\n' >events.csv",
    "docs/feeds.md": f"""
export DATABASE_URL=sqlite:shop.db ATELIER__FEEDS__MIRROR_LIMIT=100 ATELIER__ACCESS__REQUIRE_KEY=false
variants='"variants": [{{"id": "TSH-1-S", "price": 20}}, {{"id": "TSH-1-M", "price": 20}}]'
printf '%s\\n' "{{\\"id\\": \\"TSH-1\\", \\"type\\": \\"shirt\\", $variants}}" '{{"id": "TSH-2", "type": "shirt"}}' >articles.jsonl
printf 'id,in_stock\\nTSH-2,yes\\n' >stock.csv
cp tests/fixtures/merchant.xml feed.xml; cp tests/fixtures/shopify.csv products_export.csv
echo 'Artikelnummer;Warengruppe;Preis\n1;Mäntel;99,50\n2;Hüte;19,50' | iconv -t windows-1252 >artikel.csv
printf 'Kundennummer;E-Mail\\n7;a@shop.example\\n' >kunden.csv; printf 'Kundennummer;Artikel\\n7;1|2\\n' >outfits.csv
atelier import --articles articles.jsonl; atelier serve; {KEY}""",
    "docs/model-contract.md": "python3 -m venv own; . own/bin/activate",
    "docs/operations.md": "mkdir small; cp models/demo/customers.jsonl small; head -n 200 models/demo/articles.jsonl >small/articles.jsonl\n"
    + DEMO.replace("models/demo\n", "small --schema models/demo/schema.toml\n") + "printf 'id\\na-00001\\n' >too-large.csv; mkdir outfits\n"
    """echo '{"customer": "c-000010", "articles": ["a-00134", null]}' >outfits/part-00000.jsonl""",
    "docs/orders.md": "python3 training/examples/rooms.py theirs --customers 300 --rooms 900; export DATABASE_URL=sqlite:rooms.db",
    "docs/security.md": "export DATABASE_URL=sqlite:shop.db; mkdir tls; openssl req -x509 -newkey ed25519 -noenc -keyout tls/key.pem -out tls/certificate.pem -subj /CN=shop",
    "docs/widget.md": "export DATABASE_URL=sqlite:shop.db; atelier migrate",
    "clients/python/README.md": DEMO + KEY + "python3 -m venv own; . own/bin/activate",
    "clients/typescript/README.md": DEMO + KEY,
}
NEXT = "-- next block --\n"
STOP = 'if [ -e "$HOME/pid" ]; then kill "$(cat "$HOME/pid")"; tail --pid="$(cat "$HOME/pid")" -f /dev/null; rm "$HOME/pid"; fi'
STAND_INS = {
    "cargo": """[ "$1" != build ] || exit 0
program=atelier
while [ $# -gt 0 ] && [ "$1" != -- ]; do if [ "$1" = -p ]; then program=$2; fi; shift; done
exec "$program" "${@:2}\"""",
    "atelier-training": ("" if WHOLE else 'if [ "$1" = fit ]; then set -- "$@" --epochs 1 --set model.blocks=1; fi\n') + """
exec "$PROGRAMS/atelier-training" "$@\"""",
    "atelier": """for word; do case "$word" in import|export|complete|looks|key|sign-in-link|migrate) exec "$PROGRAMS/atelier" "$@";; esac; done
""" + STOP + """
"$PROGRAMS/atelier" "$@" >"$HOME/said" 2>"$HOME/log" & echo $! >"$HOME/pid"
until grep -q "^Atelier is at" "$HOME/said"; do kill -0 $! || { cat "$HOME/log" >&2; exit 1; }; sleep 0.1; done 2>&1
cat "$HOME/said\"""",
}
# Names of files, and lines of each. What is not there is the reader's, and is written.
LISTING = r"""
import pathlib, re
files = {}
for name, line in re.findall(r"(?m)^(\S*) +(.+)$", pathlib.Path("block.text").read_text()):
    files.setdefault(name or list(files)[-1], []).append(line)
for name, lines in files.items():
    there = [file.read_text().splitlines() for file in pathlib.Path().glob(f"*/{name}")]
    assert not there or any(set(lines) <= set(text) for text in there), f"no {name} has all of {lines}"
    if not there:
        pathlib.Path(name).write_text("\n".join(lines) + "\n")
"""
MARK = r"(?:^<!-- (not run: |run by )([^\n]+) -->\n+)?"
BLOCK = re.compile(MARK + r"(?:^```(\w+)\n(.*?)^```$|(?<=\n\n)((?:^ {4,}\S[^\n]*\n)+))", re.DOTALL | re.MULTILINE)


def check(shown, found, place=""):
    """An ellipsis stands for anything, and ends a list early. A fraction is rounded."""
    if shown == "…":
        assert found is not None, f"{place} is missing"
    elif isinstance(shown, dict):
        for name, value in shown.items():
            assert isinstance(found, dict) and name in found, f"{place}/{name} is missing in {found}"
            check(value, found[name], f"{place}/{name}")
    elif isinstance(shown, list):
        more = bool(shown) and shown[-1] == "…"
        some = shown[: len(shown) - more]
        assert len(some) <= len(found) if more else len(some) == len(found), f"{place}: {found}"
        for number, (one, other) in enumerate(zip(some, found)):
            check(one, other, f"{place}/{number}")
    elif isinstance(shown, float):
        assert abs(shown - found) < 0.6 * 10 ** -len(str(shown).split(".")[1]), f"{place}: {found} instead of {shown}"
    else:
        assert shown == found, f"{place}: {found} instead of {shown}"


def last_json(text):
    found, rest = None, text.strip()
    while rest:
        found, end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:].lstrip()
    return found


def command(kind, code, above):
    """The shell's commands for a block, which is saved first, with the service's address and a key where the page has examples."""
    name = re.search(r"Save this as `([^`]+)`", above)
    file = name[1] if name else f"block.{kind}"
    saved = f"""sed "s,https\\?://\\(127.0.0.1:8080\\|atelier.example\\),http://$ATELIER__SERVER__ADDRESS,;s/atl_…/${{key-}}/" >{file} <<'END OF BLOCK'\n{code}\nEND OF BLOCK\n"""
    schema = "import --articles empty.jsonl --schema" if "[[feature]]" in code else "migrate --config"
    runs = {
        "sh": ". ./block.sh",
        "python": "python3 - <block.python" if not name else "",
        "ts": "node --input-type=module - <block.ts",
        "csv": "atelier import --merge --articles block.csv",
        "toml": f": >empty.jsonl; atelier {schema} block.toml --database sqlite:block.db",
        "text": f"python3 - <<'END'\n{LISTING}END\n",
    }
    assert kind in runs, f"a block of {kind} runs nowhere: mark it\n{code}"
    return saved + runs[kind]


def run(page, text, port):
    """Runs a page's blocks; returns how many ran, and the marks of the others."""
    marks, steps = Counter(), []
    for block in BLOCK.finditer(text):
        mark, reason, kind, code, indented = block.groups()
        if mark or page in RUN_BY:
            reason = reason or RUN_BY[page]
            assert mark == "not run: " or page in (ROOT / reason).read_text(), f"{reason} does not name {page}"
            marks[reason] += 1
        elif kind == "json":
            assert steps and steps[-1][1] is None, f"{page}: an answer to nothing: {code}"
            steps[-1] = (steps[-1][0], json.loads(code))
        else:
            above = text[: block.start()].rstrip().split("\n\n")[-1]
            steps.append((command(kind or "sh", code or re.sub("(?m)^ {4,}", "", indented), above), None))
    if not steps:
        return 0, marks
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(f"git ls-files -z | tar --null -T - -c | tar -x -C {folder}", shell=True, cwd=ROOT, check=True)
        programs, home = Path(folder, "target/release"), Path(folder, "home")
        programs.mkdir(parents=True)
        home.mkdir()
        for name, code in STAND_INS.items():
            (programs / name).write_text(f"#!/usr/bin/env bash\nset -eu\n{code}\n")
            (programs / name).chmod(0o755)
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        env |= {"HOME": str(home), "XDG_CACHE_HOME": cache, "npm_config_cache": f"{cache}/npm", "PATH": f"{programs}:{env['PATH']}"}
        env |= {"PROGRAMS": str(PROGRAMS), "ATELIER__SERVER__ADDRESS": f"127.0.0.1:{port}"}
        begin = f"set -e -o pipefail; shopt -s expand_aliases; exec 2>home/errors; trap '{STOP}' EXIT"
        program = f"\necho '{NEXT}'\n".join([begin, GIVEN.get(page, ""), *(code for code, _ in steps)])
        ran = subprocess.run(["bash", "-c", program], stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, cwd=folder, env=env)
        printed = ran.stdout.split(NEXT)[2:]
        last = steps[len(printed) - 1][0] if printed else GIVEN.get(page)
        assert ran.returncode == 0, f"{page}: failed in\n{last}\n{(printed or [''])[-1]}\n{(home / 'errors').read_text()}"
    for (code, shown), said in zip(steps, printed, strict=True):
        if shown is not None:
            check(shown, last_json(said), f"{page}: {code}\n")
    return len(steps) + sum(shown is not None for _, shown in steps), marks


def main(pages):
    found = sorted(str(path.relative_to(ROOT)) for glob in PAGES for path in ROOT.glob(glob))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    marks, blocks = Counter(), 0
    for page in pages or found:
        began = time.monotonic()
        ran, marked = run(page, (ROOT / page).read_text(), port)
        if ran or marked:
            print(f"{page}: {ran} blocks ran in {time.monotonic() - began:.0f} s", *(f"{count}: {reason}" for reason, count in marked.items()), sep="; ", flush=True)
        marks, blocks = marks + marked, blocks + ran
    not_run = {reason: count for reason, count in marks.items() if not (ROOT / reason).exists()}
    print(f"{blocks} blocks ran, {marks.total() - sum(not_run.values())} run elsewhere, {sum(not_run.values())} do not run: {not_run}")
    assert pages or not_run == NOT_RUN, f"these marks were found: {not_run}"


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--whole"])
