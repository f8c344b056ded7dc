"""From the parts of a source to one posts table and its data card.

Posts are collected; names are masked, copies dropped and signatures cut (``merge.py``, whose SQL is
``merge.sql``); then posts can be selected and joined into documents. Every dropped row is counted
by its reason. No module here uses splits, tokens or models.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        ".collection": ["ENGINES", "CollectConfig", "collect"],
        ".posts_table": ["Selection", "corpus_statistics", "select_posts"],
        ".workers": ["run_by_daft"],
    },
)
