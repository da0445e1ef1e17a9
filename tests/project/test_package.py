"""The public names, and the wheel: what is in it, and that it works where nothing else of the repository is."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email import message_from_bytes
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.tags import sys_tags

import gerd

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = PROJECT["dependencies"]

STUB = ast.parse((ROOT / "gerd" / "__init__.pyi").read_text("utf-8"))
NAMES = {alias.asname for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names}
USES = """
import gerd


config: gerd.Config = gerd.load("config.yaml")
recording: gerd.Recording = gerd.simulate(config, 3)
network: gerd.models.ScaleChannels = gerd.models.ScaleChannels(seed=1)
turn: gerd.transformation.Transformation = gerd.transformation.rotation(30)
measured: gerd.measure.Measured = gerd.measure.invariance_error(network, config, turn)
gerd.plot.events(recording)
gerd.Dataset("data", "counts", "T", steps=3, warmup=2, sum=2)
gerd.Stream(config, 8, "counts", "T", every=2, stack=3)
"""


def test_every_public_name_is_served_and_listed() -> None:
    assert set(dir(gerd)) == NAMES == {*gerd.__all__, "__version__"}
    for name in NAMES:
        assert getattr(gerd, name) is not None
    with pytest.raises(AttributeError, match="gerd attribute nonsense"):
        _ = gerd.nonsense  # type: ignore[attr-defined]


def test_a_type_checker_knows_the_public_names(tmp_path: Path) -> None:
    """And the options of `Dataset` and `Stream`, which are those of one typed dict."""
    mistakes = {
        "gerd.nonsense": 'Module has no attribute "nonsense"',
        "gerd.simulate(3)": 'Argument 1 to "simulate" has incompatible type "int"',
        "gerd.Dataset('data', warmpu=2)": 'Unexpected keyword argument "warmpu" for "Dataset"',
        "gerd.Stream(config, 8, stack='3')": 'Argument "stack" to "Stream" has incompatible type "str"',
    }
    (tmp_path / "uses.py").write_text(USES + "\n".join(mistakes))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--follow-imports=silent", "--no-site-packages", "--ignore-missing-imports"]  # of our own types only
    result = subprocess.run([*command, str(tmp_path / "uses.py")], cwd=ROOT, capture_output=True, text=True)
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert len(errors) == len(mistakes), result.stdout + result.stderr
    for line, message in zip(errors, mistakes.values(), strict=True):
        assert message in line


def built(out: Path, **settings: str) -> Path:
    """A wheel of the package."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings})
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without the machine code of the kernels, which takes a minute to compile."""
    return built(tmp_path_factory.mktemp("wheel"), HATCH_BUILD_NO_HOOKS="true")


def test_machine_code_is_made_for_every_processor_or_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel gets all kinds, an editable package the best, and what is there already is not made again."""
    monkeypatch.syspath_prepend(ROOT)
    hook = import_module("hatch_build").MachineCode
    asked: list[str] = []

    def compiler(_: Any, program: str, **settings: str) -> str:
        """Knows two kinds of processors, and makes a file for whichever it is asked for."""
        if not settings:
            return "linux-best linux-plain"
        asked.append(settings["NUMBA_CPU_NAME"])
        (Path(settings["XDG_CACHE_HOME"]) / "gerd").mkdir()
        (Path(settings["XDG_CACHE_HOME"]) / "gerd" / "kernel-types-compiler").write_text(program)
        return ""

    monkeypatch.setattr(hook, "run_python", compiler)
    events = tmp_path / "gerd" / "events"
    shutil.copytree(ROOT / "gerd" / "events", events, ignore=shutil.ignore_patterns("machine"))
    data: dict[str, Any]
    for version, made in (
        ("editable", ["best"]),
        ("editable", []),
        ("standard", ["best", "plain"]),
        ("standard", []),
        ("editable", []),
    ):
        asked.clear()
        data = {"artifacts": []}
        hook(str(tmp_path), {}, None, None, "", "wheel").initialize(version, data)
        assert sorted(asked) == made
        tag = data.get("tag", "py3-none-any")
        assert tag in map(str, sys_tags())
        assert (tag == "py3-none-any") == (version == "editable")  # which stays where it is
    names = {file.name for file in (events / "machine").iterdir()}
    assert names == {"kernel-types-linux-best", "kernel-types-linux-plain", "sources"}
    assert set(data["artifacts"]) == {"/gerd/events/machine/*"}
    (events / "cpu" / "rules.py").write_text("# another kernel\n")
    hook(str(tmp_path), {}, None, None, "", "wheel").initialize("editable", data)
    assert asked == ["best"]
    assert not (events / "machine" / "kernel-types-linux-plain").exists()  # it is of the old kernel


