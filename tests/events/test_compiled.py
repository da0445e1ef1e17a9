"""Machine code that is kept: believed only if it is whole and this user's; without it everything goes on."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gerd
from gerd.events import compiled, cpu, definition, known

SOURCE = "from numba import njit\n\n@njit\ndef doubled(x):\n    return x + x\n"


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    return fresh(tmp_path)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fresh(folder: Path) -> ModuleType:
    """A module with a function to compile, as another process would import it."""
    file = folder / "tiny_kernel.py"
    file.write_text(SOURCE)
    spec: Any = importlib.util.spec_from_file_location("tiny_kernel", file)
    module = sys.modules["tiny_kernel"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled.keep(module.doubled, module)
    return module


def was_kept(module: ModuleType) -> bool:
    """Whether the function gives the right number, and without being compiled."""
    assert module.doubled(21) == 42
    assert len(module.doubled.signatures) == 1
    return bool(module.doubled.stats.cache_hits)


def files(home: Path) -> list[Path]:
    return sorted((home / "gerd").iterdir())


def test_code_is_kept_and_found_again(module: ModuleType, home: Path, tmp_path: Path) -> None:
    assert not module.doubled._cache.is_kept()
    assert not was_kept(module)
    (file,) = files(home)
    assert module.doubled._cache.is_kept()
    assert was_kept(fresh(tmp_path))
    assert files(home) == [file]
    assert (home / "gerd").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "pickle", "folder", "pipe"])
def test_damaged_code_is_compiled_again(damage: str, module: ModuleType, home: Path, tmp_path: Path) -> None:
    was_kept(module)
    (file,) = files(home)
    good = file.read_bytes()
    file.unlink()
    if damage == "flip":
        file.write_bytes(good[:5000] + bytes([good[5000] ^ 4]) + good[5001:])
    elif damage in ("cut", "empty"):
        file.write_bytes(good[: 1000 * (damage == "cut")])
    elif damage == "pickle":  # which would leave a trace
        file.write_bytes(bytes(32) + f"cos\nsystem\n(S'touch {tmp_path}/run'\ntR.".encode())
    elif damage == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    assert not was_kept(fresh(tmp_path))
    assert not (tmp_path / "run").exists()
    assert was_kept(fresh(tmp_path)) == (damage != "folder")


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_code_that_others_could_have_written_is_not_unpickled(mode: int, module: ModuleType, home: Path) -> None:
    was_kept(module)
    (file,) = files(home)
    (home / "gerd").chmod(mode)
    before = file.stat().st_mtime_ns
    assert not was_kept(fresh(Path(str(module.__file__)).parent))
    assert file.stat().st_mtime_ns == before
    (home / "gerd").chmod(0o700)
    home.chmod(0o777)
    assert not compiled.is_private(home / "gerd")
    home.chmod(0o1777)
    assert compiled.is_private(home / "gerd")


def test_a_folder_of_another_user_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    assert compiled.is_private(home)
    if os.getuid() == 0:
        os.chown(home, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not compiled.is_private(home)


def test_without_a_place_for_it_code_is_compiled_each_time(module: ModuleType, home: Path, tmp_path: Path) -> None:
    home.write_text("a file where the folder should be")
    assert not was_kept(module)
    assert not was_kept(fresh(tmp_path))


def test_a_full_disk_is_no_error(module: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert not was_kept(module)
    assert files(home) == []


def test_a_setting_in_the_current_folder_does_not_name_the_cache(
    module: ModuleType, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "stranger"), raising=False)
    assert not was_kept(module)
    assert len(files(home)) == 1
    assert not (tmp_path / "stranger").exists()


@pytest.mark.parametrize("timing", known.DIGESTS)
def test_the_known_events_are_those_of_the_definition_and_of_the_kernels(timing: str) -> None:
    assert known.digest(definition.run, timing) == known.DIGESTS[timing]
    assert known.digest(cpu.run, timing) == known.DIGESTS[timing]


def test_kernels_that_give_wrong_events_are_not_used() -> None:
    def wrong(scenes: Any) -> Any:
        for part in cpu.run(scenes):
            part.keys[-1] += 1
            yield part

    with pytest.raises(gerd.GerdError, match="the backend cpu gives wrong events"):
        known.check(wrong, "the backend cpu")
