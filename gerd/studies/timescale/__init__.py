"""Is a network that was trained at one speed as good at speeds from a quarter to four times it?

The question of the paper's demonstration, asked of a network that is made to be invariant; `gerd study demonstration`
has the paper's own. A square under translation and scaling is seen at time scale 1 in the training, and at eight others
in the test: in recordings of the same length, and in own time, where each shows the same path. A quarter of the events
is kept, or one in twenty.

`trials` has the stimuli, the networks and their training; `findings` what follows from the errors; `report` the pages.
"""

from gerd.studies.timescale.report import report as report
from gerd.studies.timescale.trials import SIZES as SIZES
from gerd.studies.timescale.trials import TAKES as TAKES
from gerd.studies.timescale.trials import TITLE as TITLE
from gerd.studies.timescale.trials import compute as compute
