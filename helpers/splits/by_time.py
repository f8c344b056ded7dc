"""A split by author and time: separate authors, and train before t1 <= dev before t2 <= test.

No author of train is in dev or test, and all posts of dev and test are later than those of train.
Archives that end in different years may have no period in common. With one calendar per community
(what precedes the first "/" of a topic), each community has its own t1 and t2, and the order of
time holds within a community, not between communities.
"""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

import pandas as pd
from duckdb import DuckDBPyConnection
from pydantic import Field, field_validator, model_validator

from .assignment import Rule
from .audit import COMMUNITY

DEV_SHARE = 0.35  # goes to dev, of the authors with enough posts for both dev and test


class TimeSplit(Rule):
    """Dev and test have later posts, by authors whom training never saw.

    A training author has ``min_posts`` to ``max_posts`` posts before t1 and is not held out. Any
    other author with at least ``eval_posts`` posts from t2 on is a test author, and one with as
    many in [t1, t2) is a dev author; of the authors who qualify for both, the share DEV_SHARE goes
    to dev. Only an author's posts in the period of their split are used. Training authors with at
    least ``eval_posts`` posts from t1 on form the split *seen*: their later posts are never trained
    on, and show what a model knows by heart (khan2021 Table 9).

    Attributes
    ----------
    train_until, dev_until : t1 and t2, the ends of the training and the dev period, exclusive
        Each is an ISO date, in UTC, or a fraction of all posts (of a community) in time order.
    heldout : float, share of the authors who never train, chosen by a hash of seed and name
    min_posts, max_posts : int, bounds of a training author's number of posts before t1
        A ``max_posts`` of 0 means no upper bound. khan2021 bounds training authors on both sides,
        and test authors not at all.
    eval_posts : int, fewest posts of an author in dev, test or seen
    periods : "common" for one calendar, "community" for one calendar per community
    seed : int, seed of the hash
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
        # a number in (0, 1), also as text, becomes a float; a date stays text
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

    @model_validator(mode="after")
    def _periods_are_in_order(self):
        ends = [_moment(self.train_until), _moment(self.dev_until)]
        # a date and a fraction can only be compared once the posts are known
        if type(ends[0]) is type(ends[1]) and ends[0] >= ends[1]:
            raise ValueError(
                f"train_until ({self.train_until}) must be earlier than "
                f"dev_until ({self.dev_until})"
            )
        if 0 < self.max_posts < self.min_posts:
            raise ValueError(
                f"min_posts ({self.min_posts}) must not be above max_posts ({self.max_posts})"
            )
        return self

    @property
    def min_posts_per_split(self) -> dict[str, int]:
        """The fewest posts that an author may have in a split, by its name."""
        return {"train": self.min_posts} | dict.fromkeys(self.splits[1:], self.eval_posts)

    def guarantees(self, facts: dict) -> list[list]:
        """Return the promises that the audit checks: here also the order of the splits in time."""
        _, *promises = super().guarantees(facts)
        orders = [("train", "dev"), ("train", "test"), ("dev", "test"), ("train", "seen")]
        return [
            ["authors_apart", ["train", "dev", "test"]],
            *promises,
            *(["in_order_of_time", earlier, later] for earlier, later in orders),
        ]

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return the dates ``t1`` and ``t2``.

        Returns
        -------
        Each is a date, or {community: date} with one calendar per community.

        Raises
        ------
        ValueError
            Where t1 is not earlier than t2, in any community.
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
        """Make the table ``authors(author, heldout, split)`` from the numbers of posts per period.

        The split is NULL for an author with too few posts for any.
        """
        # 13 hexadecimal digits are 52 bits, which fit a double: divided by 2^52 they are a number
        # in [0, 1) that is the same on every machine; digits 14 to 26 give an independent one
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
        """Make the view ``dated`` and the table ``calendar``; return the dates ``t1`` and ``t2``.

        They are ``dated(n, author, second, community)`` and ``calendar(community, t1, t2)``, with
        all times in seconds since 1970. With one common calendar the community is ''.
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
        rows = connection.execute("FROM calendar").df().set_index("community")
        wrong = rows.index[rows["t1"] >= rows["t2"]]
        if len(wrong):
            where = f" in {', '.join(wrong)}" if self.periods == "community" else ""
            raise ValueError(
                f"train_until ({self.train_until}) and dev_until ({self.dev_until}) leave no time "
                f"between them{where}: the posts have too few different times for a split by time "
                "(-p split authors divides the authors alone)"
            )
        facts = {}
        for end in ("t1", "t2"):
            moments = pd.to_datetime(rows[end], unit="s")
            dates = moments.dt.strftime("%Y-%m-%d %H:%M:%S").to_dict()
            facts[end] = dates.get("", dates)  # one date for a common calendar
        return facts


def _moment(until):
    """Return a fraction as it is, and an ISO date as a datetime, in UTC if it has no zone."""
    if isinstance(until, float):
        return until
    moment = datetime.fromisoformat(until)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _instant(until):
    """Return SQL that gives t1 or t2 in seconds since 1970, with ``until`` as its parameter.

    A fraction gives the time of the post before which that fraction of the posts lies.
    """
    if isinstance(until, float):
        return "quantile_disc(second, ?)"
    return "epoch(?::TIMESTAMPTZ)::BIGINT"
