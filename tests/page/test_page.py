"""`gerd view` without a browser: the bytes of a recording, edits of the text, the server and whom it answers."""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import os
import re
import select
import signal
import socket
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support import processes
from support.family import TEXT
from support.processes import DEADLINE, errors_of, wait_for
from support.scenes import actor, config, simulated

import gerd
from gerd.page import answers, server
from gerd.page.answers import Editor, Shelf
from gerd.page.limits import Limits
from gerd.page.pattern import IS_DEAD, IS_HOT
from gerd.page.worker import Worker
from gerd.pictures.colours import ACTORS, BACKDROP, BOTH, EVENTS, OFF, ON
from gerd.storage.manifest import SHARD_SIZE


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "family.yaml"
    path.write_text(TEXT)
    return path


def question(text: str = TEXT, *overrides: str, index: int = 0, member: int = 0) -> dict[str, Any]:
    return {"text": text, "overrides": list(overrides), "index": index, "member": member}


def unpacked(data: bytes) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray]:
    """Head, offsets, events and truth, read as the module's docstring says."""
    assert data[:4] == b"GERD"
    length = int.from_bytes(data[4:8], "little")
    assert length % 4 == 0
    head = json.loads(data[8 : 8 + length])
    at = 8 + length
    offsets = np.frombuffer(data, "<u4", head["steps"] + 1, at)
    at += offsets.nbytes
    events = np.frombuffer(data, "<u4", head["events"], at)
    at += events.nbytes
    truth = np.frombuffer(data, "<f4", -1, at).reshape(head["steps"], len(head["actors"]), 3, 6)
    return head, offsets, events, truth


# The bytes of a recording


