"""Answer which accounts of one list, or of two, may be one person's: every pair once.

In one list a person may have any number of accounts. Every account is asked about in the list, see
:meth:`helpers.accounts.gallery.AccountGallery.compare`, and a pair has the lower probability of
both directions. In two lists a person has one account each at most, so all pairs are decided at
once (:mod:`helpers.evaluation.matching`), by the mean log-odds of both directions.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from pydantic import Field
from scipy import sparse
from scipy.special import expit, logit

from ..core.parameters import Config
from ..core.paths import PROGRAM
from ..evaluation.detection import DetectionCosts
from ..evaluation.matching import as_pairs
from ..evaluation.models import Embeddings
from ..evaluation.scores import as_rows
from . import decisions as decided
from . import validation
from .encoder import ENOUGH
from .gallery import LINK_COSTS, NOT_COMPARED, UNJUDGED, AccountGallery
from .reading import FULL_GALLERY, OwnPosts
from .samples import MIN_POSTS, passage_hashes, without_passages
from .scoring import are_equal, likeliest, match_pairs, near_pairs, posterior
from .unjudged import (
    BOTH_LISTS,
    MIN_POSTS_TO_JUDGE,
    MIN_TOKENS_TO_JUDGE,
    set_aside_rows,
    token_counts,
)

LISTS = ("A", "B")
NEAREST = 100  # pairs of each account that are scored if a list has more than FULL_GALLERY accounts
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
        stated = {"prior": prior or self.prior or LINK_COSTS.prior}
        return LINK_COSTS.model_copy(update=stated | {"false_accept": self.false_link})


@dataclass(frozen=True, eq=False)
class Answer:
    """Which accounts may be one person's.

    Attributes
    ----------
    posts : what was read of one list, or of two; accounts of one list that are known to be one
        person's are joined
    galleries : the accounts of each list
    queries : names of the accounts that were asked about, by default those of the first list
    costs : costs of errors. Their prior, which was given or estimated, is the share of the accounts
        that have a second one; of two lists that of the shorter one that has a partner
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
    errors : links among halves of the accounts, see
        :func:`helpers.accounts.validation.link_errors`; None where there were too few
    joint_names : name of an account that was joined -> name of the joint account
    same_texts : undecided pairs of :func:`helpers.accounts.decisions.find_same_texts`
    """

    posts: list[OwnPosts]
    galleries: list[AccountGallery]
    queries: list[str]
    costs: DetectionCosts
    highest_probability: float
    pairs: pd.DataFrame
    accounts: pd.DataFrame
    unknown: list[str]
    choice: validation.CalibrationChoice
    fitted_list: str
    errors: dict | None
    is_share_given: bool
    joint_names: dict[str, str] = field(default_factory=dict)
    same_texts: pd.DataFrame = field(default_factory=pd.DataFrame)

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


def match(
    posts: OwnPosts,
    others: OwnPosts | None = None,
    question: Question = Question(),
    decisions: pd.DataFrame | None = None,
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
    others : OwnPosts, optional
        the accounts of a second list
    question : Question
        what is asked
    decisions : DataFrame, optional
        result of :func:`helpers.accounts.decisions.read_decisions`

    Raises
    ------
    ValueError
        An account that is asked about is not there, too few are left, decisions contradict each
        other, or only one of two lists has times.
    TypeError
        Posts are not those of :func:`helpers.accounts.reading.read_posts`.
    """
    for of_list in (posts, others):
        if not isinstance(of_list, OwnPosts | None):
            raise TypeError(f"match takes what read_posts returns, not a {type(of_list).__name__}")
    lists = [posts]
    if others is not None:
        lists = comparable_lists(posts, others)
    set_aside = pd.concat([of_list.set_aside.account for of_list in lists])
    names = [of_list.names for of_list in lists]
    listed, unknown = decided.of_lists(decisions, names, set_aside)
    sizes = [
        (len(validation.able_accounts(of_list)), len(of_list.store.tokens)) for of_list in lists
    ]
    chosen = sizes.index(max(sizes))
    choice = validation.choose_calibration(lists[chosen], question.costs(), question.seed)
    lists = [replace(of_list, encoder=choice.encoder) for of_list in lists]
    together = None
    if others is None:
        findings, together = _of_one_list(lists[0], question, listed)
    else:
        findings = _findings_of_two(lists, question, listed)
    errors = validation.link_errors(choice, findings["costs"], others is not None, together)
    is_share_given = max(question.prior, question.overlap) > 0
    return Answer(
        **findings,
        unknown=unknown,
        choice=choice,
        fitted_list=LISTS[chosen],
        errors=errors,
        is_share_given=is_share_given,
    )


