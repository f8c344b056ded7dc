"""Galleries of accounts: which of them, if any, belongs to the person behind a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
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
from helpers.evaluation.detection import DetectionCosts
from helpers.tokens.batch import Samples
from helpers.tokens.store import FILES, TokenStore
from helpers.training import checkpoints

NOBODY = "nobody of these"
UNDECIDED = "undecided"
LINK_COSTS = DetectionCosts(false_accept=10)  # to link two people costs ten overlooked pairs
FILE = "gallery.safetensors"
COLUMNS = "query target rank score llr probability linked query_posts target_posts".split()


@dataclass(eq=False)
class AccountGallery:
    """Accounts of which each has one name; queries are ranked against all of them.

    From ENOUGH accounts on scores are s-normed by the gallery. In a smaller one they are raw, no
    likelihood ratio is above 10, and on average they speak for nobody: without other accounts of
    the same place nobody is linked.

    Attributes
    ----------
    encoder : embeds the accounts
    targets : T samples, one an account
    names : of the accounts, each once
    hours : whether times are known
    rows : of the targets, where ``encoder.rows`` was asked
    drawn : (T,) bool, targets drawn at random from all accounts there are, the only ones whose
        scores s-norm uses; by default the targets are all accounts
    beyond : number of accounts that are no targets; they count as unlike any query

    Raises
    ------
    ValueError
        There are not as many different names as accounts.
    """

    encoder: AuthorEncoder
    targets: Samples
    names: Sequence[str]
    hours: bool = False
    rows: dict[str, np.ndarray] | None = None
    drawn: np.ndarray | None = None
    beyond: int = 0

    def __post_init__(self):
        count = len(self.targets)
        different = len(set(self.names))
        if len(self.names) != count or different != count:
            raise ValueError(
                f"{count} accounts have {len(self.names)} names, {different} of them different"
            )
        self.names = np.asarray(self.names, object)
        if self.rows is None:
            self.rows = self.encoder.rows(self.targets)
        if self.drawn is None:
            self.drawn = np.ones(count, bool)
        self.s_normed = count >= ENOUGH
        self.use = self.encoder.uses[self.encoder.use(self.s_normed, self.hours)]
        self.model = self.encoder.model(self.s_normed, self.hours, self.drawn)
        for member in self.model.members:
            if member.name in self.rows:
                rows = self.rows[member.name]
                member.embeddings.put(member.encoder, self.targets, MAX_TOKENS, rows)

    @classmethod
    def of(
        cls,
        encoder: AuthorEncoder,
        posts: Posts,
        names: Sequence[str],
        times: Sequence | None = None,
        topics: Sequence | None = None,
    ) -> "AccountGallery":
        """Make a gallery of texts.

        What stands in several posts word for word is not read.

        Parameters
        ----------
        encoder : embeds the accounts
        posts : of each account its posts
        names : of the accounts, each once
        times : of each account the times of its posts
        topics : of each account the topics of its posts. They change no score: they tell which
            words are a room's, see :func:`helpers.accounts.topic_words.topic_words`.
        """
        samples = samples_of(posts, encoder.tokenizer, times, topics)
        store, _ = without_passages(samples.store, encoder.kinds)
        return cls(encoder, whole_accounts(store), names, times is not None)

    def __len__(self) -> int:
        return len(self.names)

    def queries(
        self, posts: Posts, times: Sequence | None = None, topics: Sequence | None = None
    ) -> Samples:
        """Read texts as queries of this gallery.

        Parameters
        ----------
        posts : of each query its posts
        times, topics : of each query the times and topics of its posts

        Raises
        ------
        ValueError
            The gallery knows times and these do not, or the reverse.
        """
        if self.hours != (times is not None):
            with_times = "with" if self.hours else "without"
            raise ValueError(f"the gallery was made {with_times} times: ask it in the same way")
        samples = samples_of(posts, self.encoder.tokenizer, times, topics)
        store, _ = without_passages(samples.store, self.encoder.kinds, self.passages)
        return whole_accounts(store)

    @cached_property
    def passages(self) -> np.ndarray:
        """Passages of the targets' posts, see :func:`helpers.accounts.passages.passage_hashes`."""
        return np.unique(passage_hashes(in_memory(self.targets).store, self.encoder.kinds))

    def rank(
        self,
        queries: Samples,
        names: Sequence[str] | None = None,
        k: int = 10,
        costs: DetectionCosts = LINK_COSTS,
    ) -> pd.DataFrame:
        """Rank the k most likely accounts of each query, and say how likely it is nobody of these.

        With prior p and T accounts, those beyond the gallery among them, the probability of target
        t is ``(p / T) L_t / (1 - p + (p / T) S)``, L its likelihood ratio and S the sum of all, and
        that of nobody is what is left: one account is meant, or none.

        Parameters
        ----------
        queries : of :meth:`queries`, or samples of the same store as the targets
        names : of the queries; an account of the gallery is not compared with itself
        k : number of accounts of each query
        costs : with the prior, the probability that a query has a second account in the gallery

        Returns
        -------
        Columns ``query``, ``target``, ``rank``, ``score``, ``llr``, ``probability``, ``linked``
        (whether linking costs less than not linking), ``query_posts``, ``target_posts``; the last
        row of each query is ``nobody of these``, with its probability.

        Raises
        ------
        ValueError
            There is no query, or no name for one, or k is 0.
        """
        candidates, nobody = self._answers(queries, names, k, costs)
        return pd.concat([candidates, nobody]).sort_index(kind="stable", ignore_index=True)

    def link(
        self,
        queries: Posts | Samples,
        names: Sequence[str] | None = None,
        times: Sequence | None = None,
        topics: Sequence | None = None,
        costs: DetectionCosts = LINK_COSTS,
    ) -> pd.DataFrame:
        """Answer with one row a query: an account, "nobody of these" or "undecided".

        Parameters
        ----------
        queries : texts as in :meth:`queries`, or samples as in :meth:`rank`
        names : of the queries; an account of the gallery is not compared with itself
        times, topics : of texts, as in :meth:`queries`
        costs : as in :meth:`rank`

        Returns
        -------
        Columns ``query``; ``answer``, the account to link, or where none reaches the ``threshold``
        of these costs nobody, "undecided" if an account is likelier than that; ``nobody``, the
        probability of none of them; and the first row of :meth:`rank`, linked or not.
        """
        if not isinstance(queries, Samples):
            queries = self.queries(queries, times, topics)
        best, nobody = self._answers(queries, names, 1, costs)
        is_likelier = best.probability > nobody.probability[best.index]
        unlinked = np.where(is_likelier, UNDECIDED, NOBODY)
        answer = best.target.where(best.linked, unlinked)
        answers = pd.DataFrame(
            {
                "query": nobody["query"],
                "answer": answer.reindex(nobody.index, fill_value=NOBODY),
                "nobody": nobody.probability,
                "threshold": costs.min_probability,
            }
        )
        return answers.join(best.drop(columns=["query", "rank", "linked"]))

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Return which of the accounts each name is, -1 for none."""
        column_of_name = {name: column for column, name in enumerate(self.names)}
        return np.array([column_of_name.get(name, -1) for name in names], int)

    def accounts(self, names: Sequence[str]) -> Samples:
        """Return the samples of named accounts, to ask about.

        Raises
        ------
        ValueError
            A name is not there.
        """
        columns = self.columns(names)
        missing = [name for name, column in zip(names, columns) if column < 0]
        if missing:
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
        """Return the gallery and more accounts; those it has are not embedded again.

        Parameters
        ----------
        posts : of each new account its posts
        names : of the new accounts
        times, topics : of each new account the times and topics of its posts

        Raises
        ------
        ValueError
            The gallery has an account of that name.
        """
        present = sorted(set(names) & set(self.names))
        if present:
            raise ValueError(
                f"the gallery has {len(present)} of these accounts already, the first is "
                f"{present[0]!r}"
            )
        return self.exchanged(self.queries(posts, times, topics), names)

    def exchanged(self, samples: Samples, names: Sequence[str]) -> "AccountGallery":
        """Return the gallery with samples in the place of accounts, or beside those it has.

        Parameters
        ----------
        samples : one of each name
        names : of accounts of the gallery, or new ones; the samples come last
        """
        columns = self.columns(names)
        kept = np.setdiff1d(np.arange(len(self)), columns)
        rows = {
            name: np.concatenate([self.rows[name][kept], new_rows])
            for name, new_rows in self.encoder.rows(samples).items()
        }
        new_drawn = np.where(columns < 0, self.drawn.all(), self.drawn[columns])
        return replace(
            self,
            targets=concatenate_samples(self.targets[kept], samples),
            names=[*self.names[kept], *names],
            rows=rows,
            drawn=np.append(self.drawn[kept], new_drawn),
        )

    def without_accounts(self, names: Sequence[str]) -> "AccountGallery":
        """Return the gallery without some accounts.

        Raises
        ------
        ValueError
            A name is not there, or no account is left.
        """
        self.accounts(names)
        kept = np.flatnonzero(~np.isin(self.names, list(names)))
        return replace(
            self,
            targets=self.targets[kept],
            names=self.names[kept],
            rows={name: rows[kept] for name, rows in self.rows.items()},
            drawn=self.drawn[kept],
        )

    def save(self, folder: str | Path) -> None:
        """Keep accounts and posts, as tokens, in a folder: it holds what people wrote."""
        store = in_memory(self.targets).store
        tensors = {f"rows/{name}": torch.from_numpy(rows) for name, rows in self.rows.items()}
        for name in FILES:
            array = np.asarray(getattr(store, name)).astype(np.int64)
            tensors[name] = torch.from_numpy(array)
        about = {
            "names": list(self.names),
            "hours": self.hours,
            "encoder": self.encoder.fingerprint,
            "drawn": self.drawn.tolist(),
            "beyond": self.beyond,
            "topics": store.meta["topics"],
        }
        checkpoints.save_checkpoint(Path(folder) / FILE, tensors, about)

    @classmethod
    def load(cls, encoder: AuthorEncoder, folder: str | Path) -> "AccountGallery":
        """Load a gallery that was saved.

        Parameters
        ----------
        encoder : that made it
        folder : of :meth:`save`

        Raises
        ------
        ValueError
            It is damaged, or of another encoder.
        """
        tensors, about = checkpoints.read_checkpoint(Path(folder) / FILE)
        if about["encoder"] != encoder.fingerprint or "topics" not in about:
            raise ValueError(
                f"the gallery in {folder} was made by another encoder: make it again from its posts"
            )
        vocabulary = encoder.tokenizer.vocabulary
        meta = {"topics": about["topics"], "vocabulary": vocabulary, "fingerprint": ""}
        arrays = {name: tensors.pop(name).numpy() for name in FILES}
        targets = whole_accounts(TokenStore(Path(folder), meta, **arrays))
        rows = {name.removeprefix("rows/"): value.numpy() for name, value in tensors.items()}
        options = {"drawn": np.array(about["drawn"]), "beyond": about["beyond"]}
        return cls(encoder, targets, about["names"], about["hours"], rows, **options)

    def _answers(self, queries, names, k, costs) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return candidates and how likely it is nobody; the index is the query's number."""
        if names is None:
            names = [f"query {number}" for number in range(len(queries))]
        if len(names) != len(queries) or k < 1 or not len(names):
            raise ValueError(
                f"{len(queries)} queries have {len(names)} names, and {k} answers are asked for"
            )
        own_column = self.columns(names)
        candidates = []
        nobody_chance = np.empty(len(names))
        for part, block in self.model.scores(queries, self.targets, MAX_TOKENS, own_column):
            for number, scores in enumerate(block, part.start):
                llr = self.use.llr(scores, queries.count[number], self.targets.count)
                if own_column[number] >= 0:
                    llr[own_column[number]] = -np.inf
                best, nobody_chance[number] = self._best(scores, llr, k, costs)
                best["query"] = names[number]
                best["query_posts"] = queries.count[number]
                candidates.append(best.set_axis([number] * len(best)))
        nobody = pd.DataFrame(
            {
                "query": names,
                "target": NOBODY,
                "probability": nobody_chance,
                "linked": False,
                "query_posts": queries.count,
            }
        )
        return pd.concat(candidates)[COLUMNS], nobody

    def _best(self, scores, llr, k, costs) -> tuple[pd.DataFrame, float]:
        """Return the k most likely accounts of one query, and the probability of none.

        scores and llr are (T,); llr is -inf where the target is the query itself.
        """
        count = int(np.isfinite(llr).sum())
        best = np.lexsort((scores, llr))[::-1][: min(k, count)]
        if not self.s_normed:
            # strangers are all alike then: on average they must not speak for a link
            llr = llr - max(logsumexp(llr) - np.log(max(count, 1)), 0)
        log_chances = np.log(costs.prior / max(count + self.beyond, 1)) + llr
        log_none = np.log1p(-costs.prior)
        log_total = np.logaddexp(logsumexp(log_chances), log_none)
        chances = np.exp(log_chances[best] - log_total)
        frame = pd.DataFrame(
            {
                "target": self.names[best],
                "rank": 1 + np.arange(len(best)),
                "score": scores[best],
                "llr": llr[best],
                "probability": chances,
                "linked": chances >= costs.min_probability,
                "target_posts": self.targets.count[best],
            }
        )
        return frame, np.exp(log_none - log_total)
