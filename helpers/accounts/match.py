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

from ..core.parameters import Config
from ..evaluation.detection import DetectionCosts
from . import decisions as decided
from . import two_lists, validation
from .encoder import ENOUGH, AuthorEncoder
from .gallery import LINK_COSTS, NOT_COMPARED, UNJUDGED, AccountGallery, likeliest, posterior
from .reading import OwnPosts
from .two_lists import LISTS
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
LEAST_PROBABILITY = 0.01  # of a pair of two lists that is reported
MIN_LIKELY = 0.5  # probability of a pair that is called likely
MIN_POSTS_TO_JUDGE = 8  # calibration saw halves of so many posts, and more
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
    miss, false_link : float
        costs of overlooking a pair, and of linking two people
    seed : int
        of what is drawn at random
    """

    accounts: tuple[str, ...] = ()
    k: int = Field(5, ge=1, le=1000)
    prior: float = Field(0.0, ge=0, lt=1)
    overlap: float = Field(0.0, ge=0, le=1)
    miss: float = Field(LINK_COSTS.miss, gt=0, le=1e9)
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
        return DetectionCosts(prior=prior, miss=self.miss, false_accept=self.false_link)


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
    supported_by : number of accounts that the map from scores to probabilities was fitted on
    pairs : PAIR_COLUMNS, each pair once, linked ones first, then by probability. Of one list they
        are pairs of which one account is among the k best candidates of the other, with the lower
        ``probability`` and ``llr`` of both directions, as far as both accounts were asked about; of
        two lists all pairs with LEAST_PROBABILITY. ``highest`` says that the probability is as high
        as the fit can support; ``reason`` maps accounts that cannot be judged to why; ``decision``
        and ``note`` are what a person said about the pair
    accounts : columns ``list`` (one of LISTS), ``account``, ``posts``, ``language``, ``problem``,
        ``nobody``, of the accounts that were asked about, or that stand in a pair with
        LEAST_PROBABILITY. ``problem`` says why an account cannot be judged; ``nobody`` is the
        probability that no other account is this person's, and NaN where it was not asked
    decisions : decisions about accounts of the lists, named as these name them
    unknown : accounts of decisions that no list has, or that are set aside
    unheeded : number of decisions about other accounts than a pair of these lists
    fitted_list : which of two lists the map was fitted on; "" for a map that ships
    fitted : number of accounts of the user that it was fitted on
    choice : of one list, the calibration that was used, and how it was judged
    errors : links among halves of the user's accounts; None where there were too few
    compared : the encoder beside the best TF-IDF on these halves, see
        :func:`helpers.accounts.validation.compare_with_tfidf`
    joint_names : name of an account that was joined -> name of the joint account
    same_texts : pairs that posted the same texts and are not decided, those with most texts first,
        see :func:`helpers.accounts.decisions.find_same_texts`
    shown_names : pseudonym -> name to show; empty where accounts are shown by their pseudonyms
    """

    posts: list[OwnPosts]
    galleries: list[AccountGallery]
    queries: list[str]
    prior: float
    costs: DetectionCosts
    highest_probability: float
    supported_by: int
    pairs: pd.DataFrame
    accounts: pd.DataFrame
    decisions: pd.DataFrame
    unknown: list[str]
    unheeded: int
    fitted_list: str = ""
    fitted: int = 0
    choice: validation.CalibrationChoice | None = None
    errors: validation.LinkErrors | None = None
    compared: pd.DataFrame = field(default_factory=pd.DataFrame)
    joint_names: dict[str, str] = field(default_factory=dict)
    same_texts: pd.DataFrame = field(default_factory=pd.DataFrame)
    shown_names: dict[str, str] = field(default_factory=dict)

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

    @property
    def new_pairs(self) -> pd.DataFrame:
        """The pairs that nobody decided to be one person's."""
        return self.pairs[self.pairs.decision != decided.SAME]


def answer_question(
    posts: OwnPosts,
    encoder: AuthorEncoder,
    question: Question = Question(),
    decisions: pd.DataFrame | None = None,
    second_posts: OwnPosts | None = None,
) -> Answer:
    """Compare the accounts of a list with each other, or with those of another list.

    A pair that was decided as two people's is not compared. In one list, accounts of a pair that
    was decided as the same are joined, and the calibration is fitted on halves of the accounts
    where these are enough, see :func:`helpers.accounts.validation.choose_calibration`. In two
    lists, accounts of a known pair are nobody else's partners.

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
        the accounts of a second list; both are then as one of
        :func:`helpers.accounts.two_lists.comparable_lists`

    Raises
    ------
    ValueError
        An account that is asked about is not there, too few are left, decisions contradict each
        other, or only one of two lists has times.
    """
    if decisions is None:
        decisions = pd.DataFrame(columns=decided.COLUMNS)
    if second_posts is not None:
        return _answer_of_two([posts, second_posts], encoder, question, decisions)
    return _answer_of_one(posts, encoder, question, decisions)


