"""A split by author and time: no author is in two splits, and train < t1 <= dev < t2 <= test.

Whoever is trained on is never asked about later, and what is asked about happened after the training ended. Archives
that end in different years have no period in common: with a calendar for each community, what precedes the first "/"
of a topic, t1 and t2 are those of the community, and the rule holds within each, not between them.
"""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

import duckdb
from pydantic import Field, field_validator

from helpers.splits.assignment import Rule
from helpers.splits.audit import COMMUNITY

DEV_SHARE = 0.35  # of the authors who could be in dev and in test


class TimeSplit(Rule):
    """Unseen authors, later posts.

    t1 (``train_until``) and t2 (``dev_until``) are ISO dates, UTC, or fractions of all posts (of a community) in time
    order. A training author has ``min_posts`` before t1 and is none of the ``heldout`` share, by a hash of seed and
    name; khan2021 bounds them by ``max_posts`` too (0: no bound), and test authors not at all. Every other author with
    ``eval_posts`` from t2 on is a test author, or with so many in [t1, t2) a dev author; of those who could be both a
    DEV_SHARE goes to dev. Only an author's posts of the split's period are used. Training authors with ``eval_posts``
    from t1 on are *seen*: their later posts, never trained on, say what a model knows by heart (khan2021 Table 9).
    """

    splits = ("train", "dev", "test", "seen")
    optional = ("seen",)
    train_until: float | str = 0.7
    dev_until: float | str = 0.8
    heldout: float = Field(0.3, ge=0, lt=1)
    min_posts: int = Field(16, ge=1)
    max_posts: int = Field(0, ge=0)
    eval_posts: int = Field(32, ge=1)
    periods: Literal["common", "community"] = "common"
    seed: int = Field(0, ge=0)

    @field_validator("train_until", "dev_until")
    @classmethod
    def _fraction_or_date(cls, value):
        with suppress(ValueError):
            if 0 < float(value) < 1:
                return float(value)
        try:
            datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise ValueError(
                "must be an ISO date or a fraction of the posts, between 0 and 1"
            ) from None
        return value

    @property
    def least(self) -> dict[str, int]:
        return {
            "train": self.min_posts,
            "dev": self.eval_posts,
            "test": self.eval_posts,
            "seen": self.eval_posts,
        }

    def promises(self, facts: dict) -> dict:
        return super().promises(facts) | {
            "authors_apart": ["train", "dev", "test"],
            "in_order_of_time": {
                "orders": [["train", "dev", "test"], ["train", "seen"]],
                "periods": self.periods,
            },
        }

    def assign(self, connection: duckdb.DuckDBPyConnection) -> dict:
        connection.execute(f"""
            CREATE VIEW dated AS
            SELECT n, author, epoch(time)::BIGINT AS second, {COMMUNITY[self.periods]} AS community FROM posts""")
        connection.execute(
            f"""
            CREATE TABLE calendar AS
            SELECT community, {_instant(self.train_until)} AS t1, {_instant(self.dev_until)} AS t2
            FROM dated GROUP BY community ORDER BY community""",
            [self.train_until, self.dev_until],
        )
        t1, t2 = (
            dict(connection.execute(f"SELECT community, {day} FROM calendar").fetchall())
            for day in ("t1", "t2")
        )
        if wrong := [name for name in t1 if not t1[name] < t2[name]]:
            raise ValueError(f"train_until ({self.train_until}) must be earlier than dev_until ({self.dev_until})"
                             + (f" in {', '.join(wrong)}" if self.periods == "community" else ""))  # fmt: skip
        connection.execute("""
            CREATE VIEW placed AS
            SELECT n, author, CASE WHEN second < t1 THEN 'train' WHEN second < t2 THEN 'dev' ELSE 'test' END AS period
            FROM dated JOIN calendar USING (community)""")
        # 52 bits of a hash make a number in [0, 1) that is the same on every machine
        share = "('0x' || substr(hash, {}, 13))::BIGINT / pow(2, 52)"
        connection.execute(
            f"""
            CREATE TABLE authors AS
            WITH counted AS (
                SELECT author, sha256(? || ':' || author) AS hash,
                       count(*) FILTER (period = 'train') AS before, count(*) FILTER (period = 'dev') AS between,
                       count(*) FILTER (period = 'test') AS after
                FROM placed GROUP BY author),
            hashed AS (SELECT *, {share.format(1)} < {self.heldout} AS heldout,
                              {share.format(14)} < {DEV_SHARE} AS to_dev FROM counted)
            SELECT author, heldout,
                   CASE WHEN NOT heldout AND before >= {self.min_posts}
                             AND (before <= {self.max_posts} OR {self.max_posts} = 0) THEN 'train'
                        WHEN between >= {self.eval_posts} AND (to_dev OR after < {self.eval_posts}) THEN 'dev'
                        WHEN after >= {self.eval_posts} THEN 'test' END AS split FROM hashed""",
            [str(self.seed)],
        )
        self.settle(
            connection,
            """
            SELECT n, CASE WHEN split = 'train' AND period <> 'train' THEN 'seen' ELSE split END AS split, CASE
                WHEN split = period OR split = 'train' THEN ''
                WHEN split IS NOT NULL THEN 'other_periods_of_' || split || '_authors'
                WHEN heldout THEN 'heldout_authors_with_too_few_posts'
                ELSE 'authors_with_too_few_posts' END AS reason
            FROM placed JOIN authors USING (author)""",
        )
        return {"t1": _dates(t1), "t2": _dates(t2)}


def _instant(until):
    """SQL: seconds since 1970 of an ISO date, or of the post that ends a fraction of a community's posts."""
    return (
        "quantile_disc(second, ?)" if isinstance(until, float) else "epoch(?::TIMESTAMPTZ)::BIGINT"
    )


def _dates(instants):
    """One date where there is one calendar, else a date per community."""
    dates = {name: datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
             for name, second in instants.items()}  # fmt: skip
    return dates.get("", dates)
