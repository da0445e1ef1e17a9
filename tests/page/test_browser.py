"""The page of `gerd view` in a real browser: Debian's chromium, headless. Skipped where there is none.

What is on the canvas is compared with the recording that `gerd.simulate` makes, pixel by pixel.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageColor
from support.family import TEXT
from support.processes import DEADLINE

import gerd
from gerd.config.actor import TRANSFORMATIONS
from gerd.page.answers import Editor, Shelf, save_page
from gerd.page.server import running
from gerd.pictures.colours import ACTORS, EVENTS, OFF, ON

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("there is no chromium on this machine to show the page in", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright, which drives it, is missing")

MANY = 400  # recordings, more than a table shows at a time
SIZE = {"width": 1280, "height": 720}  # a small laptop's


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sandbox = [] if os.getuid() else ["--no-sandbox"]  # chromium does not start as root with it
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=[*sandbox, "--enable-unsafe-swiftshader"])
        yield opened
        opened.close()


class Window:
    """A tab with the page in it; `faults` fills with whatever the page should not do."""

    def __init__(self, page: Any, address: str):
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self._look(request.url, address))
        page.on("console", lambda said: self.faults.append(said.text) if "Security Policy" in said.text else None)
        page.goto(address)
        page.wait_for_selector("body[data-digest]")
        page.uncheck("#outlines")  # which hide pixels
        page.evaluate("document.querySelectorAll('aside details').forEach((section) => (section.open = true))")

    def _look(self, url: str, address: str) -> None:
        if not url.startswith((address.partition("?")[0], "data:", "blob:")):
            self.faults.append(f"asks for {url}")

    @property
    def digest(self) -> str:
        return self.page.evaluate("document.body.dataset.digest")

    def until(self, digest: str) -> None:
        """Waits until the recording of that digest is on the canvas."""
        self.page.wait_for_selector(f'body[data-digest="{digest}"]')
        self.settle()

    def settle(self) -> None:
        """Waits until what has changed is drawn."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def step(self) -> int:
        return int(self.page.inner_text("#step").split()[1])

    def scrub(self, step: int) -> None:
        self.page.locator("#scrub").fill(str(step))
        self.settle()

    def frame(self, width: int, height: int, number: int = 0) -> np.ndarray:
        """(height, width): 0 nothing, 1 OFF, 2 ON, 3 both, read from the pixels of a video."""
        address = self.page.locator(".video canvas").nth(number).evaluate("(canvas) => canvas.toDataURL()")
        middles = pixels_of(base64.b64decode(address.partition(",")[2]), width, height)
        result = np.full((height, width), 9)
        for value, colour in enumerate(EVENTS):
            result[(middles == colour).all(-1)] = value
        return result


def pixels_of(png: bytes, width: int, height: int) -> np.ndarray:
    """(height, width, 3): the colours in the middles of the sensor's pixels in a picture."""
    picture = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    rows, columns, _ = picture.shape
    zoom = min((columns - 2) // width, (rows - 2) // height)
    left, top = (columns - width * zoom + 1) // 2, (rows - height * zoom + 1) // 2
    return picture[top + zoom // 2 :: zoom, left + zoom // 2 :: zoom, :3][:height, :width]


@pytest.fixture
def window(browser: Any) -> Iterator[Callable[..., Window]]:
    """Opens pages; at the end none of them may have failed or asked anybody else for anything."""
    windows: list[Window] = []

    def opened(address: str, script: str = "") -> Window:
        page = browser.new_page(viewport=SIZE, accept_downloads=True)
        page.set_default_timeout(1000 * DEADLINE)
        if script:
            page.add_init_script(script)
        windows.append(Window(page, address))
        return windows[-1]

    yield opened
    for each in windows:
        assert each.faults == []
        each.page.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "family.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def address(file: Path) -> Iterator[str]:
    with running(Editor.of(file)) as address:
        yield address


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "many"
    gerd.generate(gerd.parse(TEXT), path, count=MANY // 2, workers=1)  # of two members each
    return path


@pytest.fixture(scope="module")
def shelf(dataset: Path) -> Iterator[str]:
    with running(Shelf("many", gerd.Recordings(dataset))) as address:
        yield address


def polarity_codes(recording: gerd.Recording, step: int) -> np.ndarray:
    off, on = recording.frames(step, step + 1)[0].numpy().astype(int)
    return off + 2 * on


def shows(window: Window, recording: gerd.Recording, step: int, number: int = 0) -> bool:
    return np.array_equal(window.frame(recording.width, recording.height, number), polarity_codes(recording, step))


def recorded(*overrides: str, index: int = 0, **values: Any) -> gerd.Recording:
    return gerd.simulate(gerd.parse(TEXT, overrides=overrides), index, **{"time_scale": 0.5, **values})


def field(path: str) -> str:
    return f'[id="field-{path}"]'


# A config


def test_the_video_shows_the_recording_at_every_step(window: Callable[..., Window], address: str) -> None:
    shown, recording = window(address), recorded()
    assert shown.digest == recording.digest
    for step in range(recording.steps):
        shown.scrub(step)
        assert shown.step() == step
        assert shows(shown, recording, step)
    off, on = recording.frames(6, 7)[0].numpy().sum(axis=(1, 2))
    assert f"{on} ON" in shown.page.inner_text("figcaption")
    assert f"{off} OFF" in shown.page.inner_text("figcaption")
    assert f"{int(recording.events['p'].sum())} ON" in shown.page.inner_text("figcaption .faint")


def test_a_slider_changes_the_picture(window: Callable[..., Window], address: str) -> None:
    shown, before = window(address), recorded()
    slider = shown.page.locator('input[type=range][data-path="noise.background"]')
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    shown.page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] / 2)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2, steps=5)
    shown.page.mouse.up()
    shown.page.wait_for_selector(f'body:not([data-digest="{before.digest}"])')
    value = float(shown.page.input_value(field("noise.background")))
    assert 0.2 < value < 0.5  # 0.7³, in the middle of the slider's own steps
    after = recorded(f"noise.background={value}")
    shown.until(after.digest)
    shown.scrub(3)
    assert shows(shown, after, 3)
    assert not shows(shown, before, 3)
    assert f"background: {value}   # a little" in shown.page.input_value("#text")