def _answer_of_one(posts, encoder, question, decisions):
    """Answer :func:`answer_question` about one list."""
    decided.check_chains(decisions)
    listed = decided.listed_decisions(decisions, posts.names, posts.names)
    choice = validation.choose_calibration(posts, encoder, question.costs(), question.seed)
    names = decided.as_listed(question.accounts, posts.names)
    whole = posts
    posts, joint_names = decided.merge_accounts(whole, listed)
    queried_names = [joint_names.get(name, given) for name, given in zip(names, question.accounts)]
    queries = decided.choose_queries(posts, queried_names)
    gallery = posts.gallery_for(choice.encoder, posts.samples(queries), question.seed)
    listed = listed.assign(
        **{column: listed[column].replace(joint_names) for column in ("account_a", "account_b")}
    )
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
    problem_of = accounts.set_index("account").problem.to_dict()
    reverse = listed.rename(columns={"account_a": "account_b", "account_b": "account_a"})
    errors, compared = _measured_on_halves(choice, costs, gallery.use, question.seed)
    return Answer(
        [posts],
        [gallery],
        queries,
        prior,
        costs,
        gallery.highest_probability(costs),
        gallery.use.accounts,
        _with_states(pairs, problem_of, pd.concat([listed, reverse]), costs),
        accounts,
        listed,
        decided.unknown_accounts(decisions, whole.names),
        len(decisions) - len(listed),
        fitted=choice.fitted,
        choice=choice,
        errors=errors,
        compared=compared,
        joint_names=joint_names,
    )


def _measured_on_halves(choice, costs, use, seed):
    """Return link errors among halves of accounts, and the comparison with the best TF-IDF.

    ``use`` has the bounds of the answer's likelihood ratios, which hold for the halves as well.
    """
    if choice.gallery is None:
        return None, pd.DataFrame()
    errors = None
    if len(choice.gallery) >= ENOUGH:
        *_, log_ratio = choice.log_ratios.values()
        llr = log_ratio.clip(*use.bounds(len(choice.gallery)))
        errors = validation.count_link_errors(llr, costs)
    return errors, validation.compare_with_tfidf(choice.gallery, choice.older, seed)


def _pairs_of_one(gallery, queries, best, compared):
    """Return the pairs of queries with their ``best`` (Q, k) targets, each once.

    ``compared`` are scores, log-likelihood ratios and probabilities (Q, T). Account a is the one
    that was asked about, or the first one by name.
    """
    scores, llr, probability = compared
    own_column = gallery.columns(queries)
    row_of_column = np.full(len(gallery), -1)
    row_of_column[own_column] = np.arange(len(queries))
    row = np.repeat(np.arange(len(queries)), best.shape[1])
    column = best.ravel()
    is_compared = llr[row, column] != NOT_COMPARED
    row, column = row[is_compared], column[is_compared]
    own = own_column[row]

    back_row = row_of_column[column]
    is_asked = back_row >= 0
    back = np.where(is_asked, probability[back_row, own], np.inf)
    forward = probability[row, column]
    lower_llr = np.where(back < forward, llr[back_row, own], llr[row, column])
    is_second = is_asked & (gallery.names[column] < gallery.names[own])
    pairs = _frame(
        (gallery, gallery),
        np.where(is_second, column, own),
        np.where(is_second, own, column),
        probability=np.minimum(forward, back),
        llr=lower_llr,
        score=scores[row, column],
    )
    _, highest_llr = gallery.use.bounds(gallery.reference_count)
    pairs["highest"] = pairs.llr >= highest_llr - EQUAL_LLR
    is_unjudged = pairs[["account_a", "account_b"]].isin(gallery.names[gallery.problems != ""])
    pairs.loc[is_unjudged.any(axis=1), ["probability", "llr", "score"]] = np.nan
    return pairs.drop_duplicates(["account_a", "account_b"])


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
    tokens = token_counts(gallery.accounts(names))
    problems = []
    for account, words in zip(frame.itertuples(), tokens, strict=True):
        of_account = [account.problem] if account.problem else []
        if account.posts < MIN_POSTS_TO_JUDGE:
            of_account.append(f"only {account.posts} {FEW_POSTS} {MIN_POSTS_TO_JUDGE} are needed")
        elif words < MIN_TOKENS_TO_JUDGE:
            of_account.append(FEW_WORDS)
        elif account.account in equal:
            of_account.append(EQUALLY_LIKELY)
        problems.append("; ".join(of_account))
    return frame.assign(problem=problems).reset_index(drop=True)


