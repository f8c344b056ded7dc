"""Galleries of accounts: find the account, if any, of the person who wrote a query."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ..evaluation.calibration import estimate_prior
from ..evaluation.detection import DetectionCosts
from ..evaluation.models import Embeddings
from ..evaluation.scores import reference_targets
from ..tokens.batch import Samples
from .encoder import ENOUGH, MAX_TOKENS, AuthorEncoder
from .habits import DOUBT_POSTS, FEW_POSTS, fewer_posts, in_common_words, likeness_term
from .samples import (
    Posts,
    in_memory,
    passage_hashes,
    samples_of,
    whole_accounts,
    without_frames,
    without_passages,
)
from .scoring import likeliest, log_mean_ratio, posterior
from .unjudged import MIN_POSTS_TO_JUDGE, languages_of, reading_problems

NOBODY = "nobody of these"
UNDECIDED = "undecided"
UNJUDGED = "cannot be judged"
NOT_COMPARED = -np.inf  # log-likelihood ratio of a query and a target that are not compared
# A log-likelihood ratio is at most so much above that of the same posts in plain words, since lower
# case or "..." makes any two people alike where nobody else has such a habit
HABIT_MARGIN = 7.0
ANSWER_COLUMNS = (
    "query answer nobody threshold target score llr probability query_posts target_posts".split()
)
LINK_COSTS = DetectionCosts(false_accept=10)  # linking two people costs as much as ten missed pairs


@dataclass(eq=False)
class AccountGallery:
    """Named accounts, against all of which queries are ranked.

    In a gallery of at least ENOUGH accounts, scores are normalised by those of the nearest ones. In
    a smaller one scores are raw, no likelihood ratio is above 10, and the mean ratio of a query is
    at most 1. So nobody is linked without enough others from the same place to compare with.

    Attributes
    ----------
    encoder : embeds the accounts
    targets : T samples, one per account
    names : T different names, in the order of ``targets``
    hours : whether the times of posts are known
    drawn : (T,) bool, which targets were sampled at random from all accounts; means and spreads of
        the normalisation come from these only. By default all are
    beyond : number of accounts that are not among the targets; each counts as a possible answer
        with likelihood ratio 0
    apart : pairs of names of accounts that are known to be two people's; neither is ranked for the
        other
    embeddings : vectors that were made, shared with other galleries

    Raises
    ------
    ValueError
        There is no account, or the number of names or of different names is not that of the
        accounts.
    """

    encoder: AuthorEncoder
    targets: Samples
    names: Sequence[str]
    hours: bool = False
    drawn: np.ndarray | None = None
    beyond: int = 0
    apart: Collection[tuple[str, str]] = ()
    embeddings: Embeddings = field(default_factory=Embeddings, repr=False)

    def __post_init__(self):
        count = len(self.targets)
        if count == 0:
            raise ValueError("the gallery is empty: there is no account to compare with")
        different = len(set(self.names))
        if len(self.names) != count or different != count:
            raise ValueError(
                f"{count} accounts have {len(self.names)} names, {different} of them different"
            )
        self.names = np.asarray(self.names, object)
        self.normalised = count >= ENOUGH
        self.reference_count = 2  # number of targets that normalise, see ScoringConfig.llr
        if self.normalised:
            self.reference_count = max(len(reference_targets(count, self.drawn)), 2)
        self.use = self.encoder.uses[self.encoder.use(self.normalised, self.hours)]
        self.model = self.encoder.model(self.normalised, self.hours, self.drawn, self.embeddings)
        for member in self.encoder.members.values():
            self.embeddings.of(member, self.targets, MAX_TOKENS, progress=True)

    @classmethod
    def of(
        cls,
        encoder: AuthorEncoder,
        posts: Posts,
        names: Sequence[str],
        times: Sequence | None = None,
        topics: Sequence | None = None,
    ) -> "AccountGallery":
        """Make a gallery from texts.

        Passages of several posts are removed first, and phrases at the ends of many posts.

        Parameters
        ----------
        encoder : embeds the accounts
        posts : one list of texts per account
        names : one name per account, all different
        times : one list per account with the time of each post; by default times are not known
        topics : one list per account with the topic of each post. Topics change no score; they are
            needed to find the words of a topic, see
            :func:`helpers.accounts.signs.topic_words`

        Raises
        ------
        ValueError
            An account has no post left, or names, times or topics do not fit the posts.
        """
        samples = samples_of(posts, encoder.tokenizer, times, topics)
        store, _ = without_passages(samples.store, encoder.kinds)
        store = without_frames(store, encoder.kinds)
        return cls(encoder, whole_accounts(store), names, times is not None)

    def __len__(self) -> int:
        return len(self.names)

    def queries(
        self, posts: Posts, times: Sequence | None = None, topics: Sequence | None = None
    ) -> Samples:
        """Turn texts into queries for this gallery.

        Passages that stand in other posts, of queries or gallery, are removed first, and the
        phrases with which an account begins or ends many posts.

        Parameters
        ----------
        posts : one list of texts per query
        times, topics : one list per query with the time and the topic of each post

        Raises
        ------
        ValueError
            Times are given and the gallery has none, or the reverse; or a query has no post left.
        """
        return whole_accounts(self._own_words(posts, times, topics))

    def _own_words(self, posts, times, topics):
        """Return a store of queries, without passages of other posts and without frames."""
        if self.hours != (times is not None):
            with_times = "with" if self.hours else "without"
            raise ValueError(f"the gallery was made {with_times} times: ask it in the same way")
        samples = samples_of(posts, self.encoder.tokenizer, times, topics, may_be_empty=True)
        store, _ = without_passages(samples.store, self.encoder.kinds, self.passages)
        return without_frames(store, self.encoder.kinds)

    @cached_property
    def passages(self) -> np.ndarray:
        """Hashes of all passages of the targets' posts, sorted, each once."""
        return np.unique(passage_hashes(in_memory(self.targets).store, self.encoder.kinds))

    @cached_property
    def problems(self) -> np.ndarray:
        """Why no probability holds for a target, (T,) object; "" where one does.

        See :func:`helpers.accounts.unjudged.reading_problems`.
        """
        return reading_problems(self, self.targets, self.languages)

    @cached_property
    def languages(self) -> list[str]:
        """The language of each target, see :func:`helpers.accounts.unjudged.languages_of`."""
        return languages_of(self.targets, self.encoder.tokenizer)

    def scores(
        self,
        queries: Samples,
        own_column: np.ndarray | None = None,
        pairs: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Return the scores of posts as they are written, and of the same posts in plain words.

        A gallery that does not normalise compares posts as they are written only.

        Parameters
        ----------
        queries : Q samples
        own_column : (Q,), for each query its number among the targets, -1 if it is none of them
        pairs : (N, 2), rows of queries and of targets; by default all

        Returns
        -------
        (Q, T), or (N,) of listed pairs, of each version
        """
        versions = [(queries, self.targets)]
        if self.normalised:
            versions.append([in_common_words(self, samples) for samples in versions[0]])
        if pairs is not None:
            return [self.model.pair_scores(*sides, pairs, MAX_TOKENS) for sides in versions]
        return [self.model.score_matrix(*sides, MAX_TOKENS, own_column) for sides in versions]

    def llr(self, scores: list[np.ndarray], queries: Samples) -> np.ndarray:
        """Return the log-likelihood ratios (Q, T) of some queries, within the bounds.

        The upper one is lower where an account has fewer than FEW_POSTS posts.

        Parameters
        ----------
        scores : result of :meth:`scores`
        queries : Q samples
        """
        lowest, highest = self.use.bounds(self.reference_count)
        share = np.minimum(fewer_posts(queries, self.targets) / FEW_POSTS, 1)
        highest = highest + np.log(share)
        log_ratios = self._log_ratios(scores, queries.count[:, None], self.targets.count)
        return (log_ratios.clip(max=highest) + likeness_term(self, queries)).clip(lowest, highest)

    def log_odds(self, queries: Samples, pairs: np.ndarray | None = None) -> np.ndarray:
        """Return the log-odds of queries that are no targets, each of whom has one.

        Parameters
        ----------
        queries : Q samples
        pairs : (N, 2), rows of queries and of targets; by default all

        Returns
        -------
        (Q, T); (N,) of listed pairs
        """
        query_posts = queries.count[:, None]
        target_posts = self.targets.count
        if pairs is not None:
            query_posts = queries.count[pairs[:, 0]]
            target_posts = target_posts[pairs[:, 1]]
        scores = self.scores(queries, pairs=pairs)
        log_ratios = self._log_ratios(scores, query_posts, target_posts)
        return log_ratios + likeness_term(self, queries, pairs) - np.log(len(self))

    def _log_ratios(self, scores, query_posts, target_posts):
        """Return ratios without bounds, at most HABIT_MARGIN above those in plain words."""
        as_written, *in_plain_words = scores
        written = self.use.log_ratio(as_written, query_posts, target_posts, self.reference_count)
        posts = [np.minimum(count, DOUBT_POSTS) for count in (query_posts, target_posts)]
        for of_version in in_plain_words:
            plain = self.use.log_ratio(of_version, *posts, self.reference_count)
            written = np.minimum(written, plain + HABIT_MARGIN)
        return written

    def highest_probability(self, costs: DetectionCosts) -> float:
        """Return the highest probability that a target can have, given the prior of ``costs``."""
        _, highest = self.use.bounds(self.reference_count)
        log_odds = logit(costs.prior) + highest - np.log(max(len(self) + self.beyond - 1, 1))
        return float(expit(log_odds))

    def compare(
        self, queries: Samples, names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compare queries with all targets; the same ones only once.

        Parameters
        ----------
        queries, names : as in :meth:`rank`

        Returns
        -------
        Scores (Q, T); log-likelihood ratios (Q, T), -inf where a query is not compared with a
        target: its own account, or one that is known to be another person's; and why no
        probability holds for a query, (Q,) object, "" where one does
        """
        key = ("compared", self, queries, tuple(names), tuple(map(tuple, self.apart)))
        return self.embeddings.once(key, partial(self._compare, queries, names))

    def _compare(self, queries, names):
        own_column = self.columns(names)
        scores = self.scores(queries, own_column)
        llr = self.llr(scores, queries)
        if (own_column >= 0).all():
            problems = self.problems[own_column]
        else:
            languages = languages_of(queries, self.encoder.tokenizer)
            problems = reading_problems(self, queries, languages)

        is_target = own_column >= 0
        llr[np.flatnonzero(is_target), own_column[is_target]] = NOT_COMPARED
        for pair in self.apart:
            for query, target in (pair, pair[::-1]):
                is_query = np.asarray(names, object) == query
                llr[np.ix_(is_query, self.names == target)] = NOT_COMPARED
        if not self.normalised:
            # raw scores of strangers may all be high: their mean ratio is lowered to at most 1
            mean_ratio = log_mean_ratio(self.of_judged(llr, problems))
            llr -= np.maximum(mean_ratio, 0)[:, None]
        return scores[0], llr, problems

    def of_judged(self, llr: np.ndarray, problems: np.ndarray) -> np.ndarray:
        """Return likelihood ratios with -inf for targets that cannot be judged.

        Such a target is no answer to a query that can be judged. But the query's person may be its
        writer, so a probability counts it among the others.

        Parameters
        ----------
        llr, problems : results of :meth:`compare`
        """
        of_judged = llr.copy()
        of_judged[np.ix_(problems == "", self.problems != "")] = NOT_COMPARED
        return of_judged

    def estimate_prior(self, queries: Samples, names: Sequence[str]) -> float:
        """Estimate the share of queries whose writer has an account in the gallery.

        It is the one that agrees best with the likelihood ratios of the queries that can be judged,
        see :func:`helpers.evaluation.calibration.estimate_prior`. Where these are fewer than
        ENOUGH, or the gallery does not normalise, it is the prior of LINK_COSTS.

        Parameters
        ----------
        queries, names : as in :meth:`rank`
        """
        _, llr, problems = self.compare(queries, names)
        judged = self.of_judged(llr, problems)[problems == ""]
        if len(judged) < ENOUGH or not self.normalised:
            return LINK_COSTS.prior
        return estimate_prior(log_mean_ratio(judged, self.beyond))

    def rank(
        self,
        queries: Samples,
        names: Sequence[str] | None = None,
        k: int = 10,
        costs: DetectionCosts = LINK_COSTS,
    ) -> pd.DataFrame:
        """Rank the k most likely accounts of each query, and give the probability of none.

        The probabilities are those of :func:`posterior`; what they leave of 1 is that of none.

        Parameters
        ----------
        queries : result of :meth:`queries`, or samples of the same store as the targets
        names : one name per query, by default "query 0", "query 1" ...; a query with the name of an
            account of the gallery is not compared with that account
        k : number of accounts to return for each query, fewer where the gallery has fewer
        costs : costs of errors, and the prior: the probability that the writer of a query has an
            account in the gallery

        Returns
        -------
        Columns ``query``, ``target``, ``rank`` (1 is best), ``score``, ``llr``, ``probability``,
        ``linked`` (whether linking costs less than not linking), ``query_posts``,
        ``target_posts``. The last row of each query has the target "nobody of these" and its
        probability, without rank and score. Accounts that cannot be judged (:attr:`problems`) are
        ranked for no other query; as queries they have no llr and no probability.

        Raises
        ------
        ValueError
            There is no query, the number of names is not that of the queries, or k is below 1.
        """
        if k < 1 or not len(queries):
            raise ValueError(f"{k} answers are asked for about {len(queries)} queries")
        candidates = self._candidates(queries, _names(names, len(queries)), k, costs)
        of_query = candidates.drop_duplicates("number")
        nobody = of_query[["number", "query", "query_posts"]]
        nobody = nobody.assign(target=NOBODY, probability=of_query.nobody)
        ranking = pd.concat([candidates[candidates.llr != NOT_COMPARED], nobody])
        ranking = ranking.sort_values("number", kind="stable", ignore_index=True)
        is_likely = ranking.probability >= costs.min_probability
        ranking["linked"] = is_likely & (ranking.target != NOBODY)
        return ranking.drop(columns=["number", "nobody"])

    def _candidates(self, queries, names, k, costs):
        """Return the k best targets of each query, those that it is not compared with last.

        ``number`` is that of the query; ``nobody`` is the probability that none is its account.
        """
        scores, llr, problems = self.compare(queries, names)
        probability, nobody = posterior(llr, costs.prior, self.beyond)
        llr = self.of_judged(llr, problems)
        best = likeliest(scores, llr, k)
        number, rank = np.indices(best.shape).reshape(2, -1)
        cell = (number, best.ravel())
        candidates = pd.DataFrame(
            {
                "number": number,
                "query": np.asarray(names, object)[number],
                "target": self.names[cell[1]],
                "rank": rank + 1,
                "score": scores[cell],
                "llr": llr[cell],
                "probability": probability[cell],
                "nobody": nobody[number],
                "query_posts": queries.count[number],
                "target_posts": self.targets.count[cell[1]],
            }
        )
        is_unjudged = problems[number] != ""
        candidates.loc[is_unjudged, ["llr", "probability", "nobody"]] = np.nan
        return candidates

    def link(
        self,
        queries: Posts | Samples,
        names: Sequence[str] | None = None,
        times: Sequence | None = None,
        topics: Sequence | None = None,
        costs: DetectionCosts = LINK_COSTS,
    ) -> pd.DataFrame:
        """Answer each query in one row: an account, NOBODY, UNDECIDED or UNJUDGED.

        Parameters
        ----------
        queries : texts as in :meth:`queries`, or samples as in :meth:`rank`
        names : as in :meth:`rank`
        times, topics : as in :meth:`queries`; ignored where ``queries`` are samples
        costs : as in :meth:`rank`

        Returns
        -------
        Columns ``query``; ``answer``; ``nobody``, the probability that no account belongs to the
        writer; ``threshold``, the least probability at which these costs allow a link; and
        ``target``, ``score``, ``llr``, ``probability``, ``query_posts``, ``target_posts`` of the
        most likely account. ``answer`` is this account if its probability reaches the threshold;
        else "undecided" if it is more likely than nobody, or the gallery has fewer than ENOUGH
        accounts, where no likeness could show more; else "nobody of these". It is "cannot be
        judged", without probabilities, where none would hold for the query: also where fewer than
        MIN_POSTS_TO_JUDGE posts are left of it (``query_posts``), since the words of others stand
        in posts of the gallery or of other queries, too.
        """
        if not isinstance(queries, Samples):
            store = self._own_words(queries, times, topics)
            count = store.posts_per_author()
            queries = Samples(store, store.author_offsets[:-1], count, np.arange(len(count)))
        names = np.array(_names(names, len(queries)), object)
        able = np.flatnonzero(queries.count)
        of_target = ["target", "target_posts", "score", "llr", "probability"]
        best = pd.DataFrame(columns=["nobody", *of_target], dtype=float)
        if len(able):
            samples = queries
            if len(able) < len(queries):
                samples = queries[able]
            best = self._candidates(samples, names[able], 1, costs).set_index(able)
            best.loc[best.llr == NOT_COMPARED, of_target] = np.nan
        best = best.reindex(range(len(names))).assign(query=names, query_posts=queries.count)

        is_judged = best.nobody.notna() & (best.query_posts >= MIN_POSTS_TO_JUDGE)
        best.loc[~is_judged, ["llr", "probability", "nobody"]] = np.nan
        is_linked = best.probability >= costs.min_probability
        is_open = (best.probability > best.nobody) | (not self.normalised)
        is_answer = [~is_judged, is_linked, is_open]
        best["answer"] = np.select(is_answer, [UNJUDGED, best.target, UNDECIDED], NOBODY)
        return best.assign(threshold=costs.min_probability)[ANSWER_COLUMNS]

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Return the number, from 0, of the account with each name; -1 where there is none."""
        return pd.Index(self.names).get_indexer(pd.Index(names, dtype=object))

    def accounts(self, names: Sequence[str]) -> Samples:
        """Return the samples of named accounts, to be used as queries.

        Raises
        ------
        ValueError
            A name is not in the gallery.
        """
        columns = self.columns(names)
        missing = [name for name, column in zip(names, columns) if column < 0]
        if missing:
            raise ValueError(
                f"{len(missing)} accounts are not in the gallery, the first is {missing[0]!r}"
            )
        if np.array_equal(columns, np.arange(len(self))):
            return self.targets  # their vectors are there
        return self.embeddings.some(self.targets, columns)


def _names(names, queries):
    """Return one name a query, by default "query 0", "query 1" ..."""
    if names is None:
        return [f"query {number}" for number in range(queries)]
    if len(names) != queries:
        raise ValueError(f"{queries} queries have {len(names)} names")
    return names
