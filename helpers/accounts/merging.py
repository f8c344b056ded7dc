"""Make one account of accounts that are known to be one person's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..tokens.batch import Samples
from .reading import OwnPosts

JOINER = " + "  # between the names of accounts that are one


def merge_accounts(
    posts: OwnPosts, same: Sequence[tuple[str, str]]
) -> tuple[OwnPosts, dict[str, str]]:
    """Join accounts of one person; their posts are then in the order of their times.

    Parameters
    ----------
    posts : OwnPosts
        all accounts
    same : sequence of (str, str)
        pairs of names, of which those that ``posts`` does not have are ignored; a chain of pairs
        is one account

    Returns
    -------
    The accounts, and for each account that was joined its name -> the name of the joint account.
    """
    row_of_name = {name: row for row, name in enumerate(posts.names)}
    pairs = [pair for pair in same if pair[0] in row_of_name and pair[1] in row_of_name]
    if not pairs:
        return posts, {}
    left = [row_of_name[first] for first, _ in pairs]
    right = [row_of_name[second] for _, second in pairs]
    size = len(posts.names)
    graph = coo_array((np.ones(len(pairs)), (left, right)), (size, size))
    _, person = connected_components(graph, directed=False)
    _, first_row, person = np.unique(person, return_index=True, return_inverse=True)

    names = np.empty(len(first_row), object)
    joint_names = {}
    for number, row in enumerate(first_row):
        members = posts.names[person == number]
        names[number] = JOINER.join(members)
        if len(members) > 1:
            joint_names.update(dict.fromkeys(members, names[number]))

    store = posts.store
    person_of_post = np.repeat(person, store.posts_per_author())
    order = np.lexsort([store.time, person_of_post])  # by person, then by time
    offsets = np.append(0, np.bincount(person_of_post, minlength=len(names)).cumsum())
    joined = Samples.of_lists(store, order, offsets, np.arange(len(names)))
    return replace(posts, store=joined.store, names=names), joint_names
