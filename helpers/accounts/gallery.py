"""Accounts to be asked about: who of them, if any, is behind a query, how likely, and at what cost one may say so."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import logsumexp

from helpers.accounts.encoder import ENOUGH, MAX_TOKENS, AuthorEncoder
from helpers.accounts.posts import Posts, samples_of
from helpers.runs.config import Config
from helpers.tokens.batch import Samples

NOBODY = "nobody of these"


class Decision(Config):
    """When to say that two accounts are of one person.

    prior : the chance, before anything is read, that a query has another account in the gallery. miss, false_link :
    what it costs to overlook one, and to link two people.
    """

    prior: float = Field(0.05, gt=0, lt=1)
    miss: float = Field(1, gt=0)
    false_link: float = Field(20, gt=0)

    @property
    def threshold(self) -> float:
        """The probability from which linking is expected to cost less."""
        return self.false_link / (self.false_link + self.miss)


class AccountGallery:
    """Accounts of which each has one name; queries are ranked against all of them.

    encoder : an :class:`~helpers.accounts.encoder.AuthorEncoder`. targets : one sample an account. names : of the
    accounts, each once. hours : whether times are known. From ENOUGH accounts on the gallery itself says what a score
    is worth in it; fewer are compared each for itself.
    """

    def __init__(self, encoder: AuthorEncoder, targets: Samples, names: Sequence[str], hours: bool = False):
        if len(names) != len(targets) or len(set(names)) != len(names):
            raise ValueError(f"{len(targets)} accounts have {len(names)} names, {len(set(names))} of them different")
        self.encoder, self.targets, self.names, self.hours = encoder, targets, np.asarray(names, object), hours
        self.adapted = len(targets) >= ENOUGH
        self.model = encoder.model(self.adapted, hours)
        self.use = encoder.uses[encoder.use(self.adapted, hours)]
        self.scored = self.model.gallery(targets, MAX_TOKENS)

    @classmethod
    def of(cls, encoder: AuthorEncoder, posts: Posts, names: Sequence[str], times: Sequence | None = None) -> "AccountGallery":
        """A gallery of texts: of each account its posts, and their times where they are known."""
        return cls(encoder, samples_of(posts, encoder.tokenizer, times), names, times is not None)

    def __len__(self) -> int:
        return len(self.names)

    def queries(self, posts: Posts, times: Sequence | None = None) -> Samples:
        """Texts as queries of this gallery. Raises ValueError where the gallery knows times and these do not."""
        if self.hours != (times is not None):
            raise ValueError(f"the gallery was made with{'' if self.hours else 'out'} times: ask it in the same way")
        return samples_of(posts, self.encoder.tokenizer, times)

    def rank(self, queries: Samples, names: Sequence[str] | None = None, k: int = 10,
             decision: Decision = Decision()) -> pd.DataFrame:
        """The k most likely accounts of each query, and the chance that it is nobody of these.

        queries : of :meth:`queries`, or samples of the same store as the targets. names : of the queries; an account of
        the gallery is not compared with itself. Columns ``query``, ``target``, ``rank``, ``score``, ``llr``,
        ``probability``, ``linked`` (is it worth the costs?), ``query_posts``, ``target_posts``; per query the row
        ``nobody of these`` comes last, with its probability.

        With prior p and T accounts the probability of target t is ``(p / T) L_t / (1 - p + (p / T) sum over s of L_s)``,
        L its likelihood ratio, and that of nobody is what is left: exactly one account is meant, or none.
        """
        names = [f"query {number}" for number in range(len(queries))] if names is None else list(names)
        place, frames = {name: column for column, name in enumerate(self.names)}, []
        sizes = self.targets.count
        for rows, block in self.scored.scores(queries):
            for row, scores in zip(range(rows.start, rows.stop), block):
                llr = self.use.llr(scores, queries.count[row], sizes)
                if (own := place.get(names[row])) is not None:
                    llr[own] = -np.inf
                frames.append(self._best(names[row], queries.count[row], scores, llr, k, decision))
        return pd.concat(frames, ignore_index=True)

    def _best(self, name, posts, scores, llr, k, decision):
        others = int(np.isfinite(llr).sum())
        best = np.lexsort((scores, llr))[::-1][: min(k, others)]
        each, none = np.log(decision.prior / max(others, 1)) + llr, np.log1p(-decision.prior)
        total = np.logaddexp(logsumexp(each), none)
        chance = np.exp(each[best] - total)
        frame = pd.DataFrame({
            "query": name, "target": self.names[best], "rank": 1 + np.arange(len(best)), "score": scores[best],
            "llr": llr[best], "probability": chance, "linked": chance >= decision.threshold, "query_posts": posts,
            "target_posts": self.targets.count[best]})  # fmt: skip
        last = {"query": name, "target": NOBODY, "probability": np.exp(none - total), "query_posts": posts,
                "linked": bool(np.exp(none - total) >= decision.threshold)}  # fmt: skip
        return pd.concat([frame, pd.DataFrame([last])], ignore_index=True)