def _accounts(gallery, letter, nobody):
    """Return the table of all accounts of a gallery, see :class:`Answer`."""
    return pd.DataFrame(
        {
            "list": letter,
            "account": gallery.names,
            "posts": gallery.targets.count,
            "language": gallery.languages,
            "problem": gallery.problems,
            "nobody": nobody.reindex(gallery.names).to_numpy(),
        }
    )


def _with_states(pairs, problem_of, decisions, costs):
    """Add state, reason, and what was said about a pair; sort the pairs by state, then as likely.

    Pairs of the highest possible probability are told apart by their scores.
    """
    sides = ["account_a", "account_b"]
    said = decisions.drop_duplicates(sides, keep="last")[[*sides, "decision", "note"]]
    frame = pairs.merge(said, "left", sides).fillna({"decision": "", "note": ""})
    reasons = []
    for pair in zip(frame.account_a, frame.account_b):
        reasons.append({name: problem_of[name] for name in pair if problem_of.get(name)})
    frame["reason"] = pd.Series(reasons, frame.index, dtype=object)
    is_state = [
        frame.reason.astype(bool),
        frame.probability >= costs.min_probability,
        frame.probability >= MIN_LIKELY,
    ]
    frame["state"] = np.select(is_state, [UNJUDGED, LINKED, LIKELY], NOT_LINKED)
    frame["order"] = frame.state.map(STATES.index)
    keys = ["order", "probability", "score", "account_a", "account_b"]
    ascending = [True, False, False, True, True]
    return frame.sort_values(keys, ascending=ascending, ignore_index=True)[PAIR_COLUMNS]


def _answer_of_two(lists, encoder, question, decisions):
    """Answer :func:`answer_question` about two lists."""
    encoder, fitted_list, fitted = two_lists.calibrated_on_list(encoder, lists)
    galleries = two_lists.galleries_of_two(encoder, lists)
    names = [gallery.names for gallery in galleries]
    everybody = {*names[0], *names[1]}
    queries = decided.as_listed(question.accounts, everybody) or list(names[0])
    for given, name in zip(question.accounts, queries):
        if name not in everybody:
            raise ValueError(f"{given} is in neither list, or is set aside")
    listed = decided.listed_decisions(decisions, *names)
    stays = []
    for column, gallery in zip(("account_a", "account_b"), galleries, strict=True):
        known = listed[column][listed.decision == decided.SAME]
        stays.append((gallery.problems == "") & ~np.isin(gallery.names, known))
    if not all(of_list.any() for of_list in stays):
        raise ValueError(
            "all accounts of a list have known partners or cannot be judged: nobody is left to "
            "match"
        )

    config = galleries[0].use.match
    different = _rows_of(listed, decided.DIFFERENT, galleries)
    scores = two_lists.list_scores(galleries, different).tocsr()
    scores = scores[stays[0]][:, stays[1]].tocoo()
    probability, overlap = two_lists.match_pairs(
        scores, config, question.overlap, two_lists.is_in_order(*lists)
    )
    highest = config.highest_probability(overlap, max(scores.shape))
    supported = np.minimum(probability.data, highest)
    is_likely = supported >= LEAST_PROBABILITY
    rows = [np.flatnonzero(on_side)[row[is_likely]] for on_side, row in zip(stays, scores.coords)]
    likely = supported[is_likely]
    pairs = _frame(
        galleries,
        *rows,
        probability=likely,
        llr=config.llr(likely, overlap, max(scores.shape)),
        score=scores.data[is_likely],
        highest=likely >= highest,
    )
    known = _rows_of(listed, decided.SAME, galleries)
    known_pairs = _frame(galleries, *known.T, probability=1.0, llr=np.nan, highest=False)
    nobody = [np.maximum(1 - probability.sum(axis), 0) for axis in (1, 0)]
    accounts = [
        _accounts(gallery, letter, pd.Series(chance, gallery.names[of_list]))
        for gallery, letter, chance, of_list in zip(galleries, LISTS, nobody, stays, strict=True)
    ]
    costs = question.costs()
    accounts = pd.concat(accounts, ignore_index=True)
    pairs = pd.concat([pairs, known_pairs], ignore_index=True)
    return Answer(
        lists,
        galleries,
        queries,
        overlap,
        costs,
        highest,
        config.accounts or fitted,
        _with_states(pairs, {}, listed, costs),
        accounts,
        listed,
        decided.unknown_accounts(decisions, everybody),
        len(decisions) - len(listed),
        fitted_list,
        fitted,
    )


def _rows_of(listed, decision, galleries):
    """Return the rows (K, 2) of the pairs of which a decision was made in both galleries."""
    of_decision = listed[listed.decision == decision]
    sides = [of_decision.account_a, of_decision.account_b]
    columns = [gallery.columns(side) for gallery, side in zip(galleries, sides, strict=True)]
    return np.unique(np.stack(columns, 1), axis=0)
