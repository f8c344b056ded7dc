"""A split by author alone, for texts without a date: shares of the authors, with all their posts, or files as given."""

from typing import Literal

import duckdb
import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helpers.corpus.posts_table import query_scalar
from helpers.splits.assignment import Rule
from helpers.splits.audit import PAIR


class AuthorSplit(Rule):
    """Shares of the authors, drawn at random, for test and dev; the rest trains.

    Where every id is that of a text of a given pair (source pan: "<file>/<pair>/a", "<file>/<pair>/b"), authors who
    share a pair are connected, and so on; whole components are drawn while they fit into the share, so that no pair is
    cut (tyo2021, section 2.1.1, without its half-known pairs). A split of ``files`` is not drawn, see :func:`assign_given_files`.
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

    def promises(self, facts: dict) -> dict:
        return super().promises(facts) | {"pairs_whole": facts["given_pairs"]}

    def assign(self, connection: duckdb.DuckDBPyConnection) -> dict:
        assign_given_files(connection, self.files)
        rng = np.random.default_rng(self.seed)
        authors = connection.execute(
            "SELECT DISTINCT author FROM given WHERE home IS NULL ORDER BY author"
        ).df()
        has_id = "id" in connection.table("posts").columns
        pairs = has_id and bool(query_scalar(
            connection, f"SELECT bool_and(coalesce(regexp_matches(id, {PAIR}), false)) FROM posts"))  # fmt: skip
        component = _components(connection, authors["author"]) if pairs else np.arange(len(authors))
        size = np.bincount(component)
        drawn, order = np.full(len(size), "train", object), rng.permutation(len(size))
        for name, share in (("test", self.test), ("dev", self.dev)):
            room = 0 if name in self.files else round(share * len(authors))
            for each in order[drawn[order] == "train"]:
                if size[each] <= room:
                    drawn[each], room = name, room - size[each]
        connection.register("authors", authors.assign(drawn=drawn[component]))
        self.settle(connection, "SELECT n, coalesce(home, drawn) AS split, reason FROM given LEFT JOIN authors"
                                " USING (author)")  # fmt: skip
        return {"given_pairs": pairs, "largest_component": int(size.max(initial=0))}


class GivenSplit(AuthorSplit):
    """Files of the source as they are for test, or for test and dev, as PAN gives them."""

    files: dict[Literal["test", "dev"], str] = Field(min_length=1)


def assign_given_files(connection: duckdb.DuckDBPyConnection, files: dict[str, str]) -> None:
    """Make the table ``given(n, author, home, reason)`` of the view ``posts``: who belongs to which given file.

    files: by split the file or folder, below the location of the source, with which the ids of its posts begin. The
    home of an author is the first split in whose file he has a post, NULL where there is none; his posts elsewhere, in
    other files too, have the reason "authors_of_other_splits", so that no author is on two sides.
    Raises ValueError where posts have no ids, or none begins so.
    """
    has_id = "id" in connection.table("posts").columns
    names = pd.DataFrame({"split": list(files), "name": [f"{name.rstrip('/')}/" for name in files.values()],
                          "place": range(len(files))}, dtype=object)  # fmt: skip
    connection.register("files", names.astype({"place": int}))
    connection.execute(f"""
        CREATE TABLE given AS
        WITH found AS (SELECT n, author, min_by(split, place) AS split, min(place) AS place FROM posts
                       LEFT JOIN files ON starts_with({"id" if has_id else "''"}, name) GROUP BY n, author),
        homes AS (SELECT author, min_by(split, place) AS home FROM found GROUP BY author)
        SELECT n, author, home,
               CASE WHEN split IS DISTINCT FROM home THEN 'authors_of_other_splits' ELSE '' END AS reason
        FROM found JOIN homes USING (author)""")
    for split, name in files.items():
        if not query_scalar(
            connection, "SELECT count(*) FROM given WHERE home = ? AND reason = ''", [split]
        ):
            raise ValueError(
                f"files: no post of {split} comes from the file {name!r}: name a file or folder of a "
                "source with ids, such as pan. Pseudonymised posts and joined documents have no ids"
            )


def _components(connection, authors):
    """For each author, (N,), the number of the component: those who share a pair, and so on."""
    links = connection.execute(f"""
        SELECT DISTINCT author, min(author) OVER (PARTITION BY regexp_extract(id, {PAIR}, 1)) AS first
        FROM posts SEMI JOIN (SELECT n FROM given WHERE home IS NULL) USING (n)""").df()
    a, b = (pd.Index(authors).get_indexer(links[name]) for name in ("author", "first"))
    graph = coo_array((np.ones(len(a), bool), (a, b)), shape=(len(authors), len(authors)))
    return connected_components(graph, directed=False)[1]
