"""The lowest versions that pyproject.toml allows, as lines for pip: python tests/support/lowest.py [EXTRA …]."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def lowest(*extras: str) -> dict[str, str]:
    """Package → version, of all that the package needs and of these extras."""
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    found = {line: re.match(r"([\w-]+)(?:\[.*?\])?>=([\d.]+)", line) for line in lines}
    missing = [line for line, match in found.items() if match is None]
    assert not missing, f"without a lower bound: {missing}"
    return {match[1]: match[2] for match in found.values() if match}


if __name__ == "__main__":
    print("\n".join(f"{package}=={version}" for package, version in lowest(*sys.argv[1:]).items()))
