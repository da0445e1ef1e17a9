"""The site: it builds without a warning, every link and anchor leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import gerd

ROOT = Path(__file__).parents[2]
for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason=f"the site needs {package}: pip install '.[docs]'")

LOADS = {"src", "srcset", "poster", "data"}  # attributes whose address a browser loads by itself
NOT_LOADED = {"canonical", "prev", "next", "alternate"}  # kinds of <link> that it does not load
STYLE_ADDRESS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


class Page(HTMLParser):
    """What a page loads, what it links to, and the names in it that can be linked to."""

    def __init__(self, text: str):
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = {""}
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        self.loads += [values[name] for name in LOADS & set(values) if values[name]]
        self.loads += addresses(values.get("style", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif "href" in values and values.get("rel") not in NOT_LOADED:
            self.loads.append(values["href"])
        self._style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loads += addresses(data)


def addresses(style: str) -> list[str]:
    return [one or other for one, other in STYLE_ADDRESS.findall(style)]


def faults(folder: Path) -> list[str]:
    """What is wrong with a site: something that it loads from elsewhere or does not have, or a link to nowhere."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    loads = [(path, address) for path, page in pages.items() for address in page.loads]
    for path in folder.rglob("*.css"):
        loads += [(path, address) for address in addresses(path.read_text("utf-8"))]
    wrong = []
    for path, address in loads:
        parts = urlsplit(address)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            wrong.append(f"{path.name} loads {address}")
        elif parts.path and not target(folder, path, parts.path).is_file():
            wrong.append(f"{path.name} loads {address}, which is not there")
    for path, page in pages.items():
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme == "https":
                continue
            linked = target(folder, path, parts.path)
            if parts.scheme or parts.netloc or not linked.is_file():
                wrong.append(f"{path.name} links to {address}, which is not there")
            elif linked in pages and unquote(parts.fragment) not in pages[linked].names:
                wrong.append(f"{path.name} links to {address}, and there is no such place on that page")
    return wrong


def target(folder: Path, page: Path, address: str) -> Path:
    """The file that an address on a page means; one that begins with / counts from the site's folder."""
    if not address:
        return page
    file = Path(os.path.normpath((folder if address.startswith("/") else page.parent) / unquote(address).lstrip("/")))
    return file / "index.html" if file.is_dir() else file


