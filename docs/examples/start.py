"""Runs docs/start.md as a person would: each block of commands in order, in a fresh clone, and prints the seconds of each.

    git clone . /tmp/fresh && cd /tmp/fresh
    env -i PATH="$HOME/.cargo/bin:/usr/bin:/bin" HOME=/tmp/empty python3 docs/examples/start.py

`--binaries DIR` takes built programs instead of `cargo build`. .ci/run does not run this.
"""

import argparse
import os
import re
import subprocess
import time
import urllib.request
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--binaries", type=Path)
parser.add_argument("--port", default="8080")
options = parser.parse_args()

page = Path("docs/start.md").read_text(encoding="utf-8").replace("127.0.0.1:8080", f"127.0.0.1:{options.port}")
os.environ["ATELIER__SERVER__ADDRESS"] = f"127.0.0.1:{options.port}"
os.environ["PATH"] = f"{Path('target/release').resolve()}:{os.environ['PATH']}"
Path("first_call.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
if options.binaries:
    Path("target").mkdir(exist_ok=True)
    Path("target/release").symlink_to(options.binaries.resolve())
    page = page.replace("cargo build --release --workspace\n", "")

total, service = 0.0, None
for heading, commands in re.findall(r"^## ([^\n]*)\n(?:(?!^## ).)*?```sh\n(.*?)```", page, re.DOTALL | re.MULTILINE):
    print(f"== {heading}\n{commands}", flush=True)
    began = time.monotonic()
    shell = subprocess.Popen(["bash", "-euc", commands])
    if heading == "Serve":
        service = shell
        while True:
            assert service.poll() is None, "the service stopped"
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{options.port}/readyz").close()
                break
            except OSError:
                time.sleep(0.1)
    else:
        assert shell.wait() == 0, f"{heading} failed"
    seconds = time.monotonic() - began
    total += seconds
    print(f"== {heading}: {seconds:.1f} s\n", flush=True)
print(f"== together: {total:.1f} s")
service.terminate()
service.wait()
