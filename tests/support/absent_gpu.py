"""What a compiler makes of the kernels for a GPU that need not be there, kernel by kernel, as lines of JSON.

    python tests/support/absent_gpu.py 90 configs/bouncing.yaml "$(cat other.yaml)"

Triton's interpreter, in which the tests run the kernels, takes Python that its compiler refuses. Here the backend goes
through a recording of each config, paths or texts, with a driver that compiles and launches nothing, so that all that
it reads from the device is 0. The first argument is the compute capability: 80 (A100), 90 (H100, H200), 120.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from gerd.config.load import as_config
from gerd.events.cuda import output, run
from gerd.plan.make import plan_of
from gerd.scene.draw import draw

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class AbsentGpu:
    """As much of a driver as the compiler asks for."""

    def __init__(self, capability: int):
        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return device


def compiled(capability: int, configs: list[str]) -> list[dict[str, Any]]:
    """What was made of each kernel that the configs launch: its name, and the registers and the stack of a thread."""
    made: list[dict[str, Any]] = []
    launch, empty, empty_like = JITFunction.run, torch.empty, torch.empty_like

    def compile_only(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:  # noqa: ARG001
        kernel = launch(self, *arguments, grid=grid, warmup=True, **options)
        made.append({"kernel": self.__name__, **resources(kernel.asm["cubin"])})
        return kernel

    driver.set_active(AbsentGpu(capability))
    JITFunction.run = compile_only
    torch.empty = lambda *size, **options: empty(*size, **options).zero_()  # no kernel fills it
    torch.empty_like = lambda *like, **options: empty_like(*like, **options).zero_()
    for config in configs:
        scenes = draw(plan_of(as_config(config)), [0, 1])
        list(run.run(scenes, "cpu"))
        run.frames(scenes, "cpu", counts=scenes.exact)
    output.clear[(1,)](torch.zeros(8, dtype=torch.int32), 8, AT_ONCE=4096, num_warps=8)  # is launched on a GPU only
    return made


def resources(code: bytes) -> dict[str, int]:
    """Registers and bytes of stack of a thread."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        command = [str(TOOLS / "cuobjdump"), "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", told)
    assert found, told
    return {"registers": int(found[1]), "stack": int(found[2])}


if __name__ == "__main__":
    for kernel in compiled(int(sys.argv[1]), sys.argv[2:]):
        print(json.dumps(kernel))
