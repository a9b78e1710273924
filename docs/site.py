"""Hooks of .ci/mkdocs.yml: bring in the documents next to this folder, mend links, and write each page's Markdown twin and llms.txt."""

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
    "docs/atelier.toml": "settings.md",
}
PAGES = {page: source for source, page in OUTSIDE.items()}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
# The title and text of each page, by its twin's name.
twins = {}


def on_files(files, config):
    for source, page in OUTSIDE.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".toml"):
            content = f"# Settings\n\nFor operators. This is `{source}`, with every setting and its default.\n\n```toml\n{content}```\n"
        files.append(File.generated(config, page, content=content))
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

    text = LINK.sub(mended, markdown)
    twins[page.file.src_uri] = (page.title, text)
    return text


def on_post_build(config):
    site = Path(config.site_dir)
    for name, (_, text) in twins.items():
        (site / name).write_text(text, encoding="utf-8")
    pages = "".join(f"- [{title}]({name})\n" for name, (title, _) in twins.items())
    (site / "llms.txt").write_text(f"# {config.site_name}\n\n> {config.site_description}\n\n{pages}", encoding="utf-8")


def resolved(path):
    parts = []
    for part in path.parts:
        parts.pop() if part == ".." else parts.append(part)
    return "/".join(parts)
