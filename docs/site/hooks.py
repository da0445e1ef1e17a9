"""What mkdocs.yml leaves to Python: pages with the example configs and programs, and the links that lead to them.

The documents link to ../configs and ../examples, which are no part of docs/. On the site each of the two folders is one
page with the text of all its files, and such a link leads to the file's place on it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
FOLDERS = {
    "configs": ("Example configs", "yaml", "Each can be given to `gerd check`, `render`, `generate` and `view`."),
    "examples": (
        "Example programs",
        "python",
        "Programs say how long they take: `python examples/train_from_disk.py`.",
    ),
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
    endings = {"yaml": (".yaml",), "python": (".py", ".ipynb")}[language]
    paths = [path for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    for path in sorted(paths, key=lambda path: (len(path.parts), path)):
        name = path.relative_to(ROOT / folder).as_posix()
        text = path.read_text("utf-8").rstrip()
        shown = notebook(text) if path.suffix == ".ipynb" else f"```{language}\n{text}\n```\n"
        parts.append(f"## {name} {{ #{anchor(name)} }}\n\n{shown}")
    return "\n".join(parts)


def notebook(text: str) -> str:
    """The cells of a notebook with what they show, headings below that of the file, links as on a page in docs/."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            parts += [f"```python\n{source}\n```", *map(output, cell["outputs"])]
        else:
            parts.append(re.sub("^#", "###", source, flags=re.MULTILINE).replace("](../docs/", "]("))
    return "\n\n".join(parts) + "\n"


def output(shown: dict[str, Any]) -> str:
    """What a cell has shown: a picture, HTML or text."""
    data = shown.get("data", {})
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    if "text/html" in data:
        return re.sub(r"\s*\n\s*", " ", "".join(data["text/html"]))  # without an empty line, which would end it
    return f"```text\n{''.join(data.get('text/plain') or shown['text']).rstrip()}\n```"


def anchor(name: str) -> str:
    return re.sub(r"[^\w]", "-", name)
