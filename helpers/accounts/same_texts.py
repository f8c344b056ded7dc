"""Find the pairs of accounts that posted the same texts.

Copies are dropped when posts are read, and with them accounts that posted nothing else. So these
pairs are looked for in what was read, before anything else is computed.
"""

import numpy as np
import pandas as pd

from ..core.artifacts import folder_lock
from ..corpus.posts_table import open_database
from ..corpus.shared_texts import COLUMNS, pairs_with_same_texts
from .decided_pairs import LATER, with_listed_names
from .reading import OwnPosts
from .samples import MIN_POSTS

SIDES = ("a", "b")


def find_same_texts(
    posts: OwnPosts, second_posts: OwnPosts | None = None, decisions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the pairs of accounts that posted the same texts, and of which nobody decided.

    Parameters
    ----------
    posts : OwnPosts
        all accounts of a file
    second_posts : OwnPosts, optional
        the accounts of a second file; pairs are then those of an account of each
    decisions : DataFrame, optional
        result of :func:`helpers.accounts.decided_pairs.read_decisions`

    Returns
    -------
    Columns ``account_a``, ``account_b``, ``texts``, the number of different texts that both posted,
    ``posts_a``, ``posts_b``, and ``compared_a``, ``compared_b``: whether MIN_POSTS posts are left
    without copies, so that the account can be compared with others
    """
    sides = dict(zip(SIDES, (posts, second_posts or posts), strict=True))
    pairs = pd.DataFrame(columns=COLUMNS)
    paths = [side.texts_path for side in (posts, second_posts) if side is not None]
    if all(paths):
        with (
            folder_lock(paths[0].parent),
            open_database(paths[0].with_suffix(".work")) as connection,
        ):
            pairs = pairs_with_same_texts(connection, *paths)
    for letter, side in sides.items():
        compared = side.names[side.store.posts_per_author() >= MIN_POSTS]
        pairs[f"compared_{letter}"] = pairs[f"account_{letter}"].isin(compared)
    if decisions is None:
        return pairs
    return _undecided(pairs, decisions, {*posts.names, *sides["b"].names})


def _undecided(pairs, decisions, names):
    """Leave out the pairs that were decided; ``names`` are those of accounts that are compared."""
    settled = decisions[decisions.decision != LATER]
    settled = with_listed_names(settled, {*names, *pairs.account_a, *pairs.account_b})
    decided = set(map(frozenset, zip(settled.account_a, settled.account_b, strict=True)))
    accounts = zip(pairs.account_a, pairs.account_b, strict=True)
    is_open = [frozenset(pair) not in decided for pair in accounts]
    return pairs[np.array(is_open, bool)].reset_index(drop=True)