RECORDINGS = {
    "family": lambda: gerd.simulate(gerd.parse(TEXT), 3, time_scale=2),
    "nothing": lambda: gerd.simulate(gerd.parse("actors: []\nsteps: 3")),
    "torus": lambda: simulated(actor("star", border="wrap", velocity=[3, 1]), noise={"background": 0.3}),
    "window": lambda: list(gerd.simulate_chunks(config(actor(velocity=[1, 0]), steps=9), chunk=4))[1],
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_survives_the_way_to_the_page(name: str) -> None:
    recording = RECORDINGS[name]()
    head, offsets, packed, truth = unpacked(answers.pack(recording, note="here"))
    step = np.repeat(np.arange(recording.steps), np.diff(offsets.astype(np.int64))) + head["first"]
    noise, p = packed & 1, packed >> 1 & 1
    y, x = np.divmod(packed >> 2, head["width"])
    events = recording.events
    assert np.array_equal(step * recording.step_us, events["t"])
    for part, field in ((x, "x"), (y, "y"), (p, "p")):
        assert np.array_equal(part, events[field])
    assert np.array_equal(noise, recording.background)
    assert np.allclose(truth, recording.truth, rtol=1e-6, atol=1e-6)
    assert (head["digest"], head["index"], head["labels"]) == (
        recording.digest,
        recording.identity.index,
        recording.identity.labels,
    )
    assert head["note"] == "here"


def test_the_outlines_are_those_of_the_shapes() -> None:
    recording = simulated(actor("circle"), actor("hole", border="wrap"))
    first, second = unpacked(answers.pack(recording))[0]["actors"]
    assert first == {"rings": [], "wraps": False}
    assert second["wraps"]
    assert [len(ring) for ring in second["rings"]] == [4, 3]


def test_too_many_events_are_refused() -> None:
    recording = RECORDINGS["torus"]()
    answers.pack(recording, Limits(events=len(recording)))
    with pytest.raises(gerd.GerdError, match=rf"{len(recording)} events; the page shows at most"):
        answers.pack(recording, Limits(events=len(recording) - 1))


# A config to play with


def test_the_text_gives_the_recording_that_is_shown(file: Path) -> None:
    editor = Editor.of(file)
    asked = question(TEXT, "actors.0.rotation.velocity=5", "noise.event=0.1", index=2, member=1)
    head = unpacked(editor.recording(asked))[0]
    again = gerd.simulate(gerd.parse(head["text"]), 2, **head["labels"])
    assert head["labels"] == {"time_scale": 2}
    assert head["digest"] == again.digest
    assert head["digest"] != unpacked(editor.recording(question(index=2, member=1)))[0]["digest"]
    assert head["members"] == [{"time_scale": 0.5}, {"time_scale": 2}]


ODD = """
sensor: {width: 20, height: 15}
camera: esim
noise: {hot: {share: 0.05}, dead: 0.05}
actors: [{shape: square, translation: {velocity: [1, 0]}}]
"""


def test_the_fixed_pattern_is_that_of_the_camera(tmp_path: Path) -> None:
    """Hot and dead pixels are those that fire always and never; thresholds are those of the stages."""
    (tmp_path / "odd.yaml").write_text(ODD)
    editor = Editor.of(tmp_path / "odd.yaml")
    head = unpacked(editor.recording(question(ODD, "camera.number=4")))[0]
    assert head["values"]["camera"] == {"like": "esim", "number": 4}
    assert "camera: {like: esim, number: 4}" in head["text"].replace("'", "")
    found = np.frombuffer(base64.b64decode(head["pattern"]["pixels"]), np.uint8).reshape(15, 20)
    values: dict[str, Any] = {"actors.0.intensity": 0.0, "steps": 300}
    resting = gerd.simulate(gerd.parse(ODD, overrides=["camera.number=4"]), **values)
    counts = resting.frames(counts=True).numpy().astype(int).sum(axis=(0, 1))
    assert np.array_equal(found == IS_HOT, counts > 0)
    silent = gerd.simulate(resting.config, **{"noise.background": 1.0, "steps": 2})
    assert np.array_equal(found == IS_DEAD, silent.frames().numpy().sum(axis=(0, 1)) == 0)
    on = resting.stages(0, 1).thresholds[1]
    low, high = head["pattern"]["thresholds"]
    assert (low, high) == (on.min() / resting.scene.full_count, on.max() / resting.scene.full_count)
    plain = (found != IS_HOT) & (found != IS_DEAD)
    assert (np.diff(found[plain][np.argsort(on[plain])].astype(int)) >= 0).all()
    assert head["pattern"]["dead"] == (found == IS_DEAD).sum()
    assert head["pattern"]["hot"] >= (found == IS_HOT).sum()  # some may be dead, too
    ideal = ODD.replace("esim", "ideal").replace("0.05", "0")
    assert unpacked(editor.recording(question(ideal)))[0]["pattern"] is None


def test_the_values_are_those_of_the_text_with_the_defaults(file: Path) -> None:
    values = unpacked(Editor.of(file).recording(question()))[0]["values"]
    assert values["actors"][0]["shape"] == {"text": "7"}  # and not its polygon
    assert values["actors"][0]["scale"]["start"] == {"uniform": [6, 12]}
    assert values["actors"][1]["scale"]["start"] == 20
    usual = {"threshold": 0.5, "response": "linear", "reset": "subtract", "initial": "usual", "warmup": 5}
    assert usual.items() <= values["integrator"].items()
    assert gerd.Config.model_validate({**values, "time_scale": 1.0}).digest == gerd.parse(TEXT).digest


def test_the_values_are_those_of_the_member(file: Path) -> None:
    sweep = "sweep={noise.background: [0.5, 0], actors.0.rotation: [{velocity: 1}, {velocity: 5, acceleration: 0}]}"
    heads = [unpacked(Editor.of(file).recording(question(TEXT, sweep, member=k)))[0] for k in range(4)]
    assert [head["values"]["noise"]["background"] for head in heads] == [0.5, 0.5, 0, 0]
    assert [head["values"]["actors"][0]["rotation"]["velocity"] for head in heads] == [1, 5, 1, 5]
    assert [head["name"] for head in heads][3].startswith("index 0, member 3 (noise.background=0, actors.0.rotation=")
    assert heads[3]["member_count"] == 4
    assert list(heads[0]["sweep"]) == ["noise.background", "actors.0.rotation"]
    assert heads[0]["values"]["sweep"] == heads[3]["values"]["sweep"] == heads[0]["sweep"]


def test_actors_are_added_and_taken_away(file: Path) -> None:
    editor = Editor.of(file)
    more = unpacked(editor.recording({**question(), "actors": "add"}))[0]
    assert [actor["shape"] for actor in more["values"]["actors"]] == [{"text": "7"}, "circle", "circle"]
    assert more["text"].startswith(TEXT.partition("sweep")[0])
    less = unpacked(editor.recording({**question(more["text"]), "actors": 0}))[0]
    assert [actor["shape"] for actor in less["values"]["actors"]] == ["circle", "circle"]
    for wrong, message in ((7, "there is no actor 7"), ("all", "a value of the type int")):
        with pytest.raises(gerd.GerdError, match=message):
            editor.recording({**question(), "actors": wrong})


def test_the_form_gets_the_whole_schema(file: Path) -> None:
    start = Editor.of(file, ["steps=9"]).start()
    whole = gerd.Config.model_json_schema()
    del whole["properties"]["functions"]  # their values are not edited
    assert start["schema"] == whole
    assert "steps: 9\n" in start["text"]
    assert start["colours"] == {"backdrop": BACKDROP, "on": ON, "off": OFF, "both": BOTH, "actors": ACTORS}


def test_a_member_that_is_gone_is_the_last_one(file: Path) -> None:
    head = unpacked(Editor.of(file).recording(question(TEXT, "sweep={}", member=1)))[0]
    assert (head["member"], head["labels"]) == (0, {})


def test_every_bad_value_is_told_with_its_path(file: Path) -> None:
    asked = question(TEXT, "actors.0.scale.start={uniform: [9, 3]}", "noise.event=2", "steps=many")
    with pytest.raises(gerd.ConfigError) as error:
        Editor.of(file).recording(asked)
    paths = [problem.path for problem in error.value.problems]
    assert sorted(paths) == ["actors.0.scale.start.uniform", "noise.event", "steps"]
    with pytest.raises(gerd.ConfigError) as error:
        Editor.of(file).recording(question(TEXT, "steps=[1", "sensor={a: !tag 1}", "noise.event=2"))
    assert [problem.path for problem in error.value.problems] == ["steps", "sensor", "noise.event"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps=100000000", r"at most \d+ pixels"),
        ("sensor={width: 16384, height: 16384}", r"at most \d+ pixels"),
        ("time_scale=1000", "at most 100 steps of motion"),
    ],
)
def test_what_would_take_too_long_is_refused(file: Path, override: str, message: str) -> None:
    editor = Editor.of(file, limits=Limits(poses=100))
    editor.recording(question(TEXT))
    with pytest.raises(gerd.GerdError, match=message):
        editor.recording(question(TEXT, "sweep={}", override))