def test_pairs_and_distributions_have_sliders_too(window: Callable[..., Window], address: str) -> None:
    page = window(address).page
    paths = page.locator("input[type=range][data-path]").evaluate_all("(all) => all.map((each) => each.dataset.path)")
    assert {"actors.0.translation.velocity.0", "actors.0.translation.velocity.1"} <= set(paths)
    assert {"actors.0.scale.start.uniform.0", "actors.0.scale.start.uniform.1"} <= set(paths)
    page.locator('[data-path="actors.0.translation.velocity.1"]').fill("400")
    assert page.input_value(field("actors.0.translation.velocity")) == "[1, 4]"


def test_every_field_of_the_config_is_in_the_form(window: Callable[..., Window], address: str) -> None:
    def paths(node: Any, path: str) -> list[str]:
        parts = node.items() if isinstance(node, dict) else enumerate(node)
        names = ("sensor", "camera", "integrator", "noise", "hot", "readout", "actors", *TRANSFORMATIONS)
        return [
            name
            for key, value in parts
            for name in (paths(value, f"{path}{key}.") if key in names or isinstance(key, int) else [f"{path}{key}"])
        ]

    shown = window(address)
    there = shown.page.locator(".field").evaluate_all("(all) => all.map((each) => each.dataset.path)")
    resolved = gerd.parse(TEXT).resolved()
    del resolved["functions"]  # nobody has to write them
    assert sorted(there) == sorted([*paths(resolved, ""), "camera.like"])  # which stands for others
    assert len(there) > 50


