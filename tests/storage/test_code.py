"""Which code made a dataset: its parts are made by the same, and a dataset of other code is read all the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.datasets import SMALL, change_manifest, content, faults, make, unfinish

import gerd
from gerd.cli.describe import describe
from gerd.storage import code
from gerd.storage.manifest import shard_name
from gerd.storage.shard import Shard

OTHER = "0123456789ab" + "0" * 52


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """130 recordings in three shards."""
    make(tmp_path / "data", SMALL, 130)
    return tmp_path / "data"


def test_the_digest_is_that_of_the_sources_that_decide(tmp_path: Path) -> None:
    installed = Path(gerd.__file__).parent
    sources = Path(shutil.copytree(installed, tmp_path / "gerd", ignore=shutil.ignore_patterns("*.nb*")))
    before = code.digest_of_sources(sources)
    assert len(before) == 64
    assert before == code.code_digest()
    for name in (
        "geometry/exactmath.py",
        "config/config.py",
        "plan/make.py",
        "scene/philox.py",
        "events/cpu/rules.py",
        "recording/events.py",
        "storage/blocks.py",
    ):
        text = (sources / name).read_bytes()
        (sources / name).write_bytes(text + b"#")
        assert code.digest_of_sources(sources) != before
        (sources / name).write_bytes(text)
    (sources / "events" / "more.py").write_text("")
    assert code.digest_of_sources(sources) != before
    (sources / "events" / "more.py").unlink()
    (sources / "pictures" / "plot.py").write_text("")
    (sources / "scene" / "draw.py").write_bytes((sources / "scene" / "draw.py").read_bytes().replace(b"\n", b"\r\n"))
    assert code.digest_of_sources(sources) == before


def test_no_module_that_writes_a_shard_was_forgotten() -> None:
    """Whatever the writer imports is decisive, or is here because it changes no bit: a new module is in neither."""
    program = "import sys, gerd.storage.work; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    files = {name.removeprefix("gerd.").replace(".", "/") for name in loaded.split() if name.startswith("gerd.")}
    undecided = {file for file in files if not any(f"{file}.py".startswith(decisive) for decisive in code.DECISIVE)}
    assert undecided == {
        *("calls", "errors", "files", "reading", "version"),
        *("recording", "recording/causes", "recording/derived"),  # the package, and what is asked for later
        *("storage", "storage/code", "storage/json_files", "storage/places", "storage/whole"),
    }


def test_files_name_the_code(data: Path) -> None:
    recordings = gerd.Recordings(data)
    assert recordings.manifest.code_digest == code.code_digest()
    assert {recordings.shard(number).code_digest for number in range(3)} == {code.code_digest()}


def test_info_says_which_code_it_was(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(data)
    assert f"code {code.code_digest()[:12]}, the same as that installed here" in capsys.readouterr().out


def use_other_code(patch: pytest.MonkeyPatch) -> None:
    """As if this were an installation with other sources."""
    for place in ("storage.code", "storage.manifest", "storage.work", "cli.describe"):
        patch.setattr(f"gerd.{place}.code_digest", lambda: OTHER)


def test_a_dataset_of_other_code_is_read_and_checked(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_other_code(monkeypatch)
    assert gerd.Recordings(data)[129].digest == gerd.simulate(gerd.parse(SMALL), 129).digest
    assert faults(data) == []


def test_a_shard_of_other_code_than_the_manifest_says_is_refused(data: Path) -> None:
    change_manifest(data, code_digest=OTHER)
    with pytest.raises(gerd.StorageError, match=r"shard-000000.*: its code_digest is .*, that of the manifest '0123"):
        gerd.Recordings(data)[0]
    assert len([line for line in faults(data) if "code_digest" in line]) == 3


def test_a_complete_dataset_of_other_code_is_left_alone_and_not_mended(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(data)
    use_other_code(monkeypatch)
    assert len(make(data, SMALL, 130)) == 130
    assert content(data) == before
    describe(data)
    assert "other than that installed here" in capsys.readouterr().out
    (data / shard_name(1)).unlink()
    with pytest.raises(
        gerd.StorageError, match=f"data: was begun by other code.* there and {OTHER[:12]} here.*another folder"
    ):
        make(data, SMALL, 130)
    assert content(data) == {name: file for name, file in before.items() if name != shard_name(1)}


def test_other_code_does_not_go_on(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unfinish(data)
    (data / shard_name(1)).unlink()
    before = content(data)
    use_other_code(monkeypatch)
    with pytest.raises(
        gerd.StorageError, match=f"holds a different dataset: it was begun by other code.*{OTHER[:12]} here"
    ):
        make(data, SMALL, 130)
    assert content(data) == before


def test_parts_of_different_code_are_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, folder = gerd.parse(SMALL), tmp_path / "data"
    gerd.generate(config, folder, 130, workers=1, part=(1, 2))
    with monkeypatch.context() as patched:
        use_other_code(patched)
        with pytest.raises(gerd.StorageError, match="was begun by other code"):
            gerd.generate(config, folder, 130, workers=1, part=(2, 2))
    assert not gerd.Recordings(folder).manifest.complete
    assert gerd.generate(config, folder, 130, workers=1, part=(2, 2)).manifest.complete


def test_a_shard_that_other_code_has_left_is_made_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another machine had written into the same folder at the same time."""
    before = content(data)
    unfinish(data)
    with monkeypatch.context() as patched:
        use_other_code(patched)
        make(data.parent / "other", SMALL, 130)
    shutil.copy(data.parent / "other" / shard_name(2), data / shard_name(2))
    assert Shard(gerd.Recordings(data).place.open(shard_name(2))).code_digest == OTHER
    make(data, SMALL, 130)
    assert content(data) == before


def test_a_worker_with_other_code_says_so(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cluster, say, whose machines have different installations."""
    unfinish(data)
    (data / shard_name(1)).unlink()
    monkeypatch.setattr("gerd.storage.work.code_digest", lambda: OTHER)
    with pytest.raises(gerd.StorageError, match="was begun by other code"):
        make(data, SMALL, 130)
