"""Galleries of accounts: which of them, if any, belongs to the person behind a query, how likely, and at what costs."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from scipy.special import logsumexp

from helpers.accounts.encoder import ENOUGH, MAX_TOKENS, AuthorEncoder
from helpers.accounts.passages import passage_hashes, without_passages
from helpers.accounts.samples import (
    Posts,
    concatenate_samples,
    in_memory,
    samples_of,
    whole_accounts,
)
from helpers.core.config import Config
from helpers.tokens.batch import Samples
from helpers.tokens.store import FILES, TokenStore
from helpers.training import checkpoints

NOBODY, UNDECIDED = "nobody of these", "undecided"


class Decision(Config):
    """The costs at which two accounts are linked.

    prior : the probability, before any post is read, that a query has a second account in the gallery. miss,
    false_link : the costs of overlooking it, and of linking two people.
    """

    prior: float = Field(0.05, gt=0, lt=1)
    miss: float = Field(1, gt=0)
    false_link: float = Field(10, gt=0)

    @property
    def threshold(self) -> float:
        """The probability from which on linking is expected to cost less than not linking."""
        return self.false_link / (self.false_link + self.miss)


class AccountGallery:
    """Accounts of which each has one name; queries are ranked against all of them.

    encoder : an :class:`~helpers.accounts.encoder.AuthorEncoder`. targets : one sample an account. names : of the
    accounts, each once. hours : whether times are known. rows : of the targets, where ``encoder.rows`` was asked.
    drawn : (T,) bool, targets drawn at random from all accounts there are, the only ones whose scores s-norm uses; None
    where the targets are all accounts. beyond : accounts that are no targets; they count as unlike any query.
    From ENOUGH accounts on scores are s-normed by the gallery. In a smaller one they are raw, no likelihood ratio is
    above 10, and on average they speak for nobody: without other accounts of the same place nobody is linked.
    """

    def __init__(
        self,
        encoder: AuthorEncoder,
        targets: Samples,
        names: Sequence[str],
        hours: bool = False,
        rows: dict[str, np.ndarray] | None = None,
        drawn: np.ndarray | None = None,
        beyond: int = 0,
    ):
        if len(names) != len(targets) or len(set(names)) != len(targets):
            raise ValueError(
                f"{len(targets)} accounts have {len(names)} names, {len(set(names))} of them different"
            )
        self.encoder, self.targets, self.names, self.hours = (
            encoder,
            targets,
            np.asarray(names, object),
            hours,
        )
        self.adapted, self.beyond = len(targets) >= ENOUGH, beyond
        self.drawn = np.ones(len(targets), bool) if drawn is None else drawn
        self.rows = encoder.rows(targets) if rows is None else rows
        self.use = encoder.uses[encoder.use(self.adapted, hours)]
        self.model = encoder.model(self.adapted, hours, self.rows, self.drawn)
        self.scored = self.model.gallery(targets, MAX_TOKENS)

    @classmethod
    def of(
        cls,
        encoder: AuthorEncoder,
        posts: Posts,
        names: Sequence[str],
        times: Sequence | None = None,
        topics: Sequence | None = None,
    ) -> "AccountGallery":
        """Make a gallery of texts: of each account its posts, and their times and topics where they are known.

        What stands in several posts word for word is not read. Topics change no score: they tell which words are a
        room's, see :func:`helpers.accounts.topic_words.topic_words`.
        """
        samples = samples_of(posts, encoder.tokenizer, times, topics)
        own = whole_accounts(without_passages(samples.store, encoder.kinds)[0])
        return cls(encoder, own, names, times is not None)

    def __len__(self) -> int:
        return len(self.names)

    def queries(
        self, posts: Posts, times: Sequence | None = None, topics: Sequence | None = None
    ) -> Samples:
        """Read texts as queries of this gallery. Raises ValueError where the gallery knows times and these do not."""
        if self.hours != (times is not None):
            raise ValueError(
                f"the gallery was made with{'' if self.hours else 'out'} times: ask it in the same way"
            )
        samples = samples_of(posts, self.encoder.tokenizer, times, topics)
        return whole_accounts(without_passages(samples.store, self.encoder.kinds, self.passages)[0])

    @cached_property
    def passages(self) -> np.ndarray:
        """Of the posts of the targets, each once, see :func:`helpers.accounts.passages.passage_hashes`."""
        return np.unique(passage_hashes(in_memory(self.targets).store, self.encoder.kinds))

    def rank(
        self,
        queries: Samples,
        names: Sequence[str] | None = None,
        k: int = 10,
        decision: Decision = Decision(),
    ) -> pd.DataFrame:
        """Rank the k most likely accounts of each query, and give the probability that it is nobody of these.

        queries : of :meth:`queries`, or samples of the same store as the targets. names : of the queries; an account of
        the gallery is not compared with itself. Columns ``query``, ``target``, ``rank``, ``score``, ``llr``,
        ``probability``, ``linked`` (does it reach the threshold?), ``query_posts``, ``target_posts``; per query the row
        ``nobody of these`` comes last, with its probability.

        With prior p and T accounts, those beyond the gallery among them, the probability of target t is
        ``(p / T) L_t / (1 - p + (p / T) S)``, L its likelihood ratio and S the sum of all, and that of nobody is what
        is left: one account is meant, or none.
        """
        names = (
            [f"query {number}" for number in range(len(queries))] if names is None else list(names)
        )
        if len(names) != len(queries) or k < 1 or not names:
            raise ValueError(
                f"{len(queries)} queries have {len(names)} names, and {k} answers are asked for"
            )
        own, frames = self.columns(names), []
        for rows, block in self.scored.scores(queries, own):
            for row, scores in zip(range(rows.start, rows.stop), block):
                llr = self.use.llr(scores, queries.count[row], self.targets.count)
                if own[row] >= 0:
                    llr[own[row]] = -np.inf
                frames.append(self._best(names[row], queries.count[row], scores, llr, k, decision))
        return pd.concat(frames, ignore_index=True)

    def link(
        self,
        queries: Posts | Samples,
        names: Sequence[str] | None = None,
        times: Sequence | None = None,
        topics: Sequence | None = None,
        **costs: float,
    ) -> pd.DataFrame:
        """Answer with one row a query: the account that it is linked to, "nobody of these" or "undecided".

        queries, times, topics : texts as in :meth:`queries`, or samples as in :meth:`rank`, with its ``names``. costs :
        ``prior``, ``miss``, ``false_link`` of :class:`Decision`. Columns ``query``; ``answer``, the account to link, or
        where none reaches the ``threshold`` of these costs nobody, "undecided" if an account is likelier than that; the
        first row of :meth:`rank`, linked or not, with its ``probability``; ``nobody``, the probability of none of them.
        """
        decision = Decision.of(costs)
        asked = queries if isinstance(queries, Samples) else self.queries(queries, times, topics)
        found = self.rank(asked, names, 1, decision)
        last = found.target == NOBODY
        number = last.cumsum() - last  # of the query
        best, nobody = (found[rows].set_axis(number[rows]) for rows in (~last, last))
        unlinked = np.where(best.probability > nobody.probability[best.index], UNDECIDED, NOBODY)
        answer = best.target.where(best.linked.astype(bool), unlinked).reindex(
            nobody.index, fill_value=NOBODY
        )
        return (
            nobody[["query"]]
            .assign(answer=answer, nobody=nobody.probability, threshold=decision.threshold)
            .join(best.drop(columns=["query", "rank", "linked"]))
        )

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Which of the accounts each name is, -1 for none."""
        place = {name: column for column, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in names], int)

    def accounts(self, names: Sequence[str]) -> Samples:
        """The samples of named accounts, to ask about. Raises ValueError for names that are not there."""
        columns = self.columns(names)
        if missing := [name for name, column in zip(names, columns) if column < 0]:
            raise ValueError(
                f"{len(missing)} accounts are not in the gallery, the first is {missing[0]!r}"
            )
        return self.targets[columns]

    def with_accounts(
        self,
        posts: Posts,
        names: Sequence[str],
        times: Sequence | None = None,
        topics: Sequence | None = None,
    ) -> "AccountGallery":
        """The gallery and more accounts; those it has are not embedded again, only what counts is fitted anew."""
        if there := sorted(set(names) & set(self.names)):
            raise ValueError(
                f"the gallery has {len(there)} of these accounts already, the first is {there[0]!r}"
            )
        return self.exchanged(self.queries(posts, times, topics), names)

    def exchanged(self, samples: Samples, names: Sequence[str]) -> "AccountGallery":
        """The same with samples in the place of the accounts of these names, or beside those it has."""
        place = self.columns(names)
        kept = np.setdiff1d(np.arange(len(self)), place)
        rows = {
            name: np.concatenate([self.rows[name][kept], new])
            for name, new in self.encoder.rows(samples).items()
        }
        drawn = np.append(
            self.drawn[kept], np.where(place < 0, self.drawn.all(), self.drawn[place])
        )
        return AccountGallery(self.encoder, concatenate_samples(self.targets[kept], samples), [*self.names[kept], *names],
                              self.hours, rows, drawn, self.beyond)  # fmt: skip

    def without_accounts(self, names: Sequence[str]) -> "AccountGallery":
        """The gallery without some accounts. Raises ValueError for names that are not there, or where none is left."""
        self.accounts(names)
        kept = np.flatnonzero(~np.isin(self.names, list(names)))
        rows = {name: each[kept] for name, each in self.rows.items()}
        return AccountGallery(self.encoder, self.targets[kept], self.names[kept], self.hours, rows, self.drawn[kept],
                              self.beyond)  # fmt: skip

    def save(self, folder: str | Path) -> None:
        """Keep the accounts, posts among them as tokens, in a folder: it holds what people wrote."""
        store = in_memory(self.targets).store
        arrays = {
            name: torch.from_numpy(np.asarray(getattr(store, name)).astype(np.int64))
            for name in FILES
        }
        rows = {f"rows/{name}": torch.from_numpy(each) for name, each in self.rows.items()}
        about = {
            "names": list(self.names),
            "hours": self.hours,
            "encoder": self.encoder.fingerprint,
            "drawn": self.drawn.tolist(),
            "beyond": self.beyond,
            "topics": store.meta["topics"],
        }
        checkpoints.save_checkpoint(Path(folder) / "gallery.safetensors", arrays | rows, about)

    @classmethod
    def load(cls, encoder: AuthorEncoder, folder: str | Path) -> "AccountGallery":
        """One that was saved. Raises ValueError where it is damaged, or of another encoder."""
        tensors, about = checkpoints.read_checkpoint(Path(folder) / "gallery.safetensors")
        if about["encoder"] != encoder.fingerprint or "topics" not in about:
            raise ValueError(
                f"the gallery in {folder} was made by another encoder: make it again from its posts"
            )
        meta = {
            "topics": about["topics"],
            "vocabulary": encoder.tokenizer.vocabulary,
            "fingerprint": "",
        }
        store = TokenStore(
            Path(folder), meta, **{name: tensors.pop(name).numpy() for name in FILES}
        )
        rows = {name.removeprefix("rows/"): each.numpy() for name, each in tensors.items()}
        return cls(encoder, whole_accounts(store), about["names"], about["hours"], rows, np.array(about["drawn"]),
                   about["beyond"])  # fmt: skip

    def _best(self, name, posts, scores, llr, k, decision):
        others = int(np.isfinite(llr).sum())
        best = np.lexsort((scores, llr))[::-1][: min(k, others)]
        if (
            not self.adapted
        ):  # strangers are all alike then: on average they must not speak for a link
            llr = llr - max(logsumexp(llr) - np.log(max(others, 1)), 0)
        each, none = (
            np.log(decision.prior / max(others + self.beyond, 1)) + llr,
            np.log1p(-decision.prior),
        )
        total = np.logaddexp(logsumexp(each), none)
        chance = np.exp(each[best] - total)
        frame = pd.DataFrame({
            "query": name, "target": self.names[best], "rank": 1 + np.arange(len(best)), "score": scores[best],
            "llr": llr[best], "probability": chance, "linked": chance >= decision.threshold, "query_posts": posts,
            "target_posts": self.targets.count[best]})  # fmt: skip
        last = {"query": name, "target": NOBODY, "probability": np.exp(none - total), "query_posts": posts,
                "linked": False}  # fmt: skip
        return pd.concat([frame, pd.DataFrame([last])], ignore_index=True)
