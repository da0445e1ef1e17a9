"""A report as one HTML file: Markdown in, a page out that needs no other file and loads nothing.

Pictures are put into the page itself, as SVG where there is one beside the PNG.
"""

from __future__ import annotations

import re
from base64 import b64encode
from html import escape
from pathlib import Path

from gerd.errors import GerdError

KINDS = {".svg": "image/svg+xml", ".gif": "image/gif", ".png": "image/png"}
WORDS = 45  # characters: a cell with more is text, which may have several lines
STYLE = """
:root { color-scheme: light dark; --line: #8886; --paper: #fff; --ink: #1a1a1a; --soft: #8881; --link: #0060a0; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181b; --ink: #e4e4e2; --link: #7cc0ff; } }
body { margin: 0 auto; padding: 1.5rem 1.2rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { margin-top: 2.4rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); } code { background: var(--soft); padding: 0 0.25em; }
img { display: block; max-width: 100%; height: auto; margin: 1rem auto; background: #fff; border-radius: 4px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.8rem; margin: 1rem 0; }
th, td { padding: 0.2rem 0.55rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td, th { white-space: nowrap; } .words { white-space: normal; min-width: 12rem; }
th { background: var(--soft); } td { font-variant-numeric: tabular-nums; }
blockquote { margin: 1rem 0; padding: 0.6rem 1rem; border-left: 5px solid #d55e00; background: #d55e0022; }
"""


def as_html(markdown: str, folder: Path) -> str:
    """The page; pictures are those of `folder`."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise GerdError(
            "a report as a page needs the package markdown-it-py: pip install 'gerd-events[study]'"
        ) from None
    title = next((line[2:] for line in markdown.splitlines() if line.startswith("# ")), "Report")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    body = re.sub(r'src="([\w.-]+)"', lambda match: f'src="{_inside(folder / match[1])}"', body)
    body = re.sub(rf"<td>(?=[^<]{{{WORDS},}})", '<td class="words">', body)
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n'


def _inside(picture: Path) -> str:
    """A picture as an address that holds it."""
    drawn = picture.with_suffix(".svg")
    picture = drawn if drawn.exists() else picture
    return f"data:{KINDS[picture.suffix]};base64,{b64encode(picture.read_bytes()).decode()}"
