"""The paper's demonstration: do five time constants work over a wider range of speeds than one?

Section 3.2 of the paper as it stands there: a square under translation and scaling, seen at one velocity in the
training and at eight others in the test; five channels whose softmaxed heat maps are added up with learnt weights,
against one channel. Beside them stand the five with equal weights and by evidence, and one channel with other time
constants. What the paper leaves open is a field that --set replaces, such as --set size_velocity=1; a table of the
report has all of them.

`choices` has what the paper leaves open, and `taken` the table; `trials` the stimuli, the networks and their training;
`findings` what follows from the errors; `pictures` and `report` the pages.
"""

from gerd.studies.demonstration.report import report as report
from gerd.studies.demonstration.trials import SIZES as SIZES
from gerd.studies.demonstration.trials import TAKES as TAKES
from gerd.studies.demonstration.trials import TITLE as TITLE
from gerd.studies.demonstration.trials import compute as compute
