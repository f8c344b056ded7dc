"""A split by given pairs: the rule of tyo2021, section 2.1.1, by which some authors are half known.

It is here to be compared with :class:`~helpers.splits.by_author.AuthorSplit`, which keeps the
authors of training and test apart.
"""

import numpy as np
import pandas as pd
from duckdb import DuckDBPyConnection

from .assignment import SharesRule
from .audit import PAIR


class PairSplit(SharesRule):
    """Shares of the given pairs, drawn at random, for test and dev; the other pairs train.

    A training pair that has an author of a drawn pair moves to the split of that pair. So no text
    of a drawn author is in training. The other author of a moved pair may have other texts there;
    we call this author half known. A text of a test pair leaves training, so that pairs of test are
    whole. Only pairs given by the source (pan: "<file>/<pair>/a", "<file>/<pair>/b") can be split
    so.

    Attributes
    ----------
    test, dev : float, shares of the pairs, before pairs move
        The paper draws a tenth for test; dev is drawn by the same rule from what is left.
    seed : int, seed of the draw
    """

    splits = ("test", "dev", "train")

    def guarantees(self, facts: dict) -> dict:
        """Return the promises that the audit checks: texts are apart, authors are not."""
        return {"texts_apart": True, "pairs_whole": True}

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return how many authors are half known.

        Returns
        -------
        ``moved_pairs``: the number of pairs that moved out of training; ``half_known_authors``: the
        number of authors of test or dev who have texts in training, too.

        Raises
        ------
        ValueError
            Where a post belongs to no given pair, as from any source but pan.
        """
        posts = connection.execute(
            f"SELECT n, author, regexp_extract(id, {PAIR}, 1) AS pair FROM posts ORDER BY n"
        ).df()
        if not posts["pair"].fillna("").all():
            raise ValueError(
                "split pairs: a post belongs to no given pair. Only PAN's files give pairs; "
                "pseudonymised posts have no ids"
            )
        split, moved = self._draw(posts)
        connection.register("drawn_pairs", split.rename("split").reset_index())
        self.write_assignment(
            connection,
            f"""SELECT n, split, '' AS reason
                FROM posts JOIN drawn_pairs ON pair = regexp_extract(id, {PAIR}, 1)""",
        )
        placed = posts["pair"].map(split)
        known = set(posts["author"][placed == "train"])
        tested = set(posts["author"][placed != "train"])
        return {"moved_pairs": moved, "half_known_authors": len(known & tested)}

    def _draw(self, posts):
        """Return the split of each pair, a Series by pair, and the number of pairs that moved."""
        pairs = np.sort(posts["pair"].unique())
        order = np.random.default_rng(self.seed).permutation(pairs)
        split = pd.Series("train", index=pd.Index(pairs, name="pair"))
        moved = 0
        for name, share in (("test", self.test), ("dev", self.dev)):
            is_left = (split[order] == "train").to_numpy()
            first_pairs = order[is_left][: round(share * len(pairs))]
            authors = posts["author"][posts["pair"].isin(first_pairs)]
            touched = posts["pair"][posts["author"].isin(authors)].unique()
            touched = touched[(split[touched] == "train").to_numpy()]
            split[touched] = name
            moved += len(touched) - len(first_pairs)
        return split, moved
