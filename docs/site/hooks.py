"""What mkdocs.yml leaves to Python: pages with the example configs and programs, and the links that lead to them.

The documents link to ../configs and ../examples, which are no part of docs/. On the site each of the two folders is one
page with the text of all its files, and such a link leads to the file's place on it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
FOLDERS = {
    "configs": ("Example configs", "yaml", "Each can be given to `gerd check`, `render`, `generate` and `view`."),
    "examples": ("Example programs", "python", "Each runs in seconds: `python examples/train_from_disk.py`."),
}
LINK = re.compile(rf"\]\(\.\./({'|'.join(FOLDERS)})/?([\w/.-]*)\)")


def on_files(files: Files, *, config: Any) -> Files:
    for folder in FOLDERS:
        files.append(File.generated(config, f"{folder}.md", content=page(folder)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return LINK.sub(lambda link: f"]({link[1]}.md" + (f"#{anchor(link[2])}" if link[2] else "") + ")", markdown)


def page(folder: str) -> str:
    """A page with the text of every file in a folder."""
    title, language, about = FOLDERS[folder]
    parts = [f"# {title}\n\nThe files in `{folder}/`. {about}\n"]
    endings = {"yaml": ".yaml", "python": ".py"}
    for path in sorted((ROOT / folder).rglob(f"*{endings[language]}"), key=lambda path: (len(path.parts), path)):
        name = path.relative_to(ROOT / folder).as_posix()
        text = path.read_text("utf-8").rstrip()
        parts.append(f"## {name} {{ #{anchor(name)} }}\n\n```{language}\n{text}\n```\n")
    return "\n".join(parts)


def anchor(name: str) -> str:
    return re.sub(r"[^\w]", "-", name)
