"""Takes the pictures of docs/view.md: python docs/make_view_pictures.py. Needs chromium and playwright."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import gerd
from gerd.page.server import opened, running

HERE = Path(__file__).parent
CONFIGS = HERE.parent / "configs"
COLOURS = 128  # of a picture's palette, which makes it small


def take(browser: Any, source: Path, name: str, state: str) -> None:
    """A picture of the page with this state in its address."""
    with running(opened(source)) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"{address}#{state}")
        page.wait_for_selector("body[data-digest]")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        page.close()
    picture.save(HERE / name, optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox)
        take(browser, CONFIGS / "bouncing.yaml", "view-config.png", "step=38")
        gerd.generate(gerd.load(CONFIGS / "timescale.yaml"), Path(folder) / "timescale", count=200)
        take(
            browser,
            Path(folder) / "timescale",
            "view-dataset.png",
            "index=1&member=4&other_index=1&other_member=7&step=25",
        )
        browser.close()


if __name__ == "__main__":
    main()
