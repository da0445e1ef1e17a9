"""Do networks with receptive fields in space and time find shapes better, over sizes and over speeds?

Four networks (convolutions with rectifiers on one frame and on eight, leaky integrators, leaky integrate-and-fire
neurons) find a circle, a square and a triangle, at four sizes and at four speeds. Each begins with receptive fields,
Gaussian derivatives and time constants in octaves, or with uniform numbers. It repeats, smaller, an experiment of
Pedersen, Conradt and Lindeberg (Nature Communications 16:8231, 2025), and puts their errors beside ours.
"""

from gerd.studies.receptive_fields.report import TITLE as TITLE
from gerd.studies.receptive_fields.report import report as report
from gerd.studies.receptive_fields.trials import SIZES as SIZES
from gerd.studies.receptive_fields.trials import TAKES as TAKES
from gerd.studies.receptive_fields.trials import compute as compute
