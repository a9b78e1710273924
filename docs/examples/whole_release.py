#!/usr/bin/env python3
"""Makes a release of format 1 from one of format 2 and its whole files.

    atelier-training export --whole models/spring --out whole
    python3 docs/examples/whole_release.py models/spring whole elsewhere/spring

The new folder needs the release's name, because each file's metadata has it. docs/model-contract.md explains the rest.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit("usage: whole_release.py RELEASE WHOLE FOLDER")
    release, whole, folder = map(Path, sys.argv[1:])
    manifest = json.loads((release / "release.json").read_text(encoding="utf-8"))
    if folder.name != manifest["name"]:
        sys.exit(f"the folder must be called {manifest['name']}, as the release")
    shutil.copytree(release, folder)
    for method in manifest["methods"]:
        shutil.copy(whole / f"{method['method']}.onnx", folder / method["file"])
        if tables := method.pop("tables", None):
            (folder / tables).unlink()
    if encoder := manifest.pop("encoder", None):
        (folder / encoder).unlink()
    # The others are new to the models.
    articles = folder / manifest["articles"]
    lines = articles.read_text(encoding="utf-8").splitlines(keepends=True)
    articles.write_text("".join(lines[: manifest.pop("known", None)]), encoding="utf-8")
    files = sorted(path for path in folder.iterdir() if path.name != "release.json")
    manifest.update(format=1, files={path.name: entry(path) for path in files})
    (folder / "release.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def entry(path: Path) -> dict:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    main()
