"""Who may be compared with whom: a rule places posts, one engine writes files, one audit re-reads.

In come a posts table and a rule over authors, time and topics; out go a posts table a split, and
``split.json``. A split never depends on what a model does with it.

A rule of its own file gets its line in :data:`RULES`, and
:func:`~helpers.splits.assignment.make_split` takes it.
"""

from helpers.splits.assignment import NoSplit
from helpers.splits.by_author import AuthorSplit, GivenSplit
from helpers.splits.by_time import TimeSplit
from helpers.splits.by_topic import TopicSplit

RULES = {
    "none": NoSplit,
    "time": TimeSplit,
    "authors": AuthorSplit,
    "given": GivenSplit,
    "topics": TopicSplit,
}