def test_a_function_runs_only_if_the_user_trusts_the_file_that_names_it(tmp_path: Path) -> None:
    for module in ("pushes", "others"):
        (tmp_path / f"{module}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\ndef push(t):\n    return 0.1\n"
        )
    text = "steps: 3\nactors: [{shape: square, rotation: {acceleration: {function: 'pushes:push'}}}]\n"
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(gerd.TrustError, match="--trust"):
        server.serve(tmp_path / "c.yaml", port=0, browser=False)
    assert not list(tmp_path.glob("*.ran"))
    editor = Editor.of(tmp_path / "c.yaml", trust=True)
    strangers = [
        "actors.0.rotation.acceleration={function: 'others:push'}",
        "sweep={actors.0.rotation.acceleration.function: ['others:push']}",
    ]
    for override in strangers:
        with pytest.raises(gerd.ConfigError, match="only functions that the file itself names are run"):
            editor.recording(question(text, override))
    head = unpacked(editor.recording(question(text, index=2)))[0]
    assert [path.name for path in tmp_path.glob("*.ran")] == ["pushes.ran"]
    load, call, digest = head["recipe"].replace("'c.yaml'", repr(str(tmp_path / "c.yaml"))).splitlines()
    assert f"# {eval(call, {'gerd': gerd, 'config': eval(load.partition(' = ')[2])})}" == digest
    assert head["command"] == "gerd generate c.yaml c-data -n 100 --trust"


def test_a_config_with_the_values_of_a_function_is_shown_without_trust(tmp_path: Path) -> None:
    """Nothing runs: the module is not there. The form does not offer the values."""
    still = "scale: {acceleration: 0}, rotation: {acceleration: {function: 'gone:push'}}"
    known = f"{{first: -6, values: '{'2 ' * 9}'}}"
    text = f"steps: 3\nactors: [{{shape: square, {still}}}]\nfunctions: {{'gone:push': {known}}}\n"
    (tmp_path / "c.yaml").write_text(text)
    editor = Editor.of(tmp_path / "c.yaml")
    assert "functions" not in editor.start()["schema"]["properties"]
    head = unpacked(editor.recording(question(text)))[0]
    assert head["values"]["functions"] == {}
    assert head["digest"] == gerd.simulate(gerd.parse(text)).digest
    assert "trust" not in head["recipe"] + head["command"]
    gerd.generate(gerd.parse(text), tmp_path / "data", 1, workers=1)
    shown = unpacked(server.opened(tmp_path / "data").recording({"row": 0}))[0]
    assert "trust" not in shown["recipe"] + shown["command"]
    assert gerd.simulate(gerd.parse(shown["text"])).digest == head["digest"]


