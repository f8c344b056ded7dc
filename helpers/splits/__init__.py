"""Who may be compared with whom: a rule makes an assignment, one engine writes it, one audit re-reads it.

A rule of its own file gets its line in :data:`RULES`, and :func:`~helpers.splits.assignment.make_split` takes it.
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
