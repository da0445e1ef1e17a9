"""Which effect of a camera breaks which symmetry?

One effect of a camera is turned on at a time, and a scene and its transformed twin are recorded with it. Do the events
of the transformed scene lie where those of the scene belong after the transformation? And what does the effect do to a
network that finds a square at any speed, and was trained without it?
"""

from gerd.studies.camera.report import report as report
from gerd.studies.camera.trials import SIZES as SIZES
from gerd.studies.camera.trials import TAKES as TAKES
from gerd.studies.camera.trials import TITLE as TITLE
from gerd.studies.camera.trials import compute as compute