def test_only_pictures_in_the_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for place in (tmp_path, folder):
        Image.fromarray(np.pad(np.full((4, 4), 255, np.uint8), 2)).save(place / "leaf.png")
    text = "steps: 3\nactors: [{shape: square}]\n"
    (folder / "c.yaml").write_text(text)
    editor = Editor.of(folder / "c.yaml")
    editor.recording(question(text, "actors.0.shape={mask: leaf.png}"))
    for name in ("../leaf.png", str(tmp_path / "leaf.png"), "/etc/hostname"):
        for override in (f"actors.0.shape={{mask: {name}}}", f"sweep={{actors.0.shape: [{{mask: {name}}}]}}"):
            with pytest.raises(gerd.ConfigError, match="only pictures in the config's folder"):
                editor.recording(question(text, override))
    with pytest.raises(gerd.ConfigError, match="only pictures in the config's folder"):
        editor.recording(question(text, "actors.0.shape={choice: [circle, {svg: ../leaf.svg}]}"))
    (folder / "c.yaml").write_text("steps: 3\nactors: [{shape: {mask: ../leaf.png}}]\n")
    Editor.of(folder / "c.yaml").recording(question(text, "actors.0.shape={mask: ../leaf.png}"))


# Recordings to choose from


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("view") / "family"
    gerd.generate(gerd.parse(TEXT), path, count=40, workers=1)
    return path


def table(shelf: Shelf) -> dict[str, list[Any]]:
    return {column["name"]: column["values"] for column in shelf.start()["columns"]}


def test_the_table_tells_what_the_dataset_holds(dataset: Path) -> None:
    data = gerd.Recordings(dataset)
    columns = table(Shelf("family", data))
    assert columns["index"] == [recording.identity.index for recording in data]
    assert columns["time_scale"] == [0.5, 2] * 40
    assert columns["events"] == [len(recording) for recording in data]
    starts = np.array([recording.positions[0, 0, 0] for recording in data])
    assert np.allclose(columns["0.x"], starts, rtol=1e-4)
    assert set(columns["0.x'"]) == {0.5, 2.0}
    assert "1.x" not in columns  # the circle is always in the middle
    assert columns == table(Shelf("list", list(data)))


def test_a_recording_of_the_dataset_is_given_with_its_config(dataset: Path) -> None:
    shelf = Shelf("family", gerd.Recordings(dataset))
    head = unpacked(shelf.recording({"row": 7}))[0]
    assert head["digest"] == gerd.Recordings(dataset)[7].digest
    assert gerd.simulate(gerd.parse(head["text"]), head["index"], **head["labels"]).digest == head["digest"]
    with pytest.raises(gerd.GerdError, match="no row 80"):
        shelf.recording({"row": 80})