def _of_one_list(posts, question, listed):
    """Return what :func:`match` finds in one list, and all pairs of the list that are one person's.

    Where accounts are named, all others are asked about too, if the list is not long: they tell the
    prior, and which accounts are linked with each other.
    """
    of_all = None
    if question.accounts and len(posts.names) <= FULL_GALLERY:
        of_all = _findings_of_one(posts, question.model_copy(update={"accounts": ()}), listed)
        question = question.model_copy(update={"prior": of_all["costs"].prior})
    findings = _findings_of_one(posts, question, listed)
    linked = (of_all or findings)["pairs"].query("state == @LINKED")
    return findings, pd.concat([linked, listed[listed.decision == decided.SAME]])[SIDES]


def _findings_of_one(posts, question, listed):
    """Return what :func:`match` finds in one list, by the names of an :class:`Answer`."""
    named = decided.as_listed(question.accounts, posts.names)
    posts, joint_names = decided.merge_accounts(posts, listed)
    named = [joint_names.get(name, given) for name, given in zip(named, question.accounts)]
    queries = decided.choose_queries(posts, named)
    listed = listed.assign(**{side: listed[side].replace(joint_names) for side in SIDES})
    apart = listed[listed.decision == decided.DIFFERENT]
    gallery = posts.gallery_for(queries, question.seed)
    gallery.apart = apart[SIDES].to_numpy().tolist()

    samples = gallery.accounts(queries)
    scores, llr, problems = gallery.compare(samples, queries)
    prior = question.prior or gallery.estimate_prior(samples, queries)
    costs = question.costs(prior)
    probability, nobody = posterior(llr, prior, gallery.beyond)
    llr = gallery.of_judged(llr, problems)
    best = likeliest(scores, llr, question.k)
    pairs = _pairs_of_one(gallery, queries, best, (scores, llr, probability))

    llr[problems != ""] = np.nan
    lowest, _ = gallery.use.bounds(gallery.reference_count)
    equal = np.array(queries)[are_equal(llr, lowest)]
    reverse = listed.rename(columns=dict(zip(SIDES, SIDES[::-1])))
    nobody = pd.Series(np.where(problems == "", nobody, np.nan), queries)
    accounts = _accounts_of_one(gallery, nobody, pairs, equal)
    return {
        "posts": [posts],
        "galleries": [gallery],
        "queries": queries,
        "costs": costs,
        "highest_probability": gallery.highest_probability(costs),
        "pairs": _with_states(pairs, [accounts, accounts], pd.concat([listed, reverse]), costs),
        "accounts": accounts,
        "joint_names": joint_names,
    }


