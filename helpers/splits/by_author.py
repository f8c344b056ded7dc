"""A split by author alone, for texts without a date: shares of the authors, or files as given."""

from typing import Literal

import numpy as np
import pandas as pd
from duckdb import DuckDBPyConnection
from pydantic import Field, model_validator
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helpers.corpus.posts_table import query_scalar
from helpers.splits.assignment import Rule
from helpers.splits.audit import PAIR


class AuthorSplit(Rule):
    """Shares of the authors, drawn at random, for test and dev; the others train.

    An author is drawn with all posts. Where every id is that of a text of a given pair (source pan:
    "<file>/<pair>/a", "<file>/<pair>/b"), authors who share a pair are connected, and so on; whole
    components are drawn while they fit into the share, so that no pair is cut (tyo2021, section
    2.1.1, without its half-known pairs).

    Attributes
    ----------
    test, dev : float, shares of the authors
    seed : int, of the draw
    files : of the splits that are not drawn, see :func:`assign_given_files`
    """

    splits = ("train", "test", "dev")
    test: float = Field(0.1, gt=0, lt=1)
    dev: float = Field(0.1, gt=0, lt=1)
    seed: int = Field(0, ge=0)
    files: dict[Literal["test", "dev"], str] = {}

    @model_validator(mode="after")
    def _something_is_left(self):
        if self.test + self.dev >= 1:
            raise ValueError(
                f"test ({self.test}) and dev ({self.dev}) must leave something for training"
            )
        return self

    def guarantees(self, facts: dict) -> dict:
        """Return what the files must keep: given pairs are whole."""
        return super().guarantees(facts) | {"pairs_whole": facts["given_pairs"]}

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return ``given_pairs`` and ``largest_component``."""
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
        sizes = np.bincount(component)
        split = self._draw(sizes, len(authors))
        connection.register("authors", authors.assign(drawn=split[component]))
        self.write_assignment(
            connection,
            """SELECT n, coalesce(home, drawn) AS split, reason
               FROM given LEFT JOIN authors USING (author)""",
        )
        return {"given_pairs": has_pairs, "largest_component": int(sizes.max(initial=0))}

    def _draw(self, sizes, n_authors):
        """Return the split of each component, of which (components,) ``sizes`` are the authors."""
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
    """Files of the source as they are for test, or for test and dev, as PAN gives them."""

    files: dict[Literal["test", "dev"], str] = Field(min_length=1)


def assign_given_files(connection: DuckDBPyConnection, files: dict[str, str]) -> None:
    """Make the table ``given(n, author, home, reason)``: who belongs to which given file.

    The home of an author is the first split in whose file he has a post, NULL where there is none;
    his posts elsewhere, in other files too, have the reason "authors_of_other_splits", so that no
    author is on two sides.

    Parameters
    ----------
    connection
        DuckDB connection with the view ``posts``.
    files : by split the file or folder, below the location of the source
        The ids of its posts begin with it.

    Raises
    ------
    ValueError
        Where posts have no ids, or none begins so.
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
    """Return (authors,) int, the number of each author's component: who share a pair, and so on."""
    links = connection.execute(f"""
        SELECT DISTINCT author,
               min(author) OVER (PARTITION BY regexp_extract(id, {PAIR}, 1)) AS first
        FROM posts SEMI JOIN (SELECT n FROM given WHERE home IS NULL) USING (n)""").df()
    index = pd.Index(authors)
    ends = (index.get_indexer(links["author"]), index.get_indexer(links["first"]))
    graph = coo_array((np.ones(len(links), bool), ends), shape=(len(authors), len(authors)))
    return connected_components(graph, directed=False)[1]
