"""GERD-Bench: which symmetries a network respects, measured on data that everybody makes for themselves, bit by bit.

A benchmark is text and checksums: a frozen config for each task, a table of factors, and the sha256 of every split.
"""

from gerd.bench.digests import digest as digest
from gerd.bench.digests import expected_digest as expected_digest
from gerd.bench.factor_table import Factor as Factor
from gerd.bench.factor_table import factor as factor
from gerd.bench.factor_table import factors as factors
from gerd.bench.making import make as make
from gerd.bench.split_table import Split as Split
from gerd.bench.split_table import split as split
from gerd.bench.split_table import splits as splits
from gerd.bench.split_table import stream as stream
from gerd.bench.task_table import Task as Task
from gerd.bench.task_table import task as task
from gerd.bench.task_table import tasks as tasks