def _pairs_of_one(gallery, queries, best, compared):
    """Return the pairs of queries with their ``best`` (Q, k) targets, each once.

    ``compared`` are scores, log-likelihood ratios and probabilities (Q, T). Account a is the one
    that was asked about, or the first one by name.
    """
    scores, llr, probability = compared
    own_column = gallery.columns(queries)
    given = np.stack([probability, llr])
    back = np.full_like(given, np.inf)
    back[:, :, own_column] = given[:, :, own_column].transpose(0, 2, 1)
    probability, llr = np.where(back[0] < probability, back, given)
    is_best = np.zeros(llr.shape, bool)
    np.put_along_axis(is_best, best, True, axis=1)
    cell = np.nonzero(is_best & (llr != NOT_COMPARED))
    sides = np.stack([own_column[cell[0]], cell[1]])
    is_second = np.isin(cell[1], own_column) & (gallery.names[sides[1]] < gallery.names[sides[0]])
    sides = np.where(is_second, sides[::-1], sides)
    pairs = _frame((gallery, gallery), *sides, probability[cell], llr[cell], scores[cell])
    is_unjudged = pairs[SIDES].isin(gallery.names[gallery.problems != ""])
    pairs.loc[is_unjudged.any(axis=1), ["probability", "llr", "score"]] = np.nan
    return pairs.drop_duplicates(SIDES)


def _frame(galleries, rows_a, rows_b, probability, llr, score):
    """Return pairs of rows of two galleries, with names and numbers of posts."""
    first, second = galleries
    return pd.DataFrame(
        {
            "account_a": first.names[rows_a],
            "account_b": second.names[rows_b],
            "posts_a": first.targets.count[rows_a],
            "posts_b": second.targets.count[rows_b],
            "probability": probability,
            "llr": llr,
            "score": score,
        }
    )


def _accounts_of_one(gallery, nobody, pairs, equal):
    """Return the table of accounts of one list, see :class:`Answer`."""
    accounts = _accounts(gallery, LISTS[0], nobody)
    is_equal = accounts.account.isin(equal) & (accounts.problem == "")
    accounts.loc[is_equal, "problem"] = EQUALLY_LIKELY
    likely = pairs[pairs.probability >= LEAST_PROBABILITY]
    names = list(dict.fromkeys([*nobody.index, *likely.account_a, *likely.account_b]))
    return accounts.iloc[gallery.columns(names)].reset_index(drop=True)


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
    said = decisions[[*SIDES, "decision", "note"]].drop_duplicates(SIDES, keep="last")
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


def _findings_of_two(lists, question, listed):
    """Return what :func:`match` finds in two lists, by the names of an :class:`Answer`."""
    embeddings = Embeddings()  # shared, so that no vectors are made twice
    galleries = [of_list.gallery(embeddings=embeddings) for of_list in lists]
    names = [gallery.names for gallery in galleries]
    everybody = {*names[0], *names[1]}
    queries = list(decided.as_listed(question.accounts or names[0], everybody))
    for given, name in zip(question.accounts, queries):
        if name not in everybody:
            raise ValueError(f"{given} is in neither list, or is set aside")

    known = listed[listed.decision == decided.SAME]
    stays = []
    for gallery, side in zip(galleries, SIDES, strict=True):
        is_free = ~np.isin(gallery.names, known[side])
        stays.append(np.flatnonzero((gallery.problems == "") & is_free))
    if not all(map(len, stays)):
        raise ValueError(
            "all accounts of a list have known partners or cannot be judged: nobody is left to "
            "match"
        )
    different = listed[listed.decision == decided.DIFFERENT]
    log_odds = log_odds_of_pairs(galleries, different[SIDES].to_numpy().T).tocsr()
    log_odds = log_odds[stays[0]][:, stays[1]].tocoo()
    probability, overlap = match_pairs(log_odds, question.overlap)
    pairs, highest = _pairs_of_two(galleries, stays, log_odds, probability, overlap)
    accounts = []
    for axis, (letter, gallery, rows) in enumerate(zip(LISTS, galleries, stays)):
        nobody = np.maximum(1 - probability.sum(1 - axis), 0)
        accounts.append(_accounts(gallery, letter, pd.Series(nobody, gallery.names[rows])))
    costs = question.costs(overlap)
    return {
        "posts": lists,
        "galleries": galleries,
        "queries": queries,
        "costs": costs,
        "highest_probability": highest,
        "pairs": _with_states(pairs, accounts, listed, costs),
        "accounts": pd.concat(accounts, ignore_index=True),
    }