def test_a_damaged_shard_does_not_hide_the_others(tmp_path: Path) -> None:
    gerd.generate(gerd.parse(TEXT), tmp_path / "data", count=40, workers=1)
    (tmp_path / "data" / "shard-000000.safetensors").write_bytes(b"nothing")
    shelf = Shelf("data", gerd.Recordings(tmp_path / "data"))
    columns = table(shelf)
    lost = SHARD_SIZE
    assert columns["events"][:lost] == [None] * lost
    assert all(columns["events"][lost:])
    assert columns["index"] == [i // 2 for i in range(80)]
    assert columns["time_scale"] == [0.5, 2] * 40
    with pytest.raises(gerd.StorageError, match="damaged"):
        shelf.recording({"row": 3})
    shelf.recording({"row": lost})


# Files to save


def test_a_recording_is_saved_as_a_gif(file: Path, dataset: Path) -> None:
    asked = {"fps": 10, "outlines": False, "brightness": False}
    for content, which in (
        (Editor.of(file), question(index=1)),
        (Shelf("family", gerd.Recordings(dataset)), {"row": 2}),
    ):
        data = content.gif({"recordings": [which], **asked})
        recording = gerd.Recordings(dataset)[2]
        with Image.open(io.BytesIO(data)) as pages:
            assert (pages.n_frames, pages.info["duration"]) == (recording.steps, 100)
            zoom = pages.width // recording.width
            for step in range(recording.steps):
                pages.seek(step)
                shown = np.asarray(pages.convert("RGB"))[zoom // 2 : recording.height * zoom : zoom, zoom // 2 :: zoom]
                off, on = recording.frames(step, step + 1)[0].numpy()
                assert np.array_equal(off + 2 * on, [[EVENTS.index(tuple(pixel)) for pixel in row] for row in shown])
    wide = Image.open(io.BytesIO(content.gif({"recordings": [which], **asked, "brightness": True})))
    assert wide.width > 2 * recording.width * zoom
    content = replace(content, limits=Limits(pixels=1000))
    with pytest.raises(gerd.GerdError, match="too many here; gerd render makes long ones"):
        content.gif({"recordings": [which], **asked})


def test_a_page_is_saved_from_the_page(file: Path) -> None:
    html = Editor.of(file).html({"recordings": [question(member=0), question(member=1)]}).decode()
    saved = json.loads(re.search(r'id="saved">(.*?)</script>', html, re.DOTALL)[1])
    digests = [unpacked(zlib.decompress(base64.b64decode(packed)))[0]["digest"] for packed in saved["packed"]]
    assert digests == [gerd.simulate(gerd.parse(TEXT), 0, member).digest for member in (0, 1)]
    for several in ([], [question()] * 101):
        with pytest.raises(gerd.GerdError, match="allowed: 1 to 100"):
            Editor.of(file).html({"recordings": several})


def test_a_saved_page_is_one_file_with_everything_in_it(tmp_path: Path) -> None:
    recordings = [gerd.simulate(gerd.parse(TEXT), 1, time_scale=scale) for scale in (0.5, 2)]
    answers.save_page(recordings, tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    html = (tmp_path / "page.html").read_text("utf-8")
    assert not re.search(r"https?://|//cdn|@import|url\(", html)
    addresses = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'> ]+)""", html)
    assert addresses == ["data:,"]
    saved = json.loads(re.search(r'id="saved">(.*?)</script>', html, re.DOTALL)[1])
    for recording, packed in zip(recordings, saved["packed"], strict=True):
        assert unpacked(zlib.decompress(base64.b64decode(packed)))[0]["digest"] == recording.digest
    imports = json.loads(re.search(r'type="importmap">(.*?)</script>', html, re.DOTALL)[1])["imports"]
    assert set(imports) == {f"page/{name}" for name in answers.page_files() if name.endswith(".js")}
    for address in imports.values():
        script = base64.b64decode(address.partition(",")[2]).decode()
        assert set(re.findall(r'from "([^"]+)"', script)) <= set(imports)


def test_text_cannot_break_out_of_a_saved_page(tmp_path: Path) -> None:
    label = {"text": "</script><script>"}
    config = gerd.parse("steps: 2\nactors: [{shape: square}]\n", overrides=[f"sweep={{actors.0.shape: [{label}]}}"])
    answers.save_page([gerd.simulate(config, **{"actors.0.shape": label})], tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text("utf-8")
    assert html.count("</script>") == html.count("<script") == 3
    assert "\\u003c/script>" in html


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(gerd.GerdError, match="no recording to show"):
        answers.save_page([], tmp_path / "page.html")
    with pytest.raises(gerd.GerdError, match="cannot be written"):
        answers.save_page([RECORDINGS["nothing"]()], tmp_path / "missing" / "page.html")


# The server


class Asking:
    """Plain HTTP to a server at `address`, with its token."""

    def __init__(self, address: str):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})", address)
        assert found
        self.port, self.token = int(found[1]), found[2]
        self.known = {"Authorization": f"Bearer {self.token}"}

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        headers = {"authorization": self.known["Authorization"], **headers}
        connection = http.client.HTTPConnection(server.LOOPBACK, self.port, timeout=DEADLINE)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {name.title(): value for name, value in headers.items()})
        response = connection.getresponse()
        result = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        connection.close()
        return result


@pytest.fixture(scope="module")
def asking(file: Path) -> Iterator[Asking]:
    with server.running(Editor.of(file)) as address:
        yield Asking(address)


def test_the_page_and_its_files_are_served(asking: Asking) -> None:
    status, headers, body = asking("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>GERD</title>" in body
    assert "default-src 'none'" in headers["content-security-policy"]
    for name, content in answers.page_files().items():
        status, headers, body = asking("GET", f"/page/{name}")
        assert (status, body) == (200, content)
        assert re.match("text/(html|css|javascript);", headers["content-type"])
    named = set(re.findall(r'page/([\w.]+)"', answers.page_files()["index.html"].decode()))
    assert named == {"main.js", "style.css"}


def test_the_start_and_a_recording_are_given(asking: Asking) -> None:
    start = json.loads(asking("GET", "/api/start")[2])
    assert (start["kind"], start["name"], start["text"]) == ("config", "family.yaml", TEXT)
    status, headers, body = asking("POST", "/api/recording", question(member=1))
    assert (status, headers["content-type"]) == (200, "application/octet-stream")
    assert unpacked(body)[0]["digest"] == gerd.simulate(gerd.parse(TEXT), time_scale=2).digest
    asked = {"recordings": [question()], "fps": 20, "outlines": True, "brightness": False}
    status, headers, body = asking("POST", "/api/gif", asked)
    assert (status, headers["content-type"], body[:6]) == (200, "application/octet-stream", b"GIF89a")
    status, headers, body = asking("POST", "/api/html", {"recordings": [question()]})
    assert (status, headers["content-type"], body[:15]) == (200, "application/octet-stream", b"<!doctype html>")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (rb'{"text": "\ud800"}', 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        ([], 422, "has asked for text None"),
        ({}, 422, "has asked for text None"),
        ({**question(), "index": "0"}, 422, "index '0'; allowed: a value of the type int"),
        ({**question(), "index": -1}, 422, "index -1"),
        ({**question(), "member": True}, 422, "member True"),
        ({**question(), "overrides": [3]}, 422, "--set 3"),
        (question(""), 422, "is empty"),
        (question("a: [", index=0), 422, "is not YAML"),
        (question(TEXT, "noise.event=2"), 422, "noise.event"),
    ],
)
def test_a_bad_question_is_answered_with_a_message(asking: Asking, body: Any, status: int, message: str) -> None:
    code, headers, answer = asking("POST", "/api/recording", body)
    assert (code, headers["content-type"]) == (status, "application/json")
    assert message in json.loads(answer)["message"]


def test_a_config_error_names_field_and_line(asking: Asking) -> None:
    answer = json.loads(asking("POST", "/api/recording", question(TEXT.replace("0.01", "7")))[2])
    (problem,) = answer["problems"]
    assert (problem["path"], problem["line"]) == ("noise.background", 6)
    assert problem["message"].startswith("got 7: allowed")


def test_an_endless_question_is_cut_off(file: Path) -> None:
    with server.running(Editor.of(file, limits=Limits(question_bytes=1000))) as address:
        asking = Asking(address)
        assert asking("POST", "/api/recording", b" " * 1001)[0] == 413
        assert asking("POST", "/api/recording", b" " * 999)[0] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/page/../answers.py",
        "/page/..%2fanswers.py",
        "/page/%2e%2e/answers.py",
        "/page//etc/passwd",
        "/answers.py",
        "/page/",
        "/api",
        "/page/__init__.py",
    ],
)
def test_nothing_else_is_served(asking: Asking, path: str) -> None:
    assert asking("GET", path)[0] == 404


