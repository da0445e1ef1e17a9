"""Videos and folders of pictures as the pixels see them."""

import subprocess
from fractions import Fraction
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import gerd
from gerd.cli.app import app
from gerd.pictures.seen import open_pictures

PICTURES = np.random.default_rng(0).integers(0, 256, (12, 10, 14), dtype=np.uint8)


def write_video(path: Path, rate: str, *filters: str) -> None:
    """Without loss, in grey."""
    source = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", "14x10", "-r", rate, "-i", "-"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *source, *filters, "-c:v", "ffv1", str(path)]
    subprocess.run(command, input=PICTURES.tobytes(), check=True, timeout=60)


def test_a_video_has_its_pictures_and_times(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mkv", "25")
    seen = open_pictures(tmp_path / "a.mkv")
    assert np.array_equal(list(seen.frames), PICTURES)
    assert np.array_equal(seen.times_us, np.arange(12) * 40_000)
    write_video(tmp_path / "a.mov", "30000/1001")
    times = open_pictures(tmp_path / "a.mov").times_us
    assert times.tolist() == [round(Fraction(1001 * number, 30000) * 1_000_000) for number in range(12)]
    assert open_pictures(tmp_path / "a.mov", Fraction(50)).times_us.tolist() == [
        20_000 * number for number in range(12)
    ]


def test_pictures_of_a_video_may_come_at_any_times(tmp_path: Path) -> None:
    write_video(
        tmp_path / "a.mkv",
        "25",
        "-vf",
        "settb=1/1000,setpts=N*N*10",
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "1/1000",
    )
    assert open_pictures(tmp_path / "a.mkv").times_us.tolist() == [10_000 * number**2 for number in range(12)]


def test_a_folder_has_its_pictures_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number, picture in enumerate(PICTURES):
        Image.fromarray(picture).save(tmp_path / f"p{number}.png")
    seen = open_pictures(tmp_path, Fraction(1000, 3))
    assert np.array_equal(list(seen.frames), PICTURES)
    assert seen.times_us[:3].tolist() == [0, 3000, 6000]
    (tmp_path / "timestamps.txt").write_text("".join(f"{number * 0.25}\n" for number in range(12)))
    assert open_pictures(tmp_path).times_us.tolist() == [250_000 * number for number in range(12)]
    deep, floats = PICTURES.astype(np.uint16) * 200, PICTURES.astype(np.float32) / 7
    for name, array in (("deep", deep), ("floats", floats)):
        (tmp_path / name).mkdir()
        for number, picture in enumerate(array):
            if name == "deep":
                Image.fromarray(picture).save(tmp_path / name / f"{number}.png")
            else:
                np.save(tmp_path / name / f"{number}.npy", picture)
        assert np.array_equal(list(open_pictures(tmp_path / name, Fraction(1)).frames), array)


def test_what_is_no_video_is_named(tmp_path: Path) -> None:
    def refused(message: str, path: Path) -> None:
        with pytest.raises(gerd.GerdError, match=message):
            list(open_pictures(path).frames)

    refused("there is no such video", tmp_path / "none.mp4")
    (tmp_path / "text.mp4").write_text("words")
    refused("text.mp4: is no video that can be read", tmp_path / "text.mp4")
    write_video(tmp_path / "a.mkv", "25")
    data = (tmp_path / "a.mkv").read_bytes()
    (tmp_path / "harmed.mkv").write_bytes(data[: len(data) // 2] + bytes(200) + data[len(data) // 2 + 200 :])
    refused("harmed.mkv: is no video that can be read", tmp_path / "harmed.mkv")
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile 'http://127.0.0.1:9/a.mkv'\n")
    refused("list.mp4: is no video that can be read", tmp_path / "list.mp4")
    folder = tmp_path / "folder"
    folder.mkdir()
    refused("has no pictures; allowed: .png", folder)
    (folder / "1.png").write_bytes(b"no")
    refused("has no timestamps.txt, so the times of its pictures are not known; allowed: --fps", folder)
    (folder / "timestamps.txt").write_text("0\n1\n")
    refused("has 2 times, and .* 1 pictures; allowed: as many", folder)
    (folder / "timestamps.txt").write_text("soon\n")
    refused("timestamps.txt:1: 'soon'; allowed: a time in seconds", folder)
    (folder / "timestamps.txt").write_text("0\n")
    refused("1.png: is no picture that can be read", folder)


def test_the_command_makes_the_events_of_the_function(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mkv", "25")
    (tmp_path / "c.yaml").write_text("integrator: {threshold: 0.2}\nnoise: {background: 0.01}\n")

    def run(*words: object) -> str:
        result = CliRunner().invoke(app, ["events", *map(str, words)])
        if result.exception is not None:
            raise result.exception
        return result.stdout

    assert "12 pictures" in run(tmp_path / "a.mkv", tmp_path / "a.npz")
    whole = gerd.from_frames(PICTURES, np.arange(12) * 40_000, timing="exact")
    assert np.array_equal(gerd.read_events(tmp_path / "a.npz").events, whole.events)
    run(tmp_path / "a.mkv", tmp_path / "b.raw", "--config", tmp_path / "c.yaml", "--index", 2, "--fps", 100)
    chosen = gerd.from_frames(PICTURES, np.arange(12) * 10_000, tmp_path / "c.yaml", index=2)
    assert np.array_equal(gerd.read_events(tmp_path / "b.raw").events, chosen.events)
    with pytest.raises(gerd.GerdError, match="exists already"):
        run(tmp_path / "a.mkv", tmp_path / "a.npz")
    with pytest.raises(gerd.GerdError, match="--fps fast: allowed: a number above 0"):
        run(tmp_path / "a.mkv", tmp_path / "c.npz", "--fps", "fast")
    with pytest.raises(gerd.GerdError, match=r"a name that ends with \.raw"):
        run(tmp_path / "a.mkv", tmp_path / "c.doc")


def test_pictures_that_gerd_exports_come_back_as_its_events(tmp_path: Path) -> None:
    """Grey values have 256 levels, which is enough where intensity and area are whole sub-pixels of few."""
    moving = {"sensor": {"width": 20, "height": 16}, "steps": 15, "upsampling": 1, "integrator": {"initial": 0.2}}
    square = {"shape": "square", "scale": {"start": 5, "acceleration": 0}}
    config = gerd.parse({**moving, "actors": [{**square, "translation": {"velocity": [0.7, 0.3]}}]})
    gerd.export_dataset(config, tmp_path / "out", "frames")
    (folder,) = (each for each in (tmp_path / "out").iterdir() if each.is_dir())
    seen = open_pictures(folder)
    made = gerd.from_frames(seen.frames, seen.times_us, config)
    wanted = gerd.simulate(config).events
    assert np.array_equal(made.window(1).events, wanted[wanted["t"] > 0])
