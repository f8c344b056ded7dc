"""Answer which accounts of a file may be one person's: every pair once, and what it rests on."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from pydantic import Field

from ..core.parameters import Config
from ..evaluation.detection import DetectionCosts
from . import decided_pairs, languages, validation
from .encoder import ENOUGH, AuthorEncoder
from .gallery import (
    EQUAL_LLR,
    LINK_COSTS,
    NOBODY,
    UNJUDGED,
    AccountGallery,
    equal_queries,
)
from .link_errors import LinkErrors, count_link_errors
from .merging import merge_accounts
from .reading import OwnPosts, as_listed, choose_queries
from .same_texts import find_same_texts
from .unjudged import MIN_TOKENS_TO_JUDGE, token_counts

LINKED = "linked"
LIKELY = "likely, not linked"
NOT_LINKED = "not linked"
STATES = (LINKED, LIKELY, NOT_LINKED, UNJUDGED)
# words of the reasons why an account cannot be judged, beside those of unjudged.py
FEW_POSTS = "posts,"
FEW_WORDS = "hardly any words that are not quotes, links, code or copies"
EQUALLY_LIKELY = "posts that are as much like those of any other account here"
PAIR_COLUMNS = (
    "account_a account_b state probability llr highest posts_a posts_b reason decision note".split()
)
ACCOUNT_COLUMNS = "account posts language problem nobody".split()
LEAST_PROBABILITY = 0.01  # of a pair whose accounts' languages are looked at
MIN_LIKELY = 0.5  # probability of a pair that is called likely
MIN_POSTS_TO_JUDGE = 8  # calibration saw halves of so many posts, and more
COUNTED_BACK = 50  # best candidates of each account in which a pair's other direction is looked up


class Question(Config):
    """What is asked about a file.

    Parameters
    ----------
    accounts : tuple of str
        accounts that are asked about, by name or pseudonym; none for all, or for those with most
        posts, see :func:`helpers.accounts.reading.choose_queries`
    k : int
        best candidates of each account that become pairs
    prior : float
        share of the accounts that have a second one; 0 to estimate it
    miss, false_link : float
        costs of overlooking a pair, and of linking two people
    seed : int
        of what is drawn at random
    """

    accounts: tuple[str, ...] = ()
    k: int = Field(5, ge=1, le=1000)
    prior: float = Field(0.0, ge=0, lt=1)
    miss: float = Field(LINK_COSTS.miss, gt=0, le=1e9)
    false_link: float = Field(LINK_COSTS.false_accept, gt=0, le=1e9)
    seed: int = Field(0, ge=0)

    def costs(self, prior: float) -> DetectionCosts:
        """Return the costs of errors with a prior.

        Parameters
        ----------
        prior : float
            share of the accounts that have a second one
        """
        return DetectionCosts(prior=prior, miss=self.miss, false_accept=self.false_link)


@dataclass(frozen=True, eq=False)
class Answer:
    """Which accounts may be one person's.

    Attributes
    ----------
    posts : what was read, accounts that are known to be one person's joined
    joint_names : name of an account that was joined -> name of the joint account
    queries : names of the accounts that were asked about
    gallery : the accounts that they were compared with
    costs : costs of errors, and the prior that was used
    pairs : PAIR_COLUMNS, each pair once, linked ones first, then by probability. ``probability``
        and ``llr`` are the lower ones of both directions, as far as both accounts were asked about;
        ``highest`` says that llr is as high as the calibration can support; ``reason`` says why
        a pair cannot be judged; ``decision`` and ``note`` are what a person said about the pair
    accounts : ACCOUNT_COLUMNS of the accounts that were asked about, or that stand in a pair with
        LEAST_PROBABILITY; ``nobody`` is the probability that no other account is this person's, and
        NaN for accounts that were not asked about
    choice : the calibration that was used, and how it was judged
    errors : links among halves of the user's accounts; None where there were too few
    compared : the encoder beside the best TF-IDF on these halves, see
        :func:`helpers.accounts.validation.compare_with_tfidf`
    same_texts : pairs that posted the same texts and are not decided, those with most texts first,
        see :func:`helpers.accounts.same_texts.find_same_texts`
    unknown : accounts of decisions that the file does not have, or that are set aside
    shown_names : pseudonym -> name to show; empty where accounts are shown by their pseudonyms
    """

    posts: OwnPosts
    joint_names: dict[str, str]
    queries: list[str]
    gallery: AccountGallery
    costs: DetectionCosts
    pairs: pd.DataFrame
    accounts: pd.DataFrame
    choice: validation.CalibrationChoice
    errors: LinkErrors | None
    compared: pd.DataFrame
    same_texts: pd.DataFrame
    unknown: list[str] = field(default_factory=list)
    shown_names: dict[str, str] = field(default_factory=dict)

    @property
    def highest_probability(self) -> float:
        """The highest probability that a pair can have here."""
        return self.gallery.highest_probability(self.costs)

    @property
    def compared_accounts(self) -> int:
        """Number of accounts that each account was compared with, itself included."""
        return len(self.gallery) + self.gallery.beyond


def answer_question(
    posts: OwnPosts,
    encoder: AuthorEncoder,
    question: Question = Question(),
    decisions: pd.DataFrame | None = None,
) -> Answer:
    """Compare the accounts of a file with each other.

    Accounts of a pair that was decided as the same are joined; a pair that was decided as different
    is not compared. The calibration is fitted on halves of the user's accounts where these are
    enough, see :func:`helpers.accounts.validation.choose_calibration`.

    Parameters
    ----------
    posts : OwnPosts
        all accounts
    encoder : AuthorEncoder
        embeds and scores them
    question : Question
        what is asked
    decisions : DataFrame, optional
        result of :func:`helpers.accounts.decided_pairs.read_decisions`

    Raises
    ------
    ValueError
        Where an account that is asked about is not there, fewer than two are left, or decisions
        contradict each other.
    """
    if decisions is None:
        decisions = pd.DataFrame(columns=decided_pairs.COLUMNS)
    same_texts = find_same_texts(posts, decisions=decisions)
    decided_pairs.check_chains(decisions)
    unknown = decided_pairs.unknown_accounts(decisions, set(posts.names))
    decisions = decided_pairs.with_listed_names(decisions, posts.names)
    same = _decided(decisions, decided_pairs.SAME)
    apart = _decided(decisions, decided_pairs.DIFFERENT)
    choice = validation.choose_calibration(
        posts, encoder, question.costs(question.prior or LINK_COSTS.prior), question.seed
    )
    encoder = choice.encoder
    listed_names = as_listed(question.accounts, posts.names)
    posts, joint_names = merge_accounts(posts, same)
    apart = [tuple(joint_names.get(name, name) for name in pair) for pair in apart]

    queried_names = [
        joint_names.get(name, account) for name, account in zip(listed_names, question.accounts)
    ]
    queries = choose_queries(posts, queried_names)
    gallery = posts.gallery_for(encoder, posts.samples(queries), question.seed)
    gallery = replace(gallery, apart=apart)
    samples = gallery.accounts(queries)
    costs = question.costs(question.prior or gallery.estimate_prior(samples, queries))
    ranking = gallery.rank(samples, queries, max(question.k, COUNTED_BACK), costs)

    pairs = pairs_of_ranking(ranking, question.k)
    accounts = _accounts(gallery, queries, ranking, pairs)
    pairs = _with_states(pairs, accounts, gallery, costs)
    pairs = _with_decisions(pairs, decisions, joint_names)
    errors, compared = _measured_on_halves(choice, costs, gallery.use, question.seed)
    return Answer(
        posts,
        joint_names,
        queries,
        gallery,
        costs,
        pairs,
        accounts,
        choice,
        errors,
        compared,
        same_texts,
        unknown,
    )


def _measured_on_halves(choice, costs, use, seed):
    """Return link errors among halves of accounts, and the comparison with the best TF-IDF.

    ``use`` has the bounds of the answer's likelihood ratios, which hold for the halves as well.
    """
    if choice.gallery is None:
        return None, pd.DataFrame()
    errors = None
    if len(choice.gallery) >= ENOUGH:
        llr = choice.log_ratio.clip(*use.bounds(len(choice.gallery)))
        errors = count_link_errors(llr, costs)
    return errors, validation.compare_with_tfidf(choice.gallery, choice.older, seed)


def _decided(decisions, decision):
    """Return the pairs of names of which a decision was made."""
    rows = decisions[decisions.decision == decision]
    return list(zip(rows.account_a, rows.account_b, strict=True))


def pairs_of_ranking(ranking: pd.DataFrame, k: int) -> pd.DataFrame:
    """Return each pair of a ranking once, with the lower probability of both directions.

    Parameters
    ----------
    ranking : DataFrame
        result of :meth:`helpers.accounts.gallery.AccountGallery.rank`; of accounts whose number of
        candidates is limited, the last candidate's values stand for those of all further ones
    k : int
        a pair counts if one account is among the k best candidates of the other

    Returns
    -------
    Columns ``account_a``, ``account_b``, ``probability``, ``llr``, ``posts_a``, ``posts_b``, the
    likeliest pair first. Account a is the one that was asked about, or the first one by name.
    """
    candidates = ranking[ranking.target != NOBODY]
    values = {}
    last_values = {}
    for row in candidates.itertuples():
        values[row.query, row.target] = (row.probability, row.llr)
        last_values[row.query] = (row.probability, row.llr)
    rows = {}
    for row in candidates[candidates["rank"] <= k].itertuples():
        pair = frozenset([row.query, row.target])
        if pair in rows:
            continue
        directions = [(row.probability, row.llr)]
        if row.target in last_values:
            directions.append(values.get((row.target, row.query), last_values[row.target]))
        sides = [(row.query, row.query_posts), (row.target, row.target_posts)]
        if row.target in last_values:
            sides.sort()
        (account_a, posts_a), (account_b, posts_b) = sides
        probability, llr = min(directions)
        rows[pair] = (account_a, account_b, probability, llr, int(posts_a), int(posts_b))
    columns = ["account_a", "account_b", "probability", "llr", "posts_a", "posts_b"]
    pairs = pd.DataFrame(rows.values(), columns=columns)
    return pairs.sort_values(
        ["probability", "account_a", "account_b"], ascending=[False, True, True], ignore_index=True
    )


def _accounts(gallery, queries, ranking, pairs):
    """Return the table of accounts, see :class:`Answer`."""
    likely = pairs[pairs.probability >= LEAST_PROBABILITY]
    names = list(dict.fromkeys([*queries, *likely.account_a, *likely.account_b]))
    samples = gallery.accounts(names)
    spoken = languages.languages_of(samples, gallery.encoder.tokenizer)
    nobody = ranking[ranking.target == NOBODY].set_index("query").probability
    frame = pd.DataFrame(
        {
            "account": names,
            "posts": samples.count,
            "language": spoken,
            "problem": gallery.problems[gallery.columns(names)],
            "nobody": nobody.reindex(names).to_numpy(),
        }
    )
    lowest, _ = gallery.use.bounds(gallery.reference_count)
    # those at the lower bound are all unlikely, which is an answer
    equal = equal_queries(ranking[~(ranking.llr < lowest + EQUAL_LLR)])
    words = token_counts(samples)
    for row, account in enumerate(frame.itertuples()):
        frame.loc[row, "problem"] = _problem(account, words[row], equal)
    return frame


def _problem(account, tokens, equal):
    """Return why an account cannot be judged, "" where it can."""
    problems = []
    if account.problem:
        problems.append(account.problem)
    if account.posts < MIN_POSTS_TO_JUDGE:
        problems.append(f"only {account.posts} {FEW_POSTS} {MIN_POSTS_TO_JUDGE} are needed")
    elif tokens < MIN_TOKENS_TO_JUDGE:
        problems.append(FEW_WORDS)
    elif account.account in equal:
        problems.append(EQUALLY_LIKELY)
    return "; ".join(problems)


def _with_states(pairs, accounts, gallery, costs):
    """Add the columns state, highest and reason to pairs, and sort them by state."""
    problem_of = accounts.set_index("account").problem.to_dict()
    _, highest_llr = gallery.use.bounds(gallery.reference_count)
    states = []
    reasons = []
    for pair in pairs.itertuples():
        problems = {}
        for name in (pair.account_a, pair.account_b):
            problem = problem_of.get(name, "")
            if problem:
                problems[name] = problem
        reasons.append(problems)
        states.append(_state(pair.probability, problems, costs))
    frame = pairs.assign(state=states, reason=reasons, highest=pairs.llr >= highest_llr - EQUAL_LLR)
    unjudged = gallery.names[gallery.problems != ""]
    means_nothing = frame.account_a.isin(unjudged) | frame.account_b.isin(unjudged)
    frame.loc[means_nothing, ["probability", "llr"]] = np.nan
    order = frame.state.map(STATES.index)
    return frame.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _state(probability, problems, costs):
    if problems:
        return UNJUDGED
    if probability >= costs.min_probability:
        return LINKED
    if probability >= MIN_LIKELY:
        return LIKELY
    return NOT_LINKED


def _with_decisions(pairs, decisions, joint_names):
    """Add the columns decision and note: what was said about a pair that is still open."""
    said = {}
    for row in decisions[decisions.decision == decided_pairs.LATER].itertuples():
        names = [joint_names.get(name, name) for name in (row.account_a, row.account_b)]
        said[frozenset(names)] = (row.decision, row.note)
    pair_names = [frozenset(pair) for pair in zip(pairs.account_a, pairs.account_b, strict=True)]
    frame = pairs.assign(
        decision=[said.get(pair, ("", ""))[0] for pair in pair_names],
        note=[said.get(pair, ("", ""))[1] for pair in pair_names],
    )
    return frame[PAIR_COLUMNS]
