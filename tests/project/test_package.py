"""The wheel: what is in it, and that it works where nothing else of the repository is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import gerd

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = [file for file in (ROOT / "gerd").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == {str(file.relative_to(ROOT)) for file in files}
    assert {"gerd/__init__.pyi", "gerd/py.typed", "gerd/cli/starter.yaml", "gerd/page/web/index.html"} <= inside
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_metadata_is_complete(wheel: Path) -> None:
    opened = zipfile.ZipFile(wheel)
    (folder,) = {name.partition("/")[0] for name in opened.namelist() if ".dist-info/" in name}
    metadata = message_from_bytes(opened.read(f"{folder}/METADATA"))
    assert (metadata["Name"], metadata["Version"]) == ("gerd", gerd.__version__)
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Summary"] == PROJECT["description"]
    assert str(metadata.get_payload()).startswith("# GERD")
    needed = {line.partition(">")[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert needed == {line.partition(">")[0] for line in PROJECT["dependencies"]}
    assert b"gerd = gerd.cli.app:main" in opened.read(f"{folder}/entry_points.txt")


def test_every_import_is_a_declared_dependency() -> None:
    """The packages that the source imports are those that pyproject.toml names, or are in one of its extras."""
    known = {"pillow": "PIL", "pyyaml": "yaml", "fonttools": "fontTools", "imageio-ffmpeg": "imageio_ffmpeg"}
    extras = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name != "dev"}
    declared, optional = (
        {known.get(line.partition(">")[0], line.partition(">")[0]) for line in lines}
        for lines in (PROJECT["dependencies"], [line for lines in extras.values() for line in lines])
    )
    found: set[str] = set()
    for file in (ROOT / "gerd").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add((node.module or "").partition(".")[0])
    bundled = {"triton", "pydantic_core"}  # come with torch and pydantic
    assert found - set(sys.stdlib_module_names) - {"gerd"} - bundled - optional == declared


@pytest.mark.long
def test_the_wheel_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """The dependencies are borrowed from this environment; the package comes from the wheel alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    binaries = tmp_path / "venv" / "bin"

    def run(*command: Path | str) -> str:
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert result.returncode == 0, result.stderr
        return result.stdout

    site = Path(run(binaries / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "--disable-pip-version-check"]
    run(*pip, "install", "--no-deps", "--no-index", wheel)
    borrowed = site / "borrowed"
    borrowed.mkdir()
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for found in Path(folder).iterdir():
            if "gerd" not in found.name and found.suffix != ".pth":
                (borrowed / found.name).symlink_to(found)
    (site / "borrowed.pth").write_text(f"{borrowed}\n")

    assert run(binaries / "python", "-c", "import gerd; print(gerd.__file__)").startswith(str(site))
    assert "generate" in run(binaries / "gerd", "--help")
    run(binaries / "gerd", "new", "mine.yaml")
    run(binaries / "gerd", "generate", "mine.yaml", "data", "-n", "70", "--workers", "2")
    assert "70 recordings, all sound" in run(binaries / "gerd", "verify", "data")
    run(binaries / "gerd", "render", "data", "out.gif")
    assert (tmp_path / "out.gif").stat().st_size > 0
