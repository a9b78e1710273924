"""Completes outfits with Ray: a share of the parts per task, then reads the suggestions.

    python ray_nightly.py --articles articles.parquet --folder /data/tonight --shares 8

Every node needs the `atelier` binary, the release, and the folder with `outfits/`, whose files docs/operations.md
describes.
"""

import argparse
import subprocess
import time

import ray

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
for name in ["articles", "folder"]:
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--shares", type=int, default=8)
parser.add_argument("--cpus", type=int, help="of a session on this machine [default: all, or the cluster's]")
options = parser.parse_args()
folder = options.folder


# Ray repeats a task whose worker died; `retry_exceptions` repeats it if `atelier` was killed, too. Parts that exist are
# skipped, so a repeated task makes only those that are missing.
@ray.remote(num_cpus=1, max_retries=3, retry_exceptions=[subprocess.CalledProcessError])
def complete(share):
    subprocess.run(
        ["atelier", "complete", f"--input={folder}/outfits", f"--output={folder}/suggestions", "--k=20",
         f"--articles={options.articles}", "--set=engine.workers=1", f"--share={share}/{options.shares}"],
        check=True,
    )  # fmt: skip


ray.init(num_cpus=options.cpus)
began = time.monotonic()
ray.get([complete.remote(share) for share in range(options.shares)])
seconds = time.monotonic() - began
print(f"{ray.data.read_parquet(f'{folder}/suggestions').count()} suggestions in {seconds:.2f} s")
