"""Runs in a process of its own with the original program (gerd 0.5.1) on its path: seconds per recording, as JSON.

Arguments: case, device, repeats. The original renders one shape at a time; a case of three shapes is three of them.
"""

from __future__ import annotations

import json
import sys
import time

import torch

if not torch.cuda.is_available():  # torchvision's compiled operators are missing beside a CPU build; none is used here
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from gerd.render import RenderParameters, render_shape  # type: ignore[import-not-found]
from gerd.shapes import circle, square, triangle  # type: ignore[attr-defined]

CASES = {
    "three shapes": (300, 128, [circle, square, triangle], {}),
    "three shapes, all transformations": (
        300,
        128,
        [circle, square, triangle],
        {"rotate_start": 0.0, "rotate_velocity": 1.0, "shear_start": 0.0, "shear_velocity": 0.1},
    ),
    "one square": (64, 60, [square], {}),
}


def main() -> None:
    case, device, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
    side, steps, shapes, more = CASES[case]
    torch.set_num_threads(1)
    clock = time.process_time if device == "cpu" else time.perf_counter
    seconds = []
    for _ in range(repeats):
        begun = clock()
        for k, shape in enumerate(shapes):
            parameters = RenderParameters(
                resolution=torch.Size([side, side]),
                length=steps,
                device=device,
                translate_start=(side / 3, side / 3 + k * side / 8),
                translate_velocity=(0.5, 0.25),
                scale_start=side / 5,
                scale_velocity=0.1,
                bg_noise_density=0.001,
                **more,
            )
            render_shape(shape, parameters)
        if device != "cpu":
            torch.cuda.synchronize()
        seconds.append(clock() - begun)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
