"""A split by author alone, for texts without a date: shares of the authors, with all their posts."""

import duckdb
import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helpers.corpus.table import scalar
from helpers.splits.assignment import Rule
from helpers.splits.audit import PAIR


class AuthorSplit(Rule):
    """Shares of the authors, drawn at random, for test and dev; the rest trains.

    Where every id is that of a text of a given pair (source pan: "<pair>/a", "<pair>/b"), authors who share a pair are
    connected, and so on; whole components are drawn while they fit into the share, so that no pair is cut (tyo2021,
    section 2.1.1, without its half-known pairs).
    """

    splits = ("train", "test", "dev")
    test: float = Field(0.1, gt=0, lt=1)
    dev: float = Field(0.1, gt=0, lt=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _something_is_left(self):
        if self.test + self.dev >= 1:
            raise ValueError(f"test ({self.test}) and dev ({self.dev}) must leave something for training")
        return self

    def promises(self, facts: dict) -> dict:
        return super().promises(facts) | {"pairs_whole": facts["given_pairs"]}

    def assign(self, connection: duckdb.DuckDBPyConnection) -> dict:
        rng = np.random.default_rng(self.seed)
        authors = connection.execute("SELECT DISTINCT author FROM posts ORDER BY author").df()
        has_id = "id" in connection.table("posts").columns
        pairs = has_id and bool(scalar(
            connection, f"SELECT bool_and(coalesce(regexp_matches(id, {PAIR}), false)) FROM posts"))  # fmt: skip
        component = _components(connection, authors["author"]) if pairs else np.arange(len(authors))
        size = np.bincount(component)
        place, order = np.full(len(size), "train", object), rng.permutation(len(size))
        for name, share in (("test", self.test), ("dev", self.dev)):
            room = round(share * len(authors))
            for each in order[place[order] == "train"]:
                if size[each] <= room:
                    place[each], room = name, room - size[each]
        connection.register("authors", authors.assign(split=place[component]))
        self.settle(connection, "SELECT n, split, '' AS reason FROM posts JOIN authors USING (author)")
        return {"given_pairs": pairs, "largest_component": int(size.max(initial=0))}


def _components(connection, authors):
    """For each author, (N,), the number of the component: those who share a pair, and so on."""
    links = connection.execute(f"""
        SELECT DISTINCT author, min(author) OVER (PARTITION BY regexp_extract(id, {PAIR}, 1)) AS first
        FROM posts""").df()
    a, b = (pd.Index(authors).get_indexer(links[name]) for name in ("author", "first"))
    graph = coo_array((np.ones(len(a), bool), (a, b)), shape=(len(authors), len(authors)))
    return connected_components(graph, directed=False)[1]
