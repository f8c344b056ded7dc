"""Splits of texts without dates: random shares of authors or of given pairs, or given files."""

from typing import Literal

import numpy as np
import pandas as pd
from duckdb import DuckDBPyConnection
from pydantic import Field
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..corpus.posts_table import query_scalar
from .assignment import SharesRule
from .audit import PAIR


class AuthorSplit(SharesRule):
    """Shares of the authors, drawn at random, for test and dev; the other authors train.

    An author is drawn with all of their posts. Where every id names a text of a given pair (source
    pan: "<file>/<pair>/a", "<file>/<pair>/b"), authors who share a pair are linked, directly or
    through others, and each group of linked authors is drawn as a whole, so that both texts of a
    pair are in one split (tyo2021, section 2.1.1, without its half-known pairs). A group larger
    than what is left of the share is passed over.

    Attributes
    ----------
    test, dev : float, shares of the authors who are in no given file
        The share of a split in ``files`` is ignored.
    seed : int, seed of the draw
    files : the splits that are not drawn, and the file of each, see :func:`assign_given_files`
    """

    splits = ("train", "test", "dev")
    files: dict[Literal["test", "dev"], str] = {}

    def guarantees(self, facts: dict) -> list[list]:
        """Return the promises that the audit checks: given pairs are whole, where there are any."""
        promises = super().guarantees(facts)
        if facts["given_pairs"]:
            promises.append(["pairs_whole", list(self.splits)])
        return promises

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return what is known of given pairs.

        Returns
        -------
        ``given_pairs``: whether every post belongs to a given pair.
        """
        assign_given_files(connection, self.files)
        authors = connection.execute(
            "SELECT DISTINCT author FROM given WHERE home IS NULL ORDER BY author"
        ).df()
        component = np.arange(len(authors))
        has_pairs = bool(
            query_scalar(
                connection,
                f"SELECT bool_and(coalesce(regexp_matches(id, {PAIR}), false)) FROM posts",
            )
        )
        if has_pairs:
            component = _components(connection, authors["author"])
        split = self._draw(np.bincount(component), len(authors))
        connection.register("authors", authors.assign(drawn=split[component]))
        self.write_assignment(
            connection,
            """SELECT n, coalesce(home, drawn) AS split, reason
               FROM given LEFT JOIN authors USING (author)""",
        )
        return {"given_pairs": has_pairs}

    def _draw(self, sizes, n_authors):
        """Assign each component, a group of linked authors, to a split at random.

        Parameters
        ----------
        sizes : (C,), the number of authors in each of C components
        n_authors : their sum, of which test and dev are shares

        Returns
        -------
        (C,), the name of the split of each component
        """
        rng = np.random.default_rng(self.seed)
        split = np.full(len(sizes), "train", object)
        order = rng.permutation(len(sizes))
        for name, share in (("test", self.test), ("dev", self.dev)):
            if name in self.files:
                continue
            free_places = round(share * n_authors)
            for component in order[split[order] == "train"]:
                if sizes[component] <= free_places:
                    split[component] = name
                    free_places -= sizes[component]
        return split


class GivenSplit(AuthorSplit):
    """Files of the source as test or dev or both, as PAN gives them; at least one must be named.

    Whichever of the two is not named is drawn as in :class:`AuthorSplit`.
    """

    files: dict[Literal["test", "dev"], str] = Field(min_length=1)


class PairSplit(SharesRule):
    """Shares of the given pairs, drawn at random, for test and dev; the other pairs train.

    This is the rule of tyo2021, section 2.1.1, by which some authors are half known. It is here to
    be compared with :class:`AuthorSplit`, which keeps the authors of training and test apart.

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

    def guarantees(self, facts: dict) -> list[list]:
        """Return the promises that the audit checks: texts are apart, authors are not."""
        return [[check, list(self.splits)] for check in ("texts_apart", "pairs_whole")]

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return how many authors are half known.

        Returns
        -------
        ``half_known_authors``: the number of authors of test or dev who have texts in training,
        too.

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
        split = self._draw(posts)
        connection.register("drawn_pairs", split.rename("split").reset_index())
        self.write_assignment(
            connection,
            f"""SELECT n, split, '' AS reason
                FROM posts JOIN drawn_pairs ON pair = regexp_extract(id, {PAIR}, 1)""",
        )
        placed = posts["pair"].map(split)
        known = set(posts["author"][placed == "train"])
        tested = set(posts["author"][placed != "train"])
        return {"half_known_authors": len(known & tested)}

    def _draw(self, posts):
        """Return the split of each pair, a Series by pair."""
        pairs = np.sort(posts["pair"].unique())
        order = np.random.default_rng(self.seed).permutation(pairs)
        split = pd.Series("train", index=pd.Index(pairs, name="pair"))
        for name, share in (("test", self.test), ("dev", self.dev)):
            is_left = (split[order] == "train").to_numpy()
            first_pairs = order[is_left][: round(share * len(pairs))]
            authors = posts["author"][posts["pair"].isin(first_pairs)]
            touched = posts["pair"][posts["author"].isin(authors)].unique()
            split[touched[(split[touched] == "train").to_numpy()]] = name
        return split


