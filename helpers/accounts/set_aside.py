"""Name the accounts of a file that are set aside before anybody is compared, and say why.

Whoever posts in a file is compared with others or stands here: nobody vanishes. Names that stand
for nobody, such as "[deleted]", are no accounts.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from ..cleaning.authors import (
    author_name,
    is_placeholder,
    pseudonym_key,
    pseudonymiser,
    same_author,
)
from ..cleaning.text import is_bot
from ..corpus.shared_texts import authors_of_texts
from ..sources.table import author_names
from .samples import MIN_POSTS

COLUMNS = ["account", "posts", "reason", "detail"]
SET_ASIDE = "set aside"  # the state of such an account
BOTS = "accounts_of_bots"
UNUSABLE = "accounts_without_posts"
COPIES = "accounts_of_copies"
FEW = "accounts_with_few_posts"
ONE_FORM = "accounts_of_one_form"
PASSAGES = "accounts_of_shared_passages"
BOTH_LISTS = "accounts_of_passages_in_both_lists"
# what is said after "2 accounts are set aside,"; the keys count them in a data card
REASONS = {
    BOTS: "with the name of a bot",
    UNUSABLE: "with no post that can be read (too short, without text, or without a clear time)",
    COPIES: "with nothing but copies of earlier posts, or too few words beside names and signature",
    FEW: f"with fewer than {MIN_POSTS} posts, copies and very short ones not counted",
    ONE_FORM: "with posts of one form after numbers and names are masked, by a program or by "
    "somebody whose posts are all alike",
    PASSAGES: f"with fewer than {MIN_POSTS} posts whose words do not stand in other posts, too",
    BOTH_LISTS: f"with fewer than {MIN_POSTS} posts whose words do not stand in the other list, "
    "too",
}


def set_aside_rows(
    accounts: Sequence[str], posts: Sequence[int], reason: str, details: Sequence[str] | str = ""
) -> pd.DataFrame:
    """Return a table of accounts that are set aside for one reason.

    Parameters
    ----------
    accounts : sequence of str
        names, as the list of accounts has them
    posts : sequence of int
        how many posts were read of each
    reason : str
        one of REASONS
    details : sequence of str or str
        what else is said of each, or of all

    Returns
    -------
    COLUMNS
    """
    frame = pd.DataFrame({"account": list(accounts), "posts": list(posts)})
    return frame.astype({"posts": int}).assign(reason=reason, detail=details)[COLUMNS]


def accounts_without_posts(
    location: str,
    column: str,
    where: dict | None,
    texts_path: Path,
    kept: Collection[str],
    pseudonymise: bool,
) -> pd.DataFrame:
    """Return the accounts of a file of which no post is kept, as :func:`set_aside_rows` does.

    Parameters
    ----------
    location, column, where
        of the file, as :func:`helpers.sources.table.author_names` takes them
    texts_path : Path
        the file of who posted which texts, see :mod:`helpers.corpus.shared_texts`
    kept : collection of str
        the accounts of which a post is kept
    pseudonymise : bool
        whether these, and those of the texts, are pseudonyms
    """
    secret = None
    if pseudonymise:
        secret = pseudonym_key()
    pseudonym = pseudonymiser(secret)
    # several spellings may be one account, which is kept under one of them
    kept_authors = set(map(same_author, kept))
    read_authors = set(map(same_author, authors_of_texts(texts_path)))
    reasons = {}
    accounts = {}
    for name in author_names(location, column, where):
        account = pseudonym(name)
        author = same_author(account)
        if author in kept_authors or not same_author(name) or is_placeholder(author_name(name)):
            continue
        accounts.setdefault(author, account)
        reasons[author] = UNUSABLE
        if author in read_authors:
            reasons[author] = COPIES
        elif is_bot(author_name(name)):
            reasons[author] = BOTS
    return set_aside_rows(accounts.values(), [0] * len(accounts), list(reasons.values()))
