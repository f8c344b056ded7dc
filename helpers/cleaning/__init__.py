"""Cleaning of single posts: markup, quotes, signatures and code are removed.

Names and addresses become placeholders, and the names of authors become pseudonyms. No function
here uses other posts or the corpus.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {".text": ["clean_post"]},
)
