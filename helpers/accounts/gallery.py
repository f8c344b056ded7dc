"""Galleries of accounts: find the account, if any, of the person who wrote a query."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import expit, logit, logsumexp

from ..evaluation.calibration import estimate_prior
from ..evaluation.detection import DetectionCosts
from ..evaluation.models import Embeddings, Gallery, Member
from ..evaluation.scores import reference_targets
from ..tokens.batch import Samples
from .encoder import ENOUGH, MAX_TOKENS, AuthorEncoder
from .samples import Posts, in_memory, passage_hashes, samples_of, whole_accounts, without_passages
from .unjudged import MIN_POSTS_TO_JUDGE, languages_of, reading_problems

NOBODY = "nobody of these"
UNDECIDED = "undecided"
UNJUDGED = "cannot be judged"
NOT_COMPARED = -np.inf  # log-likelihood ratio of a query and a target that are not compared
LINK_COSTS = DetectionCosts(false_accept=10)  # linking two people costs as much as ten missed pairs


@dataclass(eq=False)
class AccountGallery:
    """Named accounts, against all of which queries are ranked.

    In a gallery of at least ENOUGH accounts, scores are normalised by those of the nearest
    accounts. In a smaller one scores are raw, no likelihood ratio is above 10, and the mean ratio
    of a query is lowered to at most 1. So nobody is linked without enough other accounts from the
    same place to compare with.

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

        Passages that several posts share word for word are removed first.

        Parameters
        ----------
        encoder : embeds the accounts
        posts : one list of texts per account
        names : one name per account, all different
        times : one list per account with the time of each post; by default times are not known
        topics : one list per account with the topic of each post. Topics change no score; they are
            needed to find the words of a topic, see
            :func:`helpers.accounts.evidence.topic_words`

        Raises
        ------
        ValueError
            An account has no post left, or names, times or topics do not fit the posts.
        """
        samples = samples_of(posts, encoder.tokenizer, times, topics)
        store, _ = without_passages(samples.store, encoder.kinds)
        return cls(encoder, whole_accounts(store), names, times is not None)

    def __len__(self) -> int:
        return len(self.names)

    def queries(
        self, posts: Posts, times: Sequence | None = None, topics: Sequence | None = None
    ) -> Samples:
        """Turn texts into queries for this gallery.

        Passages that stand word for word in other posts, of queries or gallery, are removed first.

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
        """Return a store of queries, without the passages that stand in other posts, too."""
        if self.hours != (times is not None):
            with_times = "with" if self.hours else "without"
            raise ValueError(f"the gallery was made {with_times} times: ask it in the same way")
        samples = samples_of(posts, self.encoder.tokenizer, times, topics, may_be_empty=True)
        return without_passages(samples.store, self.encoder.kinds, self.passages)[0]

    @cached_property
    def passages(self) -> np.ndarray:
        """Hashes of all passages of the targets' posts, sorted, each once."""
        return np.unique(passage_hashes(in_memory(self.targets).store, self.encoder.kinds))

    @cached_property
    def words(self) -> Gallery:
        """The TF-IDF of words that is fitted on the targets, and their rows."""
        encoder = self.encoder.encoders["tfidf_word"]
        member = Member("tfidf_word", encoder, "none", embeddings=self.embeddings)
        return member.gallery(self.targets, MAX_TOKENS)

    @cached_property
    def problems(self) -> np.ndarray:
        """Why no probability holds for a target, (T,) object; "" where one does.

        See :func:`helpers.accounts.unjudged.reading_problems`.
        """
        return reading_problems(self, self.targets, np.arange(len(self)), self.languages)

    @cached_property
    def languages(self) -> list[str]:
        """The language of each target, see :func:`helpers.accounts.unjudged.languages_of`."""
        return languages_of(self.targets, self.encoder.tokenizer)

    def log_odds(self, queries: Samples) -> np.ndarray:
        """Return the log-odds (Q, T) of queries that are no targets, each of whom has one.

        Parameters
        ----------
        queries : Q samples
        """
        blocks = []
        for part, scores in self.model.scores(queries, self.targets, MAX_TOKENS):
            posts = (queries.count[part, None], self.targets.count)
            blocks.append(self.use.log_ratio(scores, *posts, self.reference_count))
        return np.concatenate(blocks) - np.log(len(self))

    def log_odds_of_pairs(self, queries: Samples, pairs: np.ndarray) -> np.ndarray:
        """Return the log-odds (N,) of :meth:`log_odds` for pairs of a query and a target.

        Parameters
        ----------
        queries : Q samples
        pairs : (N, 2), rows of queries and of targets
        """
        scores = self.model.pair_scores(queries, self.targets, pairs, MAX_TOKENS)
        posts = (queries.count[pairs[:, 0]], self.targets.count[pairs[:, 1]])
        return self.use.log_ratio(scores, *posts, self.reference_count) - np.log(len(self))

    def highest_probability(self, costs: DetectionCosts) -> float:
        """Return the highest probability that a target can have, given the prior of ``costs``."""
        _, highest = self.use.bounds(self.reference_count)
        log_odds = logit(costs.prior) + highest - np.log(max(len(self) + self.beyond - 1, 1))
        return float(expit(log_odds))

    def compare(
        self, queries: Samples, names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compare queries with all targets.

        Parameters
        ----------
        queries, names : as in :meth:`rank`

        Returns
        -------
        Scores (Q, T); log-likelihood ratios (Q, T), -inf where a query is not compared with a
        target: its own account, or one that is known to be another person's; and why no
        probability holds for a query, (Q,) object, "" where one does
        """
        own_column = self.columns(names)
        blocks = self.model.scores(queries, self.targets, MAX_TOKENS, own_column)
        scores = np.concatenate([block.copy() for _, block in blocks])
        posts = (queries.count[:, None], self.targets.count)
        llr = self.use.llr(scores, *posts, self.reference_count)
        if (own_column >= 0).all():
            problems = self.problems[own_column]
        else:
            languages = languages_of(queries, self.encoder.tokenizer)
            problems = reading_problems(self, queries, own_column, languages)

        is_target = own_column >= 0
        llr[np.flatnonzero(is_target), own_column[is_target]] = NOT_COMPARED
        for pair in self.apart:
            for query, column in zip(pair, self.columns(pair[::-1]), strict=True):
                if column >= 0:
                    llr[np.array([name == query for name in names]), column] = NOT_COMPARED
        if not self.normalised:
            # raw scores of strangers may all be high: their mean ratio is lowered to at most 1
            mean_ratio = log_mean_ratio(self.of_judged(llr, problems))
            llr -= np.maximum(mean_ratio, 0)[:, None]
        return scores, llr, problems

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
        """Estimate the share of queries whose writer has an account, see :meth:`prior_of`.

        Parameters
        ----------
        queries, names : as in :meth:`rank`
        """
        _, llr, problems = self.compare(queries, names)
        return self.prior_of(self.of_judged(llr, problems)[problems == ""])

    def prior_of(self, llr: np.ndarray) -> float:
        """Return the share of queries whose writer has an account in the gallery.

        It is the one that agrees best with the likelihood ratios, see
        :func:`helpers.evaluation.calibration.estimate_prior`. Where there are fewer than ENOUGH
        queries, or the gallery does not normalise, it is the prior of LINK_COSTS.

        Parameters
        ----------
        llr : (Q, T), result of :meth:`of_judged` for queries that can be judged
        """
        if len(llr) < ENOUGH or not self.normalised:
            return LINK_COSTS.prior
        return estimate_prior(log_mean_ratio(llr, self.beyond))

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
        if names is None:
            names = [f"query {number}" for number in range(len(queries))]
        if len(names) != len(queries) or k < 1 or not len(names):
            raise ValueError(
                f"{len(queries)} queries have {len(names)} names, and {k} answers are asked for"
            )
        scores, llr, problems = self.compare(queries, names)
        probability, nobody = posterior(llr, costs.prior, self.beyond)
        llr = self.of_judged(llr, problems)
        best = likeliest(scores, llr, k)
        number = np.repeat(np.arange(len(names)), best.shape[1])
        cell = (number, best.ravel())
        candidates = pd.DataFrame(
            {
                "query": np.asarray(names, object)[number],
                "target": self.names[cell[1]],
                "rank": np.tile(1 + np.arange(best.shape[1]), len(names)),
                "score": scores[cell],
                "llr": llr[cell],
                "probability": probability[cell],
                "linked": probability[cell] >= costs.min_probability,
                "query_posts": queries.count[number],
                "target_posts": self.targets.count[cell[1]],
            },
            index=number,
        )
        candidates = candidates[candidates.llr != NOT_COMPARED]
        of_nobody = {"target": NOBODY, "probability": nobody, "linked": False}
        of_nobody |= {"query": names, "query_posts": queries.count}
        ranking = pd.concat([candidates, pd.DataFrame(of_nobody)]).sort_index(kind="stable")
        is_unjudged = problems[ranking.index] != ""
        ranking.loc[is_unjudged, ["llr", "probability"]] = np.nan
        ranking.loc[is_unjudged, "linked"] = False
        return ranking.reset_index(drop=True)

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
        else "undecided" if it is more likely than nobody; else "nobody of these". It is "cannot be
        judged", without probabilities, where none would hold for the query: also where fewer than
        MIN_POSTS_TO_JUDGE posts are left of it (``query_posts``), since the words of others stand
        in posts of the gallery or of other queries, too.
        """
        if isinstance(queries, Samples):
            return self._answers(queries, names, costs)
        store = self._own_words(queries, times, topics)
        count = store.posts_per_author()
        if names is None:
            names = [f"query {number}" for number in range(len(count))]
        if len(names) != len(count):
            raise ValueError(f"{len(count)} queries have {len(names)} names")
        able = np.flatnonzero(count)
        if not len(able):
            raise ValueError("no query has a post of its own words")
        samples = Samples(store, store.author_offsets[able], count[able], able)
        answers = self._answers(samples, [names[number] for number in able], costs)
        answers = answers.set_index(able).reindex(range(len(count)))
        answers["answer"] = answers["answer"].fillna(UNJUDGED)
        return answers.assign(query=names, query_posts=count, threshold=costs.min_probability)

    def _answers(self, queries, names, costs):
        """Return the answers of :meth:`link` to samples."""
        ranking = self.rank(queries, names, 1, costs)
        is_nobody = ranking.target == NOBODY
        number = is_nobody.cumsum().shift(fill_value=0)  # of the query, whose last row is nobody's
        best = ranking[~is_nobody].set_index(number[~is_nobody])
        nobody = ranking[is_nobody].reset_index(drop=True)
        is_likelier = best.probability > nobody.probability[best.index]
        unlinked = np.where(is_likelier, UNDECIDED, NOBODY)
        answer = best.target.where(best.linked, unlinked).reindex(nobody.index, fill_value=NOBODY)
        has_few = nobody.query_posts < MIN_POSTS_TO_JUDGE
        best.loc[best.index.isin(np.flatnonzero(has_few)), ["llr", "probability"]] = np.nan
        answers = pd.DataFrame(
            {
                "query": nobody["query"],
                "answer": answer.mask(nobody.probability.isna() | has_few, UNJUDGED),
                "nobody": nobody.probability.mask(has_few),
                "threshold": costs.min_probability,
            }
        )
        return answers.join(best.drop(columns=["query", "rank", "linked"]))

    @cached_property
    def _column_of_name(self):
        return {name: column for column, name in enumerate(self.names)}

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Return the number, from 0, of the account with each name; -1 where there is none."""
        return np.array([self._column_of_name.get(name, -1) for name in names], int)

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
        return self.targets[columns]


def likeliest(scores: np.ndarray, llr: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers (Q, k) of the likeliest targets, the best first; fewer than k if T is.

    Parameters
    ----------
    scores, llr : (Q, T); targets of equal ratios are told apart by their scores
    k : number of targets
    """
    return np.lexsort((scores, llr))[:, ::-1][:, :k]


def log_mean_ratio(llr: np.ndarray, beyond: int = 0) -> np.ndarray:
    """Return the logarithm (Q,) of the mean likelihood ratio of the targets that are compared.

    Parameters
    ----------
    llr : (Q, T), -inf for targets that are not compared
    beyond : number of more targets whose ratio is 0
    """
    compared = np.isfinite(llr).sum(1) + beyond
    return logsumexp(llr, 1) - np.log(np.maximum(compared, 1))


def posterior(llr: np.ndarray, prior: float, beyond: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability that a target is the query's account, and that none is.

    One target belongs to the writer of the query, or none. With prior p, T targets (``beyond``
    included), the likelihood ratio L_t of target t and the sum S of all ratios, the probability of
    t is ``(p / T) L_t / (1 - p + (p / T) S)``.

    Parameters
    ----------
    llr : (Q, T), -inf for targets that are not compared
    prior : probability that the writer of a query has a target
    beyond : number of more targets whose ratio is 0

    Returns
    -------
    (Q, T) and (Q,)
    """
    compared = np.isfinite(llr).sum(1, keepdims=True) + beyond
    log_odds = np.log(prior / np.maximum(compared, 1)) + llr
    log_nobody = np.log1p(-prior)
    log_total = np.logaddexp(logsumexp(log_odds, 1, keepdims=True), log_nobody)
    return np.exp(log_odds - log_total), np.exp(log_nobody - log_total[:, 0])