def test_a_wheel_without_machine_code_is_for_all_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    hook = import_module("hatch_build").MachineCode

    def no_compiler(_hook: Any, _program: str, **settings: str) -> str:
        if not settings:
            return "linux-best"
        raise OSError("there is no compiler")

    monkeypatch.setattr(hook, "run_python", no_compiler)
    (tmp_path / "gerd" / "events").mkdir(parents=True)
    data: dict[str, Any] = {"artifacts": []}
    hook(str(tmp_path), {}, None, None, "", "wheel").initialize("standard", data)
    assert set(data) == {"artifacts"}
    assert not (tmp_path / "gerd" / "events" / "machine").exists()


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = [file for file in (ROOT / "gerd").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == {str(file.relative_to(ROOT)) for file in files if file.parent.name != "machine"}
    assert {"gerd/__init__.pyi", "gerd/py.typed", "gerd/cli/starter.yaml", "gerd/page/web/index.html"} <= inside
    frozen = (*gerd.bench.tasks(), "factors", "splits")
    assert {f"gerd/bench/v1/{name}.yaml" for name in frozen} | {"gerd/bench/v1/digests.json"} <= inside
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_metadata_is_complete(wheel: Path) -> None:
    opened = zipfile.ZipFile(wheel)
    (folder,) = {name.partition("/")[0] for name in opened.namelist() if ".dist-info/" in name}
    metadata = message_from_bytes(opened.read(f"{folder}/METADATA"))
    assert (metadata["Name"], metadata["Version"]) == ("gerd-events", gerd.__version__)
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Summary"] == PROJECT["description"]
    assert str(metadata.get_payload()).startswith("# GERD")
    needed = {line.partition(">")[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert needed == {line.partition(">")[0] for line in NEEDED}
    assert f"gerd = {PROJECT['scripts']['gerd']}" in opened.read(f"{folder}/entry_points.txt").decode()


def test_the_recipe_for_conda_forge_asks_for_what_the_package_needs() -> None:
    names = {"matplotlib": "matplotlib-base", "torch": "pytorch", "xxhash": "python-xxhash"}
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    needed = {f"{names.get(name, name)} >={least}" for name, _, least in (line.partition(">=") for line in NEEDED)}
    context = recipe["context"]
    assert set(recipe["requirements"]["run"]) == {"python >=${{ python_min }}", *needed}
    assert (recipe["package"]["name"], context["version"]) == (PROJECT["name"], gerd.__version__)
    assert f">={context['python_min']}" == PROJECT["requires-python"]
    (start,) = recipe["build"]["python"]["entry_points"]
    assert start == f"gerd = {PROJECT['scripts']['gerd']}"


def test_every_import_is_a_declared_dependency() -> None:
    """The packages that the source imports are those that pyproject.toml names, or are in one of its extras."""
    known = {
        "pillow": "PIL",
        "pyyaml": "yaml",
        "fonttools": "fontTools",
        "imageio-ffmpeg": "imageio_ffmpeg",
        "lazy-loader": "lazy_loader",
        "markdown-it-py": "markdown_it",
    }
    extras = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name != "dev"}
    declared, optional = (
        {known.get(line.partition(">")[0], line.partition(">")[0]) for line in lines}
        for lines in (NEEDED, [line for lines in extras.values() for line in lines])
    )
    imported: set[str] = set()
    for file in (ROOT / "gerd").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add((node.module or "").partition(".")[0])
    bundled = {"triton", "pydantic_core", "llvmlite", "mpl_toolkits"}  # come with torch, pydantic, numba and matplotlib
    bundled.add("_typeshed")  # is there for type checkers only
    assert imported - set(sys.stdlib_module_names) - {"gerd"} - bundled - optional == declared


@pytest.mark.long
def test_the_wheel_works_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """The dependencies are borrowed from this environment; the package comes from the wheel alone, machine code too."""
    wheel = built(tmp_path)
    assert not wheel.name.endswith("-any.whl")  # pip, below, agrees that it is for this machine
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
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
        for entry in Path(folder).iterdir():
            if "gerd" not in entry.name and entry.suffix != ".pth":
                (borrowed / entry.name).symlink_to(entry)
    (site / "borrowed.pth").write_text(f"{borrowed}\n")

    assert run(binaries / "python", "-c", "import gerd; print(gerd.__file__)").startswith(str(site))
    assert "generate" in run(binaries / "gerd", "--help")
    use = "import sys, gerd; r = gerd.simulate({'steps': 2, 'actors': []}); r.images(); print('numba' in sys.modules)"
    assert run(binaries / "python", "-c", use) == "False\n"
    assert not (tmp_path / "cache").exists()
    run(binaries / "gerd", "new", "mine.yaml")
    run(binaries / "gerd", "generate", "mine.yaml", "data", "-n", "70", "--workers", "2")
    assert "70 recordings, all sound" in run(binaries / "gerd", "verify", "data")
    run(binaries / "gerd", "render", "data", "out.gif")
    assert (tmp_path / "out.gif").stat().st_size > 0