def build(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(source / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # the theme's advertisement for its successor
    return subprocess.run([*command, "--site-dir", str(folder)], capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_everything_is_there_and_nothing_comes_from_elsewhere(site: Path) -> None:
    documents = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {path.stem for path in site.glob("*.html")} == documents | {"configs", "examples", "404"}
    assert faults(site) == []
    assert not list(site.rglob("*.py*"))


def test_the_api_page_has_all_that_the_package_offers(site: Path) -> None:
    names = Page((site / "api.html").read_text("utf-8")).names
    for name in set(gerd.__all__) - {"__version__"}:
        assert any(place == f"gerd.{name}" or place.startswith(f"gerd.{name}.") for place in names), name
    assert {"gerd.Events.height", "gerd.Recording.T_velocity", "gerd.plot.events"} <= names
    text = (site / "api.html").read_text("utf-8")
    assert "Whether events have times inside their step." in text  # from the comment beside the field
    for option in ("stride</code>: steps from one window to the next", "warmup</code>: steps before the labelled part"):
        assert re.search(rf"<li>\s*(<p>)?<code>{option}", text)
    for name in ("Dataset", "Stream"):  # their signatures show the options that they share
        signature = text.partition(f'id="gerd.{name}"')[2].partition("</pre>")[0]
        assert set(re.findall(r'<span class="n">(\w+)</span>', signature)) >= {"item", "steps", "warmup", "dtype"}


def test_the_search_finds_other_words_for_things(site: Path) -> None:
    """Words of the field that the documents might not use: they stand in the texts that the search looks through."""
    texts = " ".join(entry["text"] for entry in json.loads((site / "search" / "search_index.json").read_text())["docs"])
    for word in ("occlusion", "occlude", "BibTeX", "notebook"):
        assert word.lower() in texts.lower(), word


def test_the_examples_are_on_the_site(site: Path) -> None:
    for folder, kind in (("configs", "yaml"), ("examples", "py"), ("examples", "ipynb")):
        names = Page((site / f"{folder}.html").read_text("utf-8")).names
        for path in (ROOT / folder).rglob(f"*.{kind}"):
            assert re.sub(r"\W", "-", path.relative_to(ROOT / folder).as_posix()) in names
    shown = Page((site / "examples.html").read_text("utf-8")).loads  # by the cells of the notebook
    assert sum(address.startswith("data:image/png") for address in shown) == 4
    assert sum(address.startswith("data:image/gif") for address in shown) == 1


SOUND = {"index.html": "<h1 id=top>A</h1><a href='#top'></a><a href='b.html'></a>", "b.html": "<a href='./'></a>"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.html", "<script src='https://cdn.example/x.js'></script>", "loads https://cdn.example/x.js"),
        ("b.html", "<script src='//cdn.example/x.js'></script>", "loads //cdn.example/x.js"),
        ("b.html", "<link rel=preconnect href='https://fonts.example'>", "loads https://fonts.example"),
        ("b.html", "<link rel=stylesheet href='https://fonts.example/a'>", "loads https://fonts.example/a"),
        ("b.html", "<style>@import 'https://fonts.example/a'</style>", "loads https://fonts.example/a"),
        ("b.html", "<p style='background: url(http://x.example/a)'>", "loads http://x.example/a"),
        ("a.css", "@font-face { src: url('https://fonts.example/a.woff2') }", "loads https://fonts.example/a.woff2"),
        ("b.html", "<img src='missing.png'>", "missing.png, which is not there"),
        ("b.html", "<a href='c.html'></a>", "c.html, which is not there"),
        ("b.html", "<a href='index.html#bottom'></a>", "no such place on that page"),
        ("b.html", "<a href='#bottom'></a>", "no such place on that page"),
        ("b.html", "<a href='file:///b.html'></a>", "which is not there"),
    ],
)
def test_faults_are_found(name: str, text: str, message: str, tmp_path: Path) -> None:
    for file, content in SOUND.items():
        (tmp_path / file).write_text(content)
    assert faults(tmp_path) == []
    (tmp_path / name).write_text(text)
    (fault,) = faults(tmp_path)
    assert message in fault


def test_broken_documents_do_not_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for name in ("gerd", "configs", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docs" / "api.md").write_text("# API\n")  # which takes most of the time
    (tmp_path / "docs" / "new.md").write_text("# A page that the navigation does not have\n")
    with (tmp_path / "docs" / "index.md").open("a") as file:
        file.write("\n[page](nowhere.md), [place](how.md#nowhere), [file](../examples/nowhere.py)\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    for message in ("nowhere.md", "how.md#nowhere", "examples.md#nowhere-py", "- new.md"):
        assert re.search(rf"WARNING.*(\n.*)?{re.escape(message)}", done.stderr), done.stderr


@pytest.mark.long
def test_in_a_browser_nothing_is_asked_for_elsewhere(site: Path) -> None:
    """From the files, without a server."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("there is no chromium on this machine to show the site in")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the package playwright, which drives it, is missing"
    )
    sandbox = [] if os.getuid() else ["--no-sandbox"]  # chromium does not start as root with it
    wrong: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=sandbox)
        page = browser.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if elsewhere(request.url) else None)
        for path in sorted(site.glob("[!4]*.html")):
            page.goto(path.as_uri())
            assert page.inner_text("h1")
        browser.close()
    assert wrong == []


def elsewhere(address: str) -> bool:
    return not address.startswith(("file:", "data:", "blob:", "about:"))
