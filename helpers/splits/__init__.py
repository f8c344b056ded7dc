"""Splits: a rule places posts, one engine writes the files, and one audit re-reads and checks them.

The input is a posts table and a rule over authors, time and topics. The output is one posts table
per split, and ``split.json``. A split never depends on what a model does with it.

To add a rule, write it in a file of its own and add its line to :data:`RULES`;
:func:`make_split` applies any rule.
"""

from .assignment import NoSplit, make_split
from .audit import audit_split
from .by_author import AuthorSplit, GivenSplit, PairSplit
from .by_time import TimeSplit
from .by_topic import TopicSplit

__all__ = ["RULES", "audit_split", "make_split"]

RULES = {
    "none": NoSplit,
    "time": TimeSplit,
    "authors": AuthorSplit,
    "given": GivenSplit,
    "pairs": PairSplit,
    "topics": TopicSplit,
}