@pytest.mark.parametrize("depth", [17, 50, 200, 330, 500, 900, 990, 2000])
@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_a_question_that_is_nested_deeply_is_refused(pair: str, depth: int, asking: Asking) -> None:
    """Some of these can be parsed, and could not be passed on."""
    left, right = ("[" * depth, "]" * depth) if pair == "[]" else ('{"a":' * depth + "1", "}" * depth)
    for field in ("overrides", "actors", "recordings", "more"):
        body = json.dumps({**question(), field: "HERE"}).replace('"HERE"', left + right).encode()
        status, _, answer = asking("POST", "/api/recording", body)
        assert (status, "nested too deeply" in json.loads(answer)["message"] or depth >= 900) == (400, True)


API = (("GET", "/api/start"), ("POST", "/api/recording"), ("POST", "/api/gif"), ("POST", "/api/html"))


@pytest.mark.parametrize(("method", "path"), API)
def test_who_does_not_know_the_token_is_told_nothing(method: str, path: str, asking: Asking) -> None:
    wrong = [
        "",
        asking.token,
        f"Bearer {asking.token[:-1]}",
        f"Bearer {asking.token}x",
        "Bearer ",
        "Bearer ä",
        "Basic x",
    ]
    for given in wrong:
        status, _, body = asking(
            method, f"{path}?token={asking.token}", question(), authorization=given.encode("latin1")
        )
        assert status == 401
        assert json.loads(body) == {"message": server.STRANGER}
    assert asking("GET", "/", authorization="")[0] == asking("GET", "/page/main.js", authorization="")[0] == 200


def test_each_run_has_a_token_of_its_own(asking: Asking, file: Path) -> None:
    with server.running(Editor.of(file)) as address:
        other = Asking(address)
        assert other.token != asking.token
        assert other("GET", "/api/start", authorization=f"Bearer {asking.token}")[0] == 401


