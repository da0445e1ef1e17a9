"""How long the page of `gerd view` takes from the move of a slider to the new picture, in a real browser.

Three shapes, 128×128 pixels, 60 steps, on the CPU. Needs chromium and the packages playwright and `gerd[view]`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from gerd.page.server import opened, running

CONFIG = Path(__file__).parent.parent / "configs" / "bouncing.yaml"
MOVES = 60
MOVE = """async (places) => {
  const slider = document.querySelector('input[data-path="actors.1.intensity"]');
  const times = [];
  for (const place of places) {
    const begun = performance.now();
    const shown = new Promise((done) => new MutationObserver((_, self) => { self.disconnect(); done(); })
      .observe(document.body, { attributeFilter: ["data-digest"] }));
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
    await shown;
    await new Promise(requestAnimationFrame);  // the player draws in this frame
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - begun);
  }
  return times;
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        file = Path(folder) / CONFIG.name
        file.write_text(CONFIG.read_text())
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox)
        with running(opened(file, ["sensor={width: 128, height: 128}"])) as address:
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.goto(address)
            page.wait_for_selector("body[data-digest]")
            times = page.evaluate(MOVE, [400 * (k + 1) / (MOVES + 1) for k in range(MOVES)])
            browser.close()
    middle, longest = statistics.median(times), max(times)
    print(f"{MOVES} moves of a slider: {middle:.0f} ms to the new picture (median), {longest:.0f} ms at most")


if __name__ == "__main__":
    main()
