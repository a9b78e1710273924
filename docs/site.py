"""Hooks of mkdocs.yml: brings the documents beside this folder into the site, and mends the links between them."""

import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
# Documents outside this folder, and their pages.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "training/ARCHITECTURE.md": "training-architecture.md",
    "clients/python/README.md": "client-python.md",
    "clients/typescript/README.md": "client-typescript.md",
}
PAGES = {page: source for source, page in OUTSIDE.items()}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files, config):
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown, page, **_):
    source = PurePosixPath(PAGES.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def mended(match):
        mark, words, path, anchor = match.groups(default="")
        words = LINK.sub(mended, words)
        if not path or ":" in path or path.startswith("/"):
            return f"{mark}[{words}]({path}{anchor})"
        target = resolved(source.parent / path)
        if target in OUTSIDE:
            target = f"docs/{OUTSIDE[target]}"
        if not target.startswith("docs/"):
            # A file of the project that is no page.
            return words if words.startswith("`") else f"{words} (`{target}`)"
        up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
        return f"{mark}[{words}]({up}{target.removeprefix('docs/')}{anchor})"

    return LINK.sub(mended, markdown)


def resolved(path):
    parts = []
    for part in path.parts:
        parts.pop() if part == ".." else parts.append(part)
    return "/".join(parts)