def assign_given_files(connection: DuckDBPyConnection, files: dict[str, str]) -> None:
    """Make the table ``given(n, author, home, reason)``, which assigns authors to given files.

    The home of an author is the first split in whose file they have a post, NULL where there is
    none. Only their posts in that file are used; all their other posts get the reason
    "authors_of_other_splits", so that no author is in two splits.

    Parameters
    ----------
    connection
        DuckDB connection with the view ``posts``.
    files : split -> name of a file or folder, relative to the location of the source
        The ids of its posts begin with this name and a "/". Without files every home is NULL.

    Raises
    ------
    ValueError
        Where a split gets no post from its file, as with a wrong name or posts without ids.
    """
    prefixes = [f"{name.rstrip('/')}/" for name in files.values()]
    places = np.arange(len(files))
    table = pd.DataFrame({"split": list(files), "name": prefixes, "place": places})
    connection.register("files", table.astype({"split": object, "name": object}))
    connection.execute("""
        CREATE TABLE given AS
        WITH found AS (
            SELECT n, author, min_by(split, place) AS split, min(place) AS place
            FROM posts LEFT JOIN files ON starts_with(id, name) GROUP BY n, author),
        homes AS (SELECT author, min_by(split, place) AS home FROM found GROUP BY author)
        SELECT n, author, home, CASE WHEN split IS DISTINCT FROM home
                                     THEN 'authors_of_other_splits' ELSE '' END AS reason
        FROM found JOIN homes USING (author)""")
    for split, name in files.items():
        if not query_scalar(
            connection, "SELECT count(*) FROM given WHERE home = ? AND reason = ''", [split]
        ):
            raise ValueError(
                f"files: no post of {split} comes from the file {name!r}: name a file or folder of "
                "a source with ids, such as pan. Pseudonymised posts and joined documents have no "
                "ids"
            )


def _components(connection, authors):
    """Return the number of each author's component, the group of authors linked by pairs.

    Parameters
    ----------
    connection : DuckDB connection with the view ``posts`` and the table ``given``
    authors : names of the A authors without a home

    Returns
    -------
    (A,) int, component numbers from 0
    """
    links = connection.execute(f"""
        SELECT DISTINCT author,
               min(author) OVER (PARTITION BY regexp_extract(id, {PAIR}, 1)) AS first
        FROM posts SEMI JOIN (SELECT n FROM given WHERE home IS NULL) USING (n)""").df()
    index = pd.Index(authors)
    ends = (index.get_indexer(links["author"]), index.get_indexer(links["first"]))
    graph = coo_array((np.ones(len(links), bool), ends), shape=(len(authors), len(authors)))
    return connected_components(graph, directed=False)[1]
