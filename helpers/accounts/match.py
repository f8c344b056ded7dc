"""Answer which accounts of one list, or of two, may be one person's: every pair once.

In one list a person may have any number of accounts. Every account is asked about in the list, see
:meth:`helpers.accounts.gallery.AccountGallery.compare`, and a pair has the lower probability of
both directions. In two lists a person has one account each at most, so all pairs are decided
together, see :mod:`helpers.accounts.two_lists`.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import expit, logit

from ..core.parameters import Config
from ..evaluation.detection import DetectionCosts
from . import decisions as decided
from . import validation
from .encoder import AuthorEncoder
from .gallery import LINK_COSTS, NOT_COMPARED, UNJUDGED, AccountGallery, likeliest, posterior
from .reading import OwnPosts
from .two_lists import LISTS, galleries_of_two, log_odds_of_pairs, match_pairs
from .unjudged import (
    MIN_POSTS_TO_JUDGE,
    MIN_TOKENS_TO_JUDGE,
    token_counts,
)

LINKED = "linked"
LIKELY = "likely, not linked"
NOT_LINKED = "not linked"
STATES = (LINKED, LIKELY, NOT_LINKED, UNJUDGED)
# reasons why an account cannot be judged, beside those of unjudged.py
FEW_POSTS = "fewer than {} posts"
FEW_WORDS = "hardly any words that are not quotes, links, code or copies"
EQUALLY_LIKELY = "posts that are as much like those of any other account here"
SIDES = ["account_a", "account_b"]
PAIR_COLUMNS = (
    "account_a account_b state probability llr posts_a posts_b reason decision note".split()
)
LEAST_PROBABILITY = 0.01  # of a pair of two lists that is reported
MIN_LIKELY = 0.5  # probability of a pair that is called likely
EQUAL_LLR = 1e-3  # ratios that no table can tell apart
LIKELIEST = 50  # targets of an account among which some must be told apart from others


class Question(Config):
    """What is asked about one list of accounts, or about two.

    Parameters
    ----------
    accounts : tuple of str
        accounts that are asked about, by name or pseudonym; none for all, or for those with most
        posts, see :func:`helpers.accounts.decisions.choose_queries`
    k : int
        best candidates of each account of one list that become pairs
    prior : float
        share of the accounts of one list that have a second one; 0 to estimate it
    overlap : float
        share of the shorter one of two lists that has a partner; 0 to estimate it
    false_link : float
        cost of linking two people, where overlooking a pair costs 1
    seed : int
        of what is drawn at random
    """

    accounts: tuple[str, ...] = ()
    k: int = Field(5, ge=1, le=1000)
    prior: float = Field(0.0, ge=0, lt=1)
    overlap: float = Field(0.0, ge=0, le=1)
    false_link: float = Field(LINK_COSTS.false_accept, gt=0, le=1e9)
    seed: int = Field(0, ge=0)

    def costs(self, prior: float = 0.0) -> DetectionCosts:
        """Return the costs of errors with a prior, by default the stated or the usual one.

        Parameters
        ----------
        prior : float
            share of the accounts that have a second one
        """
        prior = prior or self.prior or LINK_COSTS.prior
        return DetectionCosts(prior=prior, false_accept=self.false_link)


@dataclass(frozen=True, eq=False)
class Answer:
    """Which accounts may be one person's.

    Attributes
    ----------
    posts : what was read of one list, or of two; accounts of one list that are known to be one
        person's are joined
    galleries : the accounts of each list
    queries : names of the accounts that were asked about, by default those of the first list
    prior : share of the accounts that have a second one; of two lists that of the shorter one that
        has a partner. It was given or estimated
    costs : costs of errors
    highest_probability : the highest probability that a pair can have here
    pairs : PAIR_COLUMNS, each pair once, linked ones first, then by probability. Of one list they
        are pairs of which one account is among the k best candidates of the other, with the lower
        ``probability`` and ``llr`` of both directions, as far as both accounts were asked about; of
        two lists all pairs with LEAST_PROBABILITY, with the mean ``llr``. ``reason`` maps accounts
        that cannot be judged to why; ``decision`` and ``note`` are what a person said about the
        pair
    accounts : columns ``list`` (one of LISTS), ``account``, ``posts``, ``language``, ``problem``,
        ``nobody``, of the accounts that were asked about, or that stand in a pair with
        LEAST_PROBABILITY. ``problem`` says why an account cannot be judged; ``nobody`` is the
        probability that no other account is this person's, and NaN where it was not asked
    unknown : accounts of decisions that no list has, or that are set aside
    choice : the calibration that was used, and how it was judged
    fitted_list : on which of two lists it was judged
    errors : links among halves of the accounts of one list; None where there were too few
    joint_names : name of an account that was joined -> name of the joint account
    same_texts : pairs that posted the same texts and are not decided, those with most texts first,
        see :func:`helpers.accounts.decisions.find_same_texts`
    """

    posts: list[OwnPosts]
    galleries: list[AccountGallery]
    queries: list[str]
    prior: float
    costs: DetectionCosts
    highest_probability: float
    pairs: pd.DataFrame
    accounts: pd.DataFrame
    unknown: list[str]
    choice: validation.CalibrationChoice
    fitted_list: str = ""
    errors: dict | None = None
    joint_names: dict[str, str] = field(default_factory=dict)
    same_texts: pd.DataFrame = field(default_factory=pd.DataFrame)
    is_share_given: bool = False

    @property
    def gallery(self) -> AccountGallery:
        """The accounts of the first list."""
        return self.galleries[0]

    @property
    def is_one(self) -> bool:
        """Whether one list was compared with itself."""
        return len(self.galleries) == 1

    @property
    def compared_accounts(self) -> int:
        """Number of accounts that each account of one list was compared with, itself included."""
        return len(self.gallery) + self.gallery.beyond


def answer_question(
    posts: OwnPosts,
    encoder: AuthorEncoder,
    question: Question = Question(),
    decisions: pd.DataFrame | None = None,
    second_posts: OwnPosts | None = None,
) -> Answer:
    """Compare the accounts of a list with each other, or with those of another list.

    A pair that was decided as two people's is not compared. In one list, accounts of a pair that
    was decided as the same are joined; in two lists, accounts of a known pair are nobody else's
    partners. The calibration is fitted on halves of the accounts where these are enough, of two
    lists on the one that has more, see :func:`helpers.accounts.validation.choose_calibration`. In
    both lists together, partners would count as two people.

    Parameters
    ----------
    posts : OwnPosts
        all accounts
    encoder : AuthorEncoder
        embeds and scores them
    question : Question
        what is asked
    decisions : DataFrame, optional
        result of :func:`helpers.accounts.decisions.read_decisions`
    second_posts : OwnPosts, optional
        the accounts of a second list; both are then as one of :func:`comparable_lists`

    Raises
    ------
    ValueError
        An account that is asked about is not there, too few are left, decisions contradict each
        other, or only one of two lists has times.
    """
    lists = [posts]
    if second_posts is not None:
        lists.append(second_posts)
    if decisions is None:
        decisions = pd.DataFrame(columns=decided.COLUMNS)
    names = [of_list.names for of_list in lists]
    listed = decided.listed_decisions(decisions, names[0], names[-1])
    decided.check_decisions(listed, len(lists) == 1)
    everybody = {*names[0], *names[-1]}
    said = (listed, decided.unknown_accounts(decisions, everybody))
    if len(lists) == 2:
        return _answer_of_two(lists, encoder, question, said)
    return _answer_of_one(posts, encoder, question, said)


def _answer_of_one(posts, encoder, question, said):
    """Answer :func:`answer_question` about one list."""
    listed, unknown = said
    choice = validation.choose_calibration(posts, encoder, question.costs(), question.seed)
    asked = decided.as_listed(question.accounts, posts.names)
    posts, joint_names = decided.merge_accounts(posts, listed)
    asked = [joint_names.get(name, given) for name, given in zip(asked, question.accounts)]
    queries = decided.choose_queries(posts, asked)
    gallery = posts.gallery_for(choice.encoder, queries, question.seed)
    listed = listed.assign(**{side: listed[side].replace(joint_names) for side in SIDES})
    apart = listed[listed.decision == decided.DIFFERENT]
    gallery.apart = list(zip(apart.account_a, apart.account_b))

    scores, llr, problems = gallery.compare(gallery.accounts(queries), queries)
    prior = question.prior
    if not prior and question.accounts and not gallery.beyond:
        everybody = decided.choose_queries(posts, [])
        prior = gallery.estimate_prior(gallery.accounts(everybody), everybody)
    elif not prior:
        prior = gallery.prior_of(gallery.of_judged(llr, problems)[problems == ""])
    costs = question.costs(prior)
    probability, nobody = posterior(llr, prior, gallery.beyond)
    llr = gallery.of_judged(llr, problems)
    best = likeliest(scores, llr, question.k)
    pairs = _pairs_of_one(gallery, queries, best, (scores, llr, probability))
    llr[problems != ""] = np.nan
    lowest, _ = gallery.use.bounds(gallery.reference_count)
    equal = np.array(queries)[are_equal(llr, lowest)]
    nobody = pd.Series(np.where(problems == "", nobody, np.nan), queries)
    accounts = _accounts_of_one(gallery, nobody, pairs, equal)
    return Answer(
        [posts],
        [gallery],
        queries,
        prior,
        costs,
        gallery.highest_probability(costs),
        _with_states(pairs, [accounts, accounts], listed, costs),
        accounts,
        unknown,
        choice,
        errors=validation.link_errors(choice, costs),
        joint_names=joint_names,
        is_share_given=question.prior > 0,
    )


def _pairs_of_one(gallery, queries, best, compared):
    """Return the pairs of queries with their ``best`` (Q, k) targets, each once.

    ``compared`` are scores, log-likelihood ratios and probabilities (Q, T). Account a is the one
    that was asked about, or the first one by name.
    """
    scores, llr, probability = compared
    own_column = gallery.columns(queries)
    back = np.full(probability.shape, np.inf)
    back[:, own_column] = probability[:, own_column].T
    back_llr = np.full(llr.shape, np.inf)
    back_llr[:, own_column] = llr[:, own_column].T
    row = np.repeat(np.arange(len(queries)), best.shape[1])
    column = best.ravel()
    is_compared = llr[row, column] != NOT_COMPARED
    cell = (row[is_compared], column[is_compared])
    sides = np.stack([own_column[cell[0]], cell[1]])
    is_second = np.isin(cell[1], own_column) & (gallery.names[sides[1]] < gallery.names[sides[0]])
    sides = np.where(is_second, sides[::-1], sides)
    pairs = _frame(
        (gallery, gallery),
        *sides,
        probability=np.minimum(probability, back)[cell],
        llr=np.where(back < probability, back_llr, llr)[cell],
        score=scores[cell],
    )
    is_unjudged = pairs[SIDES].isin(gallery.names[gallery.problems != ""])
    pairs.loc[is_unjudged.any(axis=1), ["probability", "llr", "score"]] = np.nan
    return pairs.drop_duplicates(SIDES)


def _frame(galleries, rows_a, rows_b, **columns):
    """Return names and numbers of posts of pairs of rows of two galleries, and more columns."""
    first, second = galleries
    frame = pd.DataFrame({"account_a": first.names[rows_a], "account_b": second.names[rows_b]})
    counts = {"posts_a": first.targets.count[rows_a], "posts_b": second.targets.count[rows_b]}
    return frame.assign(**counts, **columns)


def are_equal(llr: np.ndarray, lowest: float) -> np.ndarray:
    """Tell of which queries the likeliest targets cannot be told apart, (Q,) bool.

    Parameters
    ----------
    llr : (Q, T), NaN for queries that cannot be judged
    lowest : ratio of targets that are all unlikely, which is an answer
    """
    best = pd.DataFrame(np.sort(np.where(np.isnan(llr), NOT_COMPARED, llr))[:, -LIKELIEST:])
    ratios = best[best >= lowest + EQUAL_LLR]
    spread = ratios.max(axis=1) - ratios.min(axis=1)
    return ((spread < EQUAL_LLR) & (ratios.count(axis=1) > 1)).to_numpy()


def _accounts_of_one(gallery, nobody, pairs, equal):
    """Return the table of accounts of one list, see :class:`Answer`."""
    likely = pairs[pairs.probability >= LEAST_PROBABILITY]
    names = list(dict.fromkeys([*nobody.index, *likely.account_a, *likely.account_b]))
    frame = _accounts(gallery, LISTS[0], nobody).set_index("account", drop=False).loc[names]
    frame.loc[frame.account.isin(equal) & (frame.problem == ""), "problem"] = EQUALLY_LIKELY
    return frame.reset_index(drop=True)


def _accounts(gallery, letter, nobody):
    """Return the table of all accounts of a gallery, see :class:`Answer`."""
    posts = gallery.targets.count
    has_few = [posts < MIN_POSTS_TO_JUDGE, token_counts(gallery.targets) < MIN_TOKENS_TO_JUDGE]
    few = np.select(has_few, [FEW_POSTS.format(MIN_POSTS_TO_JUDGE), FEW_WORDS], "")
    problems = ["; ".join(filter(None, pair)) for pair in zip(gallery.problems, few)]
    return pd.DataFrame(
        {
            "list": letter,
            "account": gallery.names,
            "posts": posts,
            "language": gallery.languages,
            "problem": problems,
            "nobody": nobody.reindex(gallery.names).to_numpy(),
        }
    )


def _with_states(pairs, accounts, decisions, costs):
    """Add state, reason, and what was said about a pair; sort the pairs by state, then as likely.

    ``accounts`` are the tables of the accounts of both sides. Pairs of the highest possible
    probability are told apart by their scores.
    """
    said = decisions[[*SIDES, "decision", "note"]]
    reverse = said.rename(columns=dict(zip(SIDES, SIDES[::-1])))
    said = pd.concat([said, reverse]).drop_duplicates(SIDES, keep="last")
    frame = pairs.merge(said, "left", SIDES).fillna({"decision": "", "note": ""})
    reasons = []
    for side, of_list in zip(SIDES, accounts, strict=True):
        problem = frame[side].map(of_list.set_index("account").problem).fillna("")
        reasons.append(problem.where(problem == "", frame[side] + ": " + problem))
    frame["reason"] = ["; ".join(filter(None, pair)) for pair in zip(*reasons)]
    is_state = [
        frame.reason != "",
        frame.probability >= costs.min_probability,
        frame.probability >= MIN_LIKELY,
    ]
    frame["state"] = np.select(is_state, [UNJUDGED, LINKED, LIKELY], NOT_LINKED)
    frame["order"] = frame.state.map(STATES.index)
    keys = ["order", "probability", "score", *SIDES]
    ascending = [True, False, False, True, True]
    return frame.sort_values(keys, ascending=ascending, ignore_index=True)[PAIR_COLUMNS]


def _answer_of_two(lists, encoder, question, said):
    """Answer :func:`answer_question` about two lists."""
    listed, unknown = said
    sizes = [
        (len(validation.able_accounts(of_list)), len(of_list.store.tokens)) for of_list in lists
    ]
    chosen = sizes.index(max(sizes))
    costs = question.costs()
    choice = validation.choose_calibration(lists[chosen], encoder, costs, question.seed)
    galleries = galleries_of_two(choice.encoder, lists)
    names = [gallery.names for gallery in galleries]
    everybody = {*names[0], *names[1]}
    queries = list(decided.as_listed(question.accounts or names[0], everybody))
    for given, name in zip(question.accounts, queries):
        if name not in everybody:
            raise ValueError(f"{given} is in neither list, or is set aside")

    known = listed[listed.decision == decided.SAME]
    stays = [
        (gallery.problems == "") & ~np.isin(gallery.names, known[side])
        for gallery, side in zip(galleries, SIDES, strict=True)
    ]
    if not all(of_list.any() for of_list in stays):
        raise ValueError(
            "all accounts of a list have known partners or cannot be judged: nobody is left to "
            "match"
        )
    different = listed[listed.decision == decided.DIFFERENT]
    pairs, probability, overlap, highest = _pairs_of_two(
        galleries, stays, different, question.overlap
    )
    nobody = [np.maximum(1 - probability.sum(axis), 0) for axis in (1, 0)]
    accounts = [
        _accounts(gallery, letter, pd.Series(chance, gallery.names[of_list]))
        for gallery, letter, chance, of_list in zip(galleries, LISTS, nobody, stays, strict=True)
    ]
    return Answer(
        lists,
        galleries,
        queries,
        overlap,
        costs,
        highest,
        _with_states(pairs, accounts, listed, costs),
        pd.concat(accounts, ignore_index=True),
        unknown,
        choice,
        LISTS[chosen],
        is_share_given=question.overlap > 0,
    )


def _pairs_of_two(galleries, stays, different, overlap):
    """Match the accounts of two lists that stay.

    Returns the likely pairs, all probabilities, the overlap, and the highest probability that the
    fit supports: a likelihood ratio cannot be larger than the comparisons that it rests on.
    """
    rows = [gallery.columns(different[side]) for gallery, side in zip(galleries, SIDES)]
    log_odds = log_odds_of_pairs(galleries, np.stack(rows, 1)).tocsr()
    log_odds = log_odds[stays[0]][:, stays[1]].tocoo()
    probability, overlap = match_pairs(log_odds, overlap)
    longer = max(log_odds.shape)
    lowest_llr, highest_llr = galleries[0].use.bounds(max(longer, 2))
    highest = float(expit(logit(overlap / longer) + highest_llr))
    rows = [np.flatnonzero(of_list)[row] for of_list, row in zip(stays, probability.coords)]
    llr = log_odds.data + np.log([len(gallery) for gallery in galleries]).mean()
    pairs = _frame(
        galleries,
        *rows,
        probability=np.minimum(probability.data, highest),
        llr=llr.clip(lowest_llr, highest_llr),
        score=log_odds.data,
    )
    return pairs[pairs.probability >= LEAST_PROBABILITY], probability, overlap, highest