def test_nothing_is_written(asking: Asking, file: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in file.parent.rglob("*")}
    for method in ("PUT", "DELETE", "PATCH", "POST"):
        for path in ("/", "/page/main.js", "/api/start", "/family.yaml"):
            assert asking(method, path, b"x")[0] in (404, 405)
    assert asking("PUT", "/api/recording", question())[0] == 405
    assert asking("POST", "/api/recording", question(TEXT, "steps=9"))[0] == 200
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in file.parent.rglob("*")} == before


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.0.7", "[::2]", ""]
)
def test_a_foreign_name_is_not_answered(asking: Asking, host: str) -> None:
    for path in ("/", "/page/main.js", "/api/start"):
        assert asking("GET", path, host=host)[0] == 421


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1", "127.0.0.1:8350", "[::1]", "[::1]:8350", "LOCALHOST"]
)
def test_this_machine_is_answered_by_its_names(asking: Asking, host: str) -> None:
    assert asking("GET", "/", host=host)[0] == 200


def test_pages_from_elsewhere_cannot_ask(asking: Asking) -> None:
    own = f"http://127.0.0.1:{asking.port}"
    assert asking("POST", "/api/recording", question(), origin=own)[0] == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{asking.port}"):
        status, headers, _ = asking("POST", "/api/recording", question(), origin=origin)
        assert status == 403
        assert "access-control-allow-origin" not in headers
    headers = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    assert asking("OPTIONS", "/api/recording", **headers)[0] == 403


def test_on_another_interface_addresses_are_answered_and_foreign_names_are_not(file: Path) -> None:
    with server.running(Editor.of(file), host="0.0.0.0") as address:
        asking = Asking(address)
        for host in ("192.168.0.7:8350", "[fe80::1]:8350", socket.gethostname(), "localhost"):
            assert asking("GET", "/", host=host)[0] == 200
        assert asking("GET", "/", host="evil.example")[0] == 421


