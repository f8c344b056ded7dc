"""A split by author and time: no author is in two splits, and train < t1 <= dev < t2 <= test.

Whoever is trained on is never asked about later, and what is asked about happened after the
training ended. Archives that end in different years have no period in common: with a calendar for
each community, what precedes the first "/" of a topic, t1 and t2 are those of the community, and
the rule holds within each, not between them.
"""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from duckdb import DuckDBPyConnection
from pydantic import Field, field_validator

from helpers.splits.assignment import Rule
from helpers.splits.audit import COMMUNITY

DEV_SHARE = 0.35  # of the authors who could be in dev and in test


class TimeSplit(Rule):
    """Unseen authors, later posts.

    A training author has ``min_posts`` to ``max_posts`` posts before t1 and is not held out. Every
    other author with ``eval_posts`` from t2 on is a test author, or with so many in [t1, t2) a dev
    author; of those who could be both a DEV_SHARE goes to dev. Only an author's posts of the
    split's period are used. Training authors with ``eval_posts`` from t1 on are *seen*: their later
    posts, never trained on, say what a model knows by heart (khan2021 Table 9).

    Attributes
    ----------
    train_until, dev_until : t1 and t2
        ISO dates, UTC, or fractions of all posts (of a community) in time order.
    heldout : float, share of authors who never train, by a hash of seed and name
    min_posts, max_posts : int, of a training author
        khan2021 bounds them on both sides (0: no bound), and test authors not at all.
    eval_posts : int, the fewest of any other author
    periods : "common", or "community" for a calendar each
    seed : int, of the hash
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
    def min_posts_per_split(self) -> dict[str, int]:
        """The fewest posts of an author in a split, by its name."""
        return {"train": self.min_posts} | dict.fromkeys(self.splits[1:], self.eval_posts)

    def guarantees(self, facts: dict) -> dict:
        """Return what the files must keep: splits are in the order of time."""
        orders = [["train", "dev", "test"], ["train", "seen"]]
        return super().guarantees(facts) | {
            "authors_apart": ["train", "dev", "test"],
            "in_order_of_time": {"orders": orders, "periods": self.periods},
        }

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return t1 and t2.

        Raises
        ------
        ValueError
            Where t1 is not earlier than t2.
        """
        facts = self._make_calendar(connection)
        connection.execute("""
            CREATE VIEW placed AS
            SELECT n, author, CASE WHEN second < t1 THEN 'train' WHEN second < t2 THEN 'dev'
                                   ELSE 'test' END AS period
            FROM dated JOIN calendar USING (community)""")
        self._assign_authors(connection)
        self.write_assignment(
            connection,
            """
            SELECT n,
                   CASE WHEN split = 'train' AND period <> 'train' THEN 'seen' ELSE split END
                       AS split,
                   CASE WHEN split = period OR split = 'train' THEN ''
                        WHEN split IS NOT NULL THEN 'other_periods_of_' || split || '_authors'
                        WHEN heldout THEN 'heldout_authors_with_too_few_posts'
                        ELSE 'authors_with_too_few_posts' END AS reason
            FROM placed JOIN authors USING (author)""",
        )
        return facts

    def _assign_authors(self, connection):
        """Make the table ``authors(author, heldout, split)`` by posts in each period."""
        # 52 bits of a hash make a number in [0, 1) that is the same on every machine
        connection.execute(
            f"""
            CREATE TABLE authors AS
            WITH counted AS (
                SELECT author, sha256(? || ':' || author) AS hash,
                       count(*) FILTER (period = 'train') AS before,
                       count(*) FILTER (period = 'dev') AS between,
                       count(*) FILTER (period = 'test') AS after
                FROM placed GROUP BY author),
            hashed AS (
                SELECT *,
                       ('0x' || substr(hash, 1, 13))::BIGINT / pow(2, 52) < {self.heldout}
                           AS heldout,
                       ('0x' || substr(hash, 14, 13))::BIGINT / pow(2, 52) < {DEV_SHARE} AS to_dev
                FROM counted)
            SELECT author, heldout,
                   CASE WHEN NOT heldout AND before >= {self.min_posts}
                             AND (before <= {self.max_posts} OR {self.max_posts} = 0)
                        THEN 'train'
                        WHEN between >= {self.eval_posts}
                             AND (to_dev OR after < {self.eval_posts}) THEN 'dev'
                        WHEN after >= {self.eval_posts} THEN 'test' END AS split FROM hashed""",
            [str(self.seed)],
        )

    def _make_calendar(self, connection):
        """Make the view ``dated(n, author, second, community)`` and t1 and t2 of communities.

        The table is ``calendar(community, t1, t2)``. Return its dates.
        """
        connection.execute(f"""
            CREATE VIEW dated AS
            SELECT n, author, epoch(time)::BIGINT AS second,
                   {COMMUNITY[self.periods]} AS community FROM posts""")
        connection.execute(
            f"""
            CREATE TABLE calendar AS
            SELECT community, {_instant(self.train_until)} AS t1, {_instant(self.dev_until)} AS t2
            FROM dated GROUP BY community ORDER BY community""",
            [self.train_until, self.dev_until],
        )
        rows = connection.execute("FROM calendar").fetchall()
        wrong = [community for community, t1, t2 in rows if t1 >= t2]
        if wrong:
            where = f" in {', '.join(wrong)}" if self.periods == "community" else ""
            raise ValueError(
                f"train_until ({self.train_until}) must be earlier than "
                f"dev_until ({self.dev_until}){where}"
            )
        return {
            "t1": _dates({community: t1 for community, t1, _ in rows}),
            "t2": _dates({community: t2 for community, _, t2 in rows}),
        }


def _instant(until):
    """Return SQL of seconds since 1970: of a date, or of the post that ends a fraction of posts."""
    if isinstance(until, float):
        return "quantile_disc(second, ?)"
    return "epoch(?::TIMESTAMPTZ)::BIGINT"


def _dates(instants):
    """Return the date of seconds since 1970 where there is one calendar, else one a community."""
    dates = {
        community: datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for community, second in instants.items()
    }
    return dates.get("", dates)