def test_a_camera_by_its_name_and_its_fixed_pattern(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    page = shown.page
    assert not page.locator(".pattern").is_visible()
    page.select_option(field("camera.like"), "esim")
    page.fill(field("noise.dead"), "0.3")
    page.press(field("noise.dead"), "Enter")
    after = recorded("camera.like=esim", "noise.dead=0.3")
    shown.until(after.digest)
    assert page.input_value(field("integrator.response")) == "{log: 0.001}"
    assert "dead" in page.inner_text(".pattern")
    data = page.locator(".pattern canvas").evaluate("(canvas) => canvas.toDataURL()")
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB")).astype(int)
    assert picture.shape == (after.height, after.width, 3)
    coloured = (picture != picture[..., :1]).any(axis=-1)
    y, x = after.coordinates[:, 1:3].T
    assert not coloured[y, x].any()  # the dead ones are silent
    assert 0.15 < coloured.mean() < 0.45
    on = after.stages(0, 1).thresholds[1]
    grey = picture[..., 0][~coloured]
    assert (np.diff(grey[np.argsort(on[~coloured])]) <= 0).all()  # darker where the threshold is higher


def test_the_saved_text_gives_the_same_recording(window: Callable[..., Window], address: str, tmp_path: Path) -> None:
    shown = window(address)
    shown.page.fill(field("actors.0.rotation.velocity"), "{uniform: [-9, 9]}")
    shown.page.keyboard.press("Enter")
    shown.until(recorded("actors.0.rotation.velocity={uniform: [-9, 9]}").digest)
    shown.page.click("#next")
    digest = recorded("actors.0.rotation.velocity={uniform: [-9, 9]}", index=1).digest
    shown.until(digest)
    shown.page.click("#tab-yaml")
    with shown.page.expect_download() as download:
        shown.page.click("#save")
    download.value.save_as(tmp_path / "saved.yaml")
    assert download.value.suggested_filename == "family.yaml"
    assert gerd.simulate(gerd.load(tmp_path / "saved.yaml"), 1, time_scale=0.5).digest == digest
    assert "# the nearer one" in (tmp_path / "saved.yaml").read_text()
    assert digest in shown.page.inner_text("#recipe")
    recipe = shown.page.inner_text("#recipe").replace("family.yaml", str(tmp_path / "saved.yaml"))
    *_, call, comment = recipe.splitlines()
    config = gerd.load(tmp_path / "saved.yaml")
    assert f"# {eval(call, {'gerd': gerd, 'config': config})}" == comment


def test_a_bad_value_is_told_at_its_field(window: Callable[..., Window], address: str) -> None:
    shown, before = window(address), recorded()
    shown.page.fill(field("noise.event"), "2")
    shown.page.keyboard.press("Enter")
    wrong = shown.page.locator('.field.wrong[data-path="noise.event"]')
    wrong.wait_for()
    assert "got 2: allowed: less than or equal to 1" in wrong.inner_text()
    assert shown.page.locator(".field.wrong").count() == 1
    assert shown.page.locator("#stage.stale").count() == 1
    assert shown.page.is_visible("#error")
    assert shown.digest == before.digest
    shown.page.fill(field("actors.1.scale.start"), "[1, 2")
    shown.page.keyboard.press("Enter")
    shown.page.locator('.field.wrong[data-path="actors.1.scale.start"]').wait_for()
    wrong.locator(".undo").click()
    shown.page.fill(field("actors.1.scale.start"), "[8, 9]")
    shown.page.keyboard.press("Enter")
    shown.until(recorded("actors.1.scale.start=[8, 9]").digest)
    assert shown.page.locator(".field.wrong").count() == 0
    assert shown.page.input_value(field("noise.event")) == "0"
    assert shown.page.is_hidden("#error")


def test_the_text_can_be_edited(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    shown.page.click("#tab-yaml")
    shown.page.fill("#text", TEXT.replace("steps: 7", "steps: ["))
    shown.page.wait_for_selector("#error:not([hidden])")
    assert "line" in shown.page.inner_text("#error")
    text = TEXT.replace("shape: circle", "shape: square") + "upsampling: 4\n"
    shown.page.fill("#text", text)
    shown.until(gerd.simulate(gerd.parse(text), time_scale=0.5).digest)
    shown.page.click("#tab-choose")
    assert shown.page.input_value(field("upsampling")) == "4"
    assert "actor 1: square" in shown.page.inner_text("#choose")


def test_a_wrong_text_describes_nothing_and_survives_a_reload(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    shown.page.click("#tab-yaml")
    assert shown.page.is_visible("#recipe")
    lines = shown.page.locator("#lines div").all_inner_texts()
    assert lines == [str(i + 1) for i in range(TEXT.count("\n") + 1)]
    wrong = TEXT.replace("0.01", "7")
    shown.page.fill("#text", wrong)
    for _ in range(2):
        shown.page.wait_for_selector("#lines .wrong")
        assert shown.page.locator("#lines .wrong").all_inner_texts() == ["6"]
        assert shown.page.is_hidden("#recipe")
        assert shown.page.is_visible("#undescribed")
        assert shown.page.input_value("#text") == wrong
        assert shown.page.locator("#stage.stale").count() == 1
        shown.page.wait_for_url("**/*text=*")
        shown.page.reload()
    shown.page.click("#revert")
    shown.page.wait_for_selector("#described:visible")
    assert shown.page.input_value("#text") == TEXT
    assert shown.digest == recorded().digest


def test_a_link_shows_the_same_recording(window: Callable[..., Window], address: str) -> None:
    shown, wanted = window(address), recorded("noise.event=0.3", index=5, time_scale=2)
    shown.page.fill(field("noise.event"), "0.3")
    shown.page.keyboard.press("Enter")
    slider = shown.page.locator("input[data-sweep=time_scale]")
    assert shown.page.is_disabled(field("time_scale"))
    slider.fill("1")
    shown.page.fill("#index", "5")
    shown.page.keyboard.press("Enter")
    shown.until(wanted.digest)
    assert shown.page.input_value(field("time_scale")) == "2"
    assert shown.page.input_value("#member") == "1"
    shown.scrub(4)
    shown.page.click("#panes [data-pane=cloud]")
    shown.page.wait_for_url("**/*show=events&outlines=off")
    plain, _, token = address.partition("?")
    assert shown.page.url.startswith(f"{plain}#")
    shown.page.reload()
    for again in (shown, window(shown.page.url.replace("#", f"?{token}#", 1))):  # another browser has no token yet
        again.until(wanted.digest)
        assert shows(again, wanted, 4)
        assert again.step() == 4
        assert again.page.locator(".cloud").count() == 0
        assert "event: 0.3" in again.page.input_value("#text")
        assert again.page.is_visible("#edited")


def test_a_link_cannot_do_what_the_server_does_not_allow(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    pack = "(text) => import('/page/address.js').then(({ packText }) => packText(text))"
    text = TEXT.replace("acceleration: 0}", "acceleration: {function: 'os:getcwd'}}", 1)
    foreign, bomb = (shown.page.evaluate(pack, each) for each in (text, "#" * 2**23))
    shown.page.goto(f"{address}#index=99999999999&text={foreign}")
    shown.page.wait_for_selector(".field.wrong >> text=only functions that the file itself names are run")
    assert shown.digest == recorded().digest  # of the file
    shown.page.goto(f"{address}#text={bomb}")
    shown.page.wait_for_selector("#notice >> text=a text that cannot be read; this is the file")
    shown.until(recorded().digest)


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "hasOwnProperty"])
def test_a_link_may_have_any_names(name: str, window: Callable[..., Window], address: str) -> None:
    shown = window(f"{address}#{name}=1&index=2&{name}=3")
    assert shown.digest == recorded(index=2).digest
    shown.until(recorded(index=2).digest)


def test_the_token_leaves_the_address_and_stays_in_the_browser(window: Callable[..., Window], address: str) -> None:
    plain, _, token = address.partition("?token=")
    shown = window(f"{address}#index=1")
    assert shown.page.url.startswith(f"{plain}#")
    assert token not in shown.page.url
    assert "index=1" in shown.page.url
    shown.page.reload()
    shown.until(recorded(index=1).digest)
    with shown.page.expect_popup() as opened:
        shown.page.evaluate("(place) => window.open(place)", f"{plain}#index=2")  # as a link or a bookmark has it
    opened.value.wait_for_selector(f'body[data-digest="{recorded(index=2).digest}"]')
    opened.value.close()


def test_without_the_token_the_page_says_what_to_open(browser: Any, address: str) -> None:
    for place in (address.partition("?")[0], f"{address.partition('=')[0]}=wrong#index=1"):
        page = browser.new_page()
        page.goto(place)
        page.wait_for_selector("#error:not([hidden])")
        assert "open the address that it has printed" in page.inner_text("#error")
        assert page.inner_text("#name") == ""
        page.close()


def test_timing_and_actors_are_a_click(window: Callable[..., Window], address: str) -> None:
    exact = recorded("timing=exact", "noise.background=0")
    shown = window(address)
    shown.page.fill(field("noise.background"), "0")
    shown.page.keyboard.press("Enter")
    shown.page.click("#timing [data-timing=exact]")
    shown.until(exact.digest)
    assert shown.step() == 1  # nothing happens at step 0
    assert shows(shown, exact, 1)
    shown.page.click("#timing [data-timing=step]")
    shown.until(recorded("noise.background=0", "timing=step").digest)
    shown.page.click("#add-actor")
    shown.page.wait_for_selector("[data-actor='2'] >> text=actor 2: circle")
    shown.page.click("[data-actor='0'] .remove")
    shown.page.wait_for_selector("[data-actor='2']", state="detached")
    assert "actor 0: circle" in shown.page.inner_text("#choose")
    assert "# the nearer one" in shown.page.input_value("#text")
    dots = shown.page.locator(".dot").evaluate_all("(all) => all.map((dot) => getComputedStyle(dot).backgroundColor)")
    assert [ImageColor.getrgb(dot) for dot in dots] == [ImageColor.getrgb(colour) for colour in ACTORS[:2]]


def test_the_brightness_is_that_of_the_recording(window: Callable[..., Window], address: str, tmp_path: Path) -> None:
    shown, recording = window(f"{address}#show=brightness&step=2"), recorded()
    shown.settle()
    data = shown.page.locator(".brightness canvas").evaluate("(canvas) => canvas.toDataURL()")
    picture = pixels_of(base64.b64decode(data.partition(",")[2]), recording.width, recording.height)
    difference = np.abs(picture[..., 0] / 255 - recording.images(2, 3)[0])
    assert difference.max() < 0.1  # the page has areas, the recording sub-pixels
    assert difference.mean() < 0.003
    shown.page.click("#takeaway summary")
    with shown.page.expect_download() as download:
        shown.page.click("#save-png")
    assert download.value.suggested_filename == "family-index0-member0.png"
    download.value.save_as(tmp_path / "step.png")
    assert near(np.asarray(Image.open(tmp_path / "step.png").convert("RGB")).astype(int), (255, 255, 255)) > 1000


def test_dark_and_light(window: Callable[..., Window], address: str) -> None:
    shown = window(address)

    def is_dark() -> bool:
        light = [np.median(picture_of(shown, selector)) for selector in ("header", ".video", ".cloud")]
        assert max(light) < 80 or min(light) > 200
        return max(light) < 80

    assert not is_dark()
    shown.page.emulate_media(color_scheme="dark")
    assert is_dark()
    assert near(picture_of(shown, ".video"), ON) == 0  # it is a lighter blue
    shown.page.click("#theme")
    shown.page.reload()
    shown.until(recorded().digest)
    assert not is_dark()


def test_draws_and_members(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    shown.page.click("#next")
    shown.until(recorded(index=1).digest)
    shown.page.click("#previous")
    shown.until(recorded(index=0).digest)
    shown.page.fill("#index", "41")
    shown.page.keyboard.press("Enter")
    shown.until(recorded(index=41).digest)
    shown.page.select_option("#member", "1")
    shown.until(recorded(index=41, time_scale=2).digest)
    shown.page.click("#on-change [data-draw=next]")
    shown.page.fill(field("steps"), "8")
    shown.page.keyboard.press("Enter")
    shown.until(recorded("steps=8", index=42, time_scale=2).digest)
    shown.page.click("#on-change [data-draw=same]")
    shown.page.fill(field("steps"), "9")
    shown.page.keyboard.press("Enter")
    shown.until(recorded("steps=9", index=42, time_scale=2).digest)


def test_the_keyboard(window: Callable[..., Window], address: str) -> None:
    shown = window(address)

    def after(key: str) -> int:
        shown.page.keyboard.press(key)
        shown.settle()
        return shown.step()

    keys = ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Shift+ArrowLeft", "ArrowLeft")
    assert [after(key) for key in keys] == [1, 2, 1, 6, 6, 0, 0]
    shown.page.keyboard.press("ArrowDown")
    shown.until(recorded(index=1).digest)
    shown.page.click("#forth")
    shown.page.keyboard.press(" ")  # plays, and does not press the button again
    shown.page.wait_for_selector("#play.playing")
    shown.page.keyboard.press(" ")
    shown.page.wait_for_selector("#play:not(.playing)")
    shown.page.focus(field("steps"))
    before = shown.step()
    assert after("ArrowLeft") == before  # moves in the text
    shown.page.keyboard.press(" ")
    assert shown.page.locator("#play.playing").count() == 0


def test_it_plays_at_the_speed_that_is_set(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    shown.page.clock.install()  # time stands still but for run_for
    shown.page.clock.pause_at("2100-01-01")
    begun = shown.step()
    for speed, milliseconds, steps in (("2", 2250, 4), ("20", 140, 2), ("1", 3500, 3)):
        shown.page.select_option("#speed", speed)
        shown.page.click("#play")
        shown.page.clock.run_for(milliseconds)
        shown.page.click("#play")
        shown.page.clock.run_for(100)
        begun = (begun + steps) % 7  # it starts anew at the end
        assert shown.step() == begun


def picture_of(window: Window, selector: str) -> np.ndarray:
    window.settle()
    return np.asarray(Image.open(io.BytesIO(window.page.locator(selector).screenshot())).convert("RGB")).astype(int)


def near(picture: np.ndarray, colour: tuple[int, int, int], away: int = 12) -> int:
    """How many pixels have that colour, or one that is not as far away."""
    return int((np.abs(picture - np.array(colour)).max(-1) < away).sum())


def test_the_cloud_shows_the_events_and_can_be_turned(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    shown.scrub(3)
    at_first = picture_of(shown, ".cloud")
    assert near(at_first, ON) > 20
    assert near(at_first, OFF, away=24) > 20  # behind the plane of the step, which is blue
    box = shown.page.locator(".cloud").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.page.mouse.move(*middle)
    shown.page.mouse.down()
    turned = at_first
    for right, down in ((80, 0), (80, 40)):  # sideways, then upwards
        shown.page.mouse.move(middle[0] + right, middle[1] + down, steps=3)
        before, turned = turned, picture_of(shown, ".cloud")
        assert (np.abs(turned - before).max(-1) > 30).mean() > 0.005
    shown.page.mouse.up()
    shown.page.mouse.wheel(0, 400)
    assert (np.abs(picture_of(shown, ".cloud") - turned).max(-1) > 30).mean() > 0.005
    shown.page.dblclick(".cloud")
    assert (np.abs(picture_of(shown, ".cloud") - at_first).max(-1) > 30).mean() < 0.001
    nothing = recorded("noise.background=0", "actors=[]", "sweep={}")
    shown.page.click("#tab-yaml")
    shown.page.fill("#text", "seed: 4\nsensor: {width: 30, height: 20}\nsteps: 7\nactors: []\n")
    shown.until(nothing.digest)
    empty = picture_of(shown, ".cloud")
    assert near(empty, ON) + near(empty, OFF) == 0


def test_without_webgl_the_rest_works(window: Callable[..., Window], address: str) -> None:
    script = """
      const original = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind === "webgl2" ? null : original.call(this, kind, ...rest);
      };"""
    shown, recording = window(address, script), recorded()
    assert "has no WebGL2" in shown.page.inner_text(".cloud")
    shown.scrub(4)
    assert shows(shown, recording, 4)


def test_the_curves_have_a_cursor_at_the_step(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    pictures = []
    for step in (0, 6):
        shown.scrub(step)
        pictures.append(picture_of(shown, "#curves"))
    accent = shown.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent')").strip()
    cursor = np.array(ImageColor.getrgb(accent))
    columns = [np.flatnonzero((np.abs(p - cursor).max(-1) < 12).sum(0) > 100) for p in pictures]
    assert len(columns[0]) == len(columns[1]) == 5  # a line in each of the five columns
    paper = (pictures[0] == 255).all(-1).sum(0) > 60  # where a curve can be
    ends = [
        np.flatnonzero(np.diff(np.r_[0, paper[a : b + 1], 0]))
        for a, b in zip(columns[0] - 9, columns[1] + 9, strict=True)
    ]
    for first, last, end in zip(*columns, ends, strict=True):
        assert abs((last - first) / (end[-1] - end[0]) - 6 / 7) < 0.08  # six of seven steps farther right
    changed = np.flatnonzero((pictures[0] != pictures[1]).any(axis=(0, 2)))
    numbers = np.setdiff1d(changed, np.concatenate(columns))
    assert len(numbers) > 3
    assert not paper[numbers].any()  # no number covers a curve


WRITTEN = """
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    (window.written ??= []).push([this.canvas.id, String(text), this.textAlign, x, y]);
    fill.call(this, text, x, y, ...rest);
  };"""


def test_the_curves_have_numbers_at_their_axes(window: Callable[..., Window], address: str) -> None:
    """The circle is at rest in the middle of 30×20 pixels, and the glyph moves by 1/2 of a pixel per step."""
    shown, recording = window(address, WRITTEN), recorded()
    written = [each[1:] for each in shown.page.evaluate("window.written") if each[0] == ""]  # on the still picture
    left = min(x for _, align, x, _ in written if align == "right")
    axis = np.array([(float(text), y) for text, align, x, y in written if align == "right" and x == left])
    high = shown.page.locator("#curves").bounding_box()["height"]
    row = ((axis[:, 1] - 15) // ((high - 29) / 3)).astype(int)  # between the titles and the steps
    places, velocities = axis[row == 0], axis[row == 1]
    low, high = recording.positions[..., 0].min(), recording.positions[..., 0].max()
    assert len(places) >= 2
    assert low - 1e-9 <= places[:, 0].min() <= places[:, 0].max() <= high + 1e-9
    assert set(velocities[:, 0]) <= {0.0, 0.2, 0.4, 0.5}
    slopes = np.diff(places[:, 1]) / np.diff(places[:, 0])
    assert (slopes < 0).all()
    np.testing.assert_allclose(slopes, slopes[0], rtol=0.2)  # numbers at the edge are moved inwards a little
    steps = {text for text, align, _, y in written if align == "center" and y > 100}
    assert {"0", "2", "4", "6"} <= steps


CUT = """[...document.querySelectorAll("header *, #stage *, nav *, .field *")].filter((each) => {
  const { left, right, width } = each.getBoundingClientRect();
  return each.checkVisibility() && width > 0 && (left < 0 || right > innerWidth || each.scrollWidth > width + 1);
}).filter((each) => !each.matches("input, select, option")).map((each) => each.outerHTML.slice(0, 100))"""


def test_nothing_sticks_out_on_a_small_screen(window: Callable[..., Window], address: str, shelf: str) -> None:
    for place in (address, shelf):
        shown = window(place)
        page = shown.page
        for size in (SIZE, {"width": 1024, "height": 600}):
            page.set_viewport_size(size)
            shown.settle()  # curves come and go with the next frame
            wide, high = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            assert (wide, high) == (size["width"], size["height"])
            charts = ("#timeline", "#curves") if size == SIZE else ("#timeline",)  # lower ones have no room for curves
            assert page.locator("#curves").is_visible() == (size == SIZE)
            for selector in ("#play", "#speed", "#panes", *charts, ".video", ".cloud", "#tab-keys"):
                box = page.locator(selector).bounding_box()
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= size["width"]
                assert box["y"] + box["height"] <= size["height"]
                assert min(box["width"], box["height"]) >= 12
        page.set_viewport_size({"width": 390, "height": 844})
        for _ in range(2):  # with and without curves
            shown.settle()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            assert page.evaluate(CUT) == []
            page.click("#with-curves")


def picture_sides(window: Window, selector: str) -> list[tuple[float, float]]:
    """Width and height of what is drawn in panes, of all pixels that differ from the page's ground."""
    sides = []
    for pane in window.page.locator(selector).all():
        pixels = np.asarray(Image.open(io.BytesIO(pane.screenshot())).convert("RGB")).astype(int)
        drawn = np.abs(pixels - np.array(ImageColor.getrgb("#f0f1ee"))).max(-1) > 3
        rows, columns = np.flatnonzero(drawn.any(1)), np.flatnonzero(drawn.any(0))
        sides.append((columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1))
    return sides


def test_three_pictures_fill_the_stage(window: Callable[..., Window], address: str) -> None:
    """Beside each other they would be 330 units wide, and 60 % of the stage would be empty."""
    shown = window(f"{address}#show=events,brightness,cloud")
    shown.page.set_viewport_size({"width": 1400, "height": 900})
    shown.settle()
    (events,), (brightness,), (cloud,) = (picture_sides(shown, name) for name in (".video", ".brightness", ".cloud"))
    assert events[0] > 600
    assert brightness[0] > 300
    assert cloud[0] > 300
    stage = shown.page.locator("#views").bounding_box()
    used = sum(width * height for width, height in (events, brightness, cloud))
    assert used > 0.75 * stage["width"] * stage["height"]


@pytest.mark.parametrize(("width", "height"), [(390, 844), (800, 1000)])
def test_a_slider_and_its_picture_are_seen_together(
    width: int, height: int, window: Callable[..., Window], address: str
) -> None:
    shown = window(address)
    shown.page.set_viewport_size({"width": width, "height": height})
    first = shown.page.locator(".field input[type=range]").first.bounding_box()
    assert first["y"] + first["height"] < height  # before anything is scrolled
    for slider in shown.page.locator(".field input[type=range]").all()[::6]:
        slider.scroll_into_view_if_needed()
        picture, place = shown.page.locator(".video").bounding_box(), slider.bounding_box()
        assert (
            0 <= picture["y"] < picture["y"] + picture["height"] <= place["y"] < place["y"] + place["height"] <= height
        )
        assert min(picture["width"], picture["height"]) > 120


def test_all_members_are_shown_at_once(window: Callable[..., Window], tmp_path: Path) -> None:
    family = gerd.parse(
        TEXT.replace(
            "time_scale: [0.5, 2]", "time_scale: [0.5, 1, 2]\n  actors.1.scale.start: [3, 4, 5, 6, 7, 8, 9, 10]"
        )
    )
    gerd.render(family, tmp_path / "members.html", family=True)
    members = gerd.simulate_family(family)
    shown = window((tmp_path / "members.html").as_uri())
    shown.page.locator("figure").nth(23).wait_for()
    for step in (2, 5):
        shown.scrub(step)
        assert all(shows(shown, member, step, k) for k, member in enumerate(members))
    tops = [figure.bounding_box()["y"] for figure in shown.page.locator("figure").all()]
    assert [tops.count(top) for top in sorted(set(tops))] == [
        8,
        8,
        8,
    ]  # the path that is swept last runs along the rows
    assert shown.page.locator("figcaption .what").nth(10).inner_text() == "1 · 5"
    shown.page.locator("figure").nth(10).click()
    shown.until(members[10].digest)
    assert shown.page.input_value("#member") == "10"
    assert shown.page.locator("figure.main").count() == 1
    shown.page.set_viewport_size({"width": 390, "height": 844})
    shown.settle()
    assert min(width for width, _ in picture_sides(shown, ".video")[:2]) > 100
    shown.page.select_option("#other", "")
    shown.page.locator("figure").nth(1).wait_for(state="detached")


def test_all_members_of_a_config_follow_a_change(window: Callable[..., Window], address: str) -> None:
    shown = window(f"{address}#all=on&member=1")
    shown.page.locator("figure").nth(1).wait_for()
    shown.page.fill(field("sweep"), "{time_scale: [0.5, 1, 2]}")
    shown.page.keyboard.press("Enter")
    shown.page.locator("figure").nth(2).wait_for()
    shown.until(recorded("sweep={time_scale: [0.5, 1, 2]}", time_scale=1).digest)
    shown.scrub(3)
    for k, scale in enumerate((0.5, 1, 2)):
        assert shows(shown, recorded(time_scale=scale), 3, k)


def test_a_field_is_swept_by_its_button_and_no_longer(window: Callable[..., Window], address: str) -> None:
    shown = window(address)
    alone, (width, height) = shown.digest, max(picture_sides(shown, ".video"))
    shown.page.click('.field[data-path="noise.background"] .sweep')
    values = shown.page.locator('input[data-values="noise.background"]')
    values.wait_for()
    assert values.input_value() == "[0.005, 0.01, 0.02]"
    assert shown.page.is_disabled(field("noise.background"))
    assert shown.digest == alone  # the member with the value that it had
    assert shown.page.input_value("#member") == "1"  # of time_scale: [0.5, 2] and these three
    assert max(picture_sides(shown, ".video")) == (width, height)  # no room is left for those that are not shown
    shown.page.locator('input[data-sweep="noise.background"]').fill("2")
    shown.until(recorded("noise.background=0.02").digest)
    values.fill("[0, 0.3, 1]")
    values.press("Enter")
    shown.until(recorded("noise.background=1").digest)
    values.fill("[0, 2]")
    values.press("Enter")
    row = shown.page.locator('.field[data-path="noise.background"]')
    row.locator("text=allowed: less than or equal to 1").wait_for()
    row.locator(".undo").click()
    shown.page.wait_for_selector("#stage:not(.stale)")
    row.locator(".stop").click()
    shown.page.wait_for_selector(f"{field('noise.background')}:enabled")
    shown.until(alone)
    assert shown.page.locator('input[data-sweep="time_scale"]').count() == 1
    assert "noise.background" not in shown.page.input_value("#text")
    shown.page.fill(field("sweep"), "{time_scale: [1, 1]}")
    shown.page.keyboard.press("Enter")
    row = shown.page.locator('.field[data-path="sweep"]')
    row.locator("text=stands there twice").wait_for()
    row.locator(".undo").click()
    shown.page.wait_for_selector("#stage:not(.stale)")


# A dataset


def rows(window: Window) -> list[int]:
    return [int(text) for text in window.page.locator(".row span:first-child").all_inner_texts()]


def test_a_large_dataset_is_browsed(window: Callable[..., Window], shelf: str, dataset: Path) -> None:
    data = gerd.Recordings(dataset)
    shown = window(shelf)
    shown.until(data[0].digest)
    assert f"{MANY} of {MANY}" in shown.page.inner_text("#rows")
    assert len(rows(shown)) < 100  # only what is seen is in the page
    shown.page.locator(".table").evaluate("(table) => (table.scrollTop = table.scrollHeight)")
    shown.page.wait_for_selector(f'.row[data-row="{MANY - 1}"]')
    shown.page.click(f'.row[data-row="{MANY - 1}"]')
    shown.until(data[MANY - 1].digest)
    assert shows(shown, data[MANY - 1], shown.step())
    shown.page.keyboard.press("ArrowUp")
    shown.until(data[MANY - 2].digest)


def test_the_table_is_sorted_and_filtered(window: Callable[..., Window], shelf: str, dataset: Path) -> None:
    data = gerd.Recordings(dataset)
    counts = np.array([len(recording) for recording in data])
    shown = window(shelf)
    shown.page.click(".head button >> text=events")
    assert rows(shown)[:5] == np.lexsort((np.arange(MANY), counts))[:5].tolist()
    shown.page.click(".head button >> text=events")
    assert rows(shown)[:5] == np.lexsort((np.arange(MANY), -counts))[:5].tolist()
    most = int(np.sort(counts)[-20])
    shown.page.fill("#filter", f"time_scale=2 events>={most} index<180")
    wanted = [i for i in range(MANY) if i % 2 and counts[i] >= most and i // 2 < 180]
    assert sorted(rows(shown)) == wanted
    assert f"{len(wanted)} of {MANY}" in shown.page.inner_text("#rows")
    shown.page.fill("#filter", "speed>3")
    assert "there is no column speed; there are index, " in shown.page.inner_text("#rows")
    assert rows(shown) == []
    shown.page.fill("#filter", "events>many")
    assert shown.page.inner_text("#rows") == "events is a number, which many is not"
    shown.page.fill("#filter", "events>")  # still being typed
    assert f"of {MANY}" in shown.page.inner_text("#rows")


def test_a_dataset_is_filtered_by_class(window: Callable[..., Window], tmp_path: Path) -> None:
    text = "sensor: {width: 20, height: 20}\nsteps: 3\nactors: [{shape: {choice: [circle, square, {text: A}]}}]\n"
    gerd.generate(gerd.parse(text), tmp_path / "shapes", count=30, workers=1)
    data = gerd.Recordings(tmp_path / "shapes")
    names = [recording.shapes[0] for recording in data]
    with running(Shelf("shapes", data)) as address:
        shown = window(address)
        shown.page.select_option("#class", "square")
        assert rows(shown) == [i for i, name in enumerate(names) if name == "square"]
        shown.page.click(".row >> nth=1")
        shown.until(data[rows(shown)[1]].digest)
        assert shown.page.inner_text("figcaption .shapes") == "square"
        shown.page.wait_for_url("**/*class=square*")
        shown.page.reload()
        shown.page.wait_for_selector(".row")
        assert rows(shown) == [i for i, name in enumerate(names) if name == "square"]
        shown.page.select_option("#class", "")
        shown.page.fill("#filter", "class=A")
        assert rows(shown) == [i for i, name in enumerate(names) if name == "A"]
        shown.page.fill("#filter", "class=star")
        assert shown.page.inner_text("#rows") == "no recording has class=star; there are A, circle, square"


def test_two_members_of_a_family_run_in_lockstep(window: Callable[..., Window], shelf: str, dataset: Path) -> None:
    data = gerd.Recordings(dataset)
    shown = window(shelf)
    shown.page.click('.row[data-row="6"]')
    shown.until(data[6].digest)
    shown.page.select_option("#other", "7")
    shown.page.locator("figure").nth(1).wait_for()
    for step in (0, 3, 6):
        shown.scrub(step)
        assert shows(shown, data[6], step, 0)
        assert shows(shown, data[7], step, 1)
    first, second = shown.page.locator("figcaption .what").all_inner_texts()
    assert (first, second) == ("index 3, member 0 (time_scale=0.5)", "index 3, member 1 (time_scale=2)")
    shown.page.click('.row[data-row="9"]', modifiers=["Shift"])
    shown.page.wait_for_selector('.row.other[data-row="9"]')
    shown.page.wait_for_selector("figcaption >> text=index 4")
    shown.settle()
    assert shows(shown, data[9], 6, 1)
    shown.page.select_option("#other", "")
    shown.page.locator("figure").nth(1).wait_for(state="detached")


# One file


def test_a_saved_page_works_alone(window: Callable[..., Window], tmp_path: Path) -> None:
    recordings = [recorded(index=i, time_scale=scale) for i in (0, 1) for scale in (0.5, 2)]
    save_page(recordings, tmp_path / "mine.html")
    shown = window((tmp_path / "mine.html").as_uri())
    assert shown.digest == recordings[0].digest
    shown.page.click('.row[data-row="2"]')
    shown.until(recordings[2].digest)
    shown.page.select_option("#other", "3")
    shown.page.locator("figure").nth(1).wait_for()
    shown.scrub(5)
    assert shows(shown, recordings[2], 5, 0)
    assert shows(shown, recordings[3], 5, 1)
    shown.page.click("#tab-yaml")
    config = gerd.parse(shown.page.input_value("#text"))
    assert gerd.simulate(config, 1, time_scale=0.5).digest == recordings[2].digest