def test_only_this_machine_can_reach_it() -> None:
    with server.listening(server.LOOPBACK, 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"
        port = bound.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        for name in {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}:
            if not str(name).startswith("127."):
                with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                    socket.create_connection((str(name), port), timeout=5)


def test_a_port_in_use() -> None:
    with server.listening(server.LOOPBACK, 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(gerd.GerdError, match=rf"port {port} at 127.0.0.1: cannot be used: .*--port"):
            server.listening(server.LOOPBACK, port)
        with server.listening(server.LOOPBACK, None, range(port, port + 20)) as next_one:
            assert port < next_one.getsockname()[1] < port + 20
        with pytest.raises(gerd.GerdError, match=rf"ports {port} to {port}"):
            server.listening(server.LOOPBACK, None, range(port, port + 1))


# Work that is too much

COMB = [[[x / 6000 - 0.5, -0.5], [x / 6000 - 0.4999, -0.5], [x / 6000 - 0.5, 0.5]] for x in range(6000)]
ENDLESS = json.dumps(
    {
        "sensor": {"width": 128, "height": 128},
        "steps": 10_000,
        "actors": [{"shape": {"polygon": COMB}, "scale": {"start": 100}, "rotation": {"velocity": 1}}],
    }
)  # would take hours: a sub-row crosses thousands of sides


@pytest.fixture
def editor_at_work(file: Path) -> Iterator[Worker]:
    at_work = Worker(Editor.of(file))
    yield at_work
    at_work.close()


def test_an_answer_that_takes_too_long_is_not_made(file: Path) -> None:
    with closing(Worker(Editor.of(file, limits=Limits(seconds=2)))) as at_work:
        with pytest.raises(gerd.GerdError, match="takes more than 2 seconds to make"):
            at_work.ask("recording", question(ENDLESS))
        assert unpacked(at_work.ask("recording", question()))[0]["text"] == TEXT


def test_an_answer_that_takes_too_much_memory_is_refused(file: Path) -> None:
    """A frame of 16 million pixels takes hundreds of megabytes; this process may have 64 more than it begins with."""
    large = "sensor: {width: 4096, height: 4096}\nsteps: 2\nactors: [{shape: circle, translation: {velocity: 1}}]\n"
    with contextlib.closing(Worker(Editor.of(file, limits=Limits(memory=2**26)))) as at_work:
        with pytest.raises(gerd.GerdError, match=r"not enough memory|lack of memory"):
            at_work.ask("recording", question(large))
        assert unpacked(at_work.ask("recording", question()))[0]["text"] == TEXT


def test_a_death_of_the_worker_is_told_and_survived(editor_at_work: Worker) -> None:
    assert editor_at_work.ask("start")["kind"] == "config"
    os.kill(editor_at_work.pid or 0, signal.SIGKILL)
    with pytest.raises(gerd.GerdError, match="has died"):
        editor_at_work.ask("start")
    assert editor_at_work.ask("start")["kind"] == "config"


def test_an_answer_is_made_only_while_somebody_waits_for_it(file: Path) -> None:
    with server.running(Editor.of(file, limits=Limits(seconds=1e9))) as address:
        asking = Asking(address)
        connection = http.client.HTTPConnection(server.LOOPBACK, asking.port)
        connection.request("POST", "/api/recording", json.dumps(question(ENDLESS)), asking.known)
        connection.close()
        assert asking("POST", "/api/recording", question())[0] == 200


def test_connections_without_a_request_are_dropped(file: Path) -> None:
    unfinished = (b"", b"GET / HT", b"POST /api/recording HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    with server.running(Editor.of(file, limits=Limits(patience=0.2))) as address:
        for sent in unfinished:
            with socket.create_connection((server.LOOPBACK, Asking(address).port), timeout=DEADLINE) as half_open:
                half_open.sendall(sent)
                while half_open.recv(1000):  # an answer that says so, or none; then the end
                    pass


BIG = "sensor: {width: 512, height: 512}\nsteps: 26\nnoise: {background: 0.5}\nactors: [{shape: circle}]\n"


def test_who_takes_an_answer_gets_all_of_it(asking: Asking) -> None:
    assert len(asking("POST", "/api/recording", question(BIG))[2]) > 12e6


def test_a_connection_that_does_not_take_its_answer_is_dropped(file: Path) -> None:
    """The answer has 14 MB, more than the system keeps on its way."""
    with server.running(Editor.of(file, limits=Limits(taking=0.5, seconds=DEADLINE))) as address:
        asking = Asking(address)
        body = json.dumps(question(BIG)).encode()
        head = f"POST /api/recording HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        for more in ("", "Connection: close\r\n"):
            with socket.socket() as deaf:
                deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                deaf.connect((server.LOOPBACK, asking.port))
                known = f"Authorization: {asking.known['Authorization']}\r\n"
                deaf.sendall(f"{head}{more}{known}\r\n".encode() + body)
                ended = select.poll()
                ended.register(deaf, 0)  # errors only: what has arrived is not read
                wait_for(lambda ended=ended: ended.poll(0), "the connection to be dropped")


def test_ctrl_c_ends_the_command_in_the_middle_of_an_answer(file: Path) -> None:
    process = processes.start(file.parent, "view", str(file), "--port", "0", "--no-browser")
    try:
        assert process.stdout
        asking = Asking(re.search(r"http:\S+", process.stdout.readline())[0])
        connection = http.client.HTTPConnection(server.LOOPBACK, asking.port, timeout=DEADLINE)
        connection.request("POST", "/api/recording", json.dumps(question(TEXT)), asking.known)
        connection.getresponse().read()  # now the worker has imported what it needs
        children = processes.descendants(process.pid)
        before = cpu_seconds(children)
        connection.request("POST", "/api/recording", json.dumps(question(ENDLESS)), asking.known)
        wait_for(lambda: cpu_seconds(children) > before + 0.5, "the answer to be worked at")
        process.send_signal(signal.SIGINT)
        assert errors_of(process) == []
        wait_for(lambda: not any(map(processes.is_running, children)), "the worker to end")
    finally:
        processes.stop(process)


def cpu_seconds(pids: set[int]) -> float:
    """What the busiest of some processes has used."""
    ticks = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11] for pid in pids)
    return max(map(int, ticks), default=0) / os.sysconf("SC_CLK_TCK")


# The command


def test_the_command_tells_its_address_answers_and_ends_with_ctrl_c(file: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    process = processes.start(file.parent, "view", str(file), "--port", "0", env=environment)
    try:
        assert process.stdout
        line = process.stdout.readline()
        port = Asking(re.search(r"(http:\S+) \(Ctrl-C to stop\)", line)[1]).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)  # kept open, as a browser would
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert errors_of(process) == []
    finally:
        processes.stop(process)


def test_mistakes_are_told_before_anything_is_served(file: Path, dataset: Path, tmp_path: Path) -> None:
    def refused(source: Path, **options: Any) -> str:
        with pytest.raises(gerd.GerdError) as error:
            server.serve(source, port=0, browser=False, **options)
        return str(error.value)

    assert "there is no such file" in refused(tmp_path / "nothing.yaml")
    assert "is not a GERD dataset" in refused(tmp_path)
    assert "--set goes with a config" in refused(dataset, overrides=["steps=3"])
    assert "--set steps=0: steps" in refused(file, overrides=["steps=0"])
    assert "is no address of this machine" in refused(file, host="nowhere.invalid")


def test_without_the_extra_the_command_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(gerd.GerdError, match=r"pip install 'gerd-events\[view\]'"):
        server.serve(file)