def _pairs_of_two(galleries, stays, log_odds, probability, overlap):
    """Return the likely pairs of the accounts that stay, and the highest probability of any.

    A likelihood ratio cannot be larger than the comparisons that it rests on.
    """
    longer = max(log_odds.shape)
    lowest_llr, highest_llr = galleries[0].use.bounds(max(longer, 2))
    highest = float(expit(logit(overlap / longer) + highest_llr))
    llr = log_odds.data + np.log([len(gallery) for gallery in galleries]).mean()
    pairs = _frame(
        galleries,
        *[rows[row] for rows, row in zip(stays, probability.coords)],
        np.minimum(probability.data, highest),
        llr.clip(lowest_llr, highest_llr),
        log_odds.data,
    )
    return pairs[pairs.probability >= LEAST_PROBABILITY], highest


def log_odds_of_pairs(galleries: list[AccountGallery], different) -> sparse.coo_array:
    """Return the log-odds of pairs that may be partners, the mean of both directions.

    These are all pairs, or of larger lists the NEAREST of each account.

    Parameters
    ----------
    galleries : list of AccountGallery
        of two lists
    different : pair of lists of str
        names of the accounts of both lists that are known to be two people's
    """
    first, second = galleries
    shape = (len(first), len(second))
    rows = [gallery.columns(names) for gallery, names in zip(galleries, different)]
    if max(shape) <= FULL_GALLERY:
        log_odds = (second.log_odds(first.targets) + first.log_odds(second.targets).T) / 2
        log_odds[tuple(rows)] = -np.inf
        return as_pairs(log_odds)
    vectors = []
    for gallery in galleries:
        made = gallery.encoder.vectors(gallery.targets, gallery.hours, gallery.embeddings)
        vectors.append(as_rows(made))
    pairs = near_pairs(*vectors, NEAREST)
    place = [shape[1], 1]
    pairs = pairs[~np.isin(pairs @ place, np.stack(rows, 1) @ place)]
    forward = second.log_odds(first.targets, pairs)
    back = first.log_odds(second.targets, pairs[:, ::-1])
    return sparse.coo_array(((forward + back) / 2, pairs.T), shape)


def comparable_lists(a: OwnPosts, b: OwnPosts) -> list[OwnPosts]:
    """Return two lists without what stands in both, whose hours count where both have them.

    Passages that stand word for word in both lists are removed; accounts that have too few posts
    left are set aside.

    Parameters
    ----------
    a, b : OwnPosts
        posts of both lists

    Raises
    ------
    ValueError
        Only one of the lists has times, or a list has fewer than ENOUGH accounts.
    """
    if (a.card["columns"]["time"] is None) != (b.card["columns"]["time"] is None):
        raise ValueError(
            "only one of the files has times: name a time column of both, or of neither"
        )
    kinds = a.encoder.kinds
    lists = []
    for letter, posts, other_posts in zip(LISTS, (a, b), (b, a)):
        store, _ = without_passages(posts.store, kinds, passage_hashes(other_posts.store, kinds))
        count = store.posts_per_author()
        able = (count >= MIN_POSTS).sum()
        if able < ENOUGH:
            raise ValueError(
                f"list {letter} has {able} accounts with enough posts that do not stand "
                f"word for word in the other list, too. Lists are matched from {ENOUGH} accounts "
                "on, since a score counts by how far it stands out among those of other accounts: "
                f"put both lists into one file, and ask `{PROGRAM} mine`"
            )
        is_new = (count < MIN_POSTS) & (posts.store.posts_per_author() >= MIN_POSTS)
        too_few = set_aside_rows(posts.names[is_new], count[is_new], BOTH_LISTS)
        set_aside = pd.concat([posts.set_aside, too_few], ignore_index=True)
        card = posts.card | {"posts_in_both": posts.store.posts - store.posts}
        hours = a.hours and b.hours
        lists.append(replace(posts, store=store, set_aside=set_aside, card=card, hours=hours))
    return lists
