"""Measure which share of a corpus' authors could be linked again by style to posts known elsewhere.

Each author's posts are dealt to two sides: the *known* posts, which an adversary has under the
author's name, and the *released* ones of the corpus. The adversary looks for each author's released
posts among those of all authors. Two systems do so, the encoder and a TF-IDF that anybody can fit,
in two ways: each author alone, and both lists matched together. The risk is the highest answer.

**Sides in time.** An author's older half of posts is known and the newer half is released. Each
author is cut at the middle of their own posts, not at one date for all: nobody could be judged who
wrote before that date only, or after it only. The first posts of the older half and the last ones
of the newer half are taken, as far apart as possible, as by
:func:`helpers.evaluation.ranking.ranking_trials`. Released posts within PAUSE_SECONDS of the last
known one are left out: who goes on with a conversation is found by what it is about.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from ..core.names import short_name
from ..core.progress import progress_bar
from ..evaluation.bootstrap import bootstrap_means
from ..evaluation.candidates import all_candidates, best_candidates
from ..evaluation.drawn_lists import ALONE, MATCHED
from ..evaluation.lists import (
    PRECISIONS,
    Answers,
    best_answers,
    cumulative_answers,
    join_answers,
    list_metrics,
)
from ..evaluation.match_fitting import draw_lists
from ..evaluation.matching import MAX_OVERLAP, MatchConfig, sinkhorn
from ..evaluation.models import Model, as_model
from ..evaluation.ranking import best_ranks
from ..tokens.batch import Samples
from ..tokens.store import TokenStore, subset
from .encoder import ENOUGH, AuthorEncoder
from .gallery import AccountGallery
from .linkage_changes import (
    FEW_POSTS,
    first_words,
    mask_rare_words,
    same_authors,
    with_changed_texts,
)
from .list_matching import NEAREST
from .reading import UNREADABLE_SHARE, OwnPosts
from .samples import (
    MAX_TOKENS,
    MIN_POSTS,
    MOST_POSTS,
    distant_halves,
    last_posts,
)
from .validation import subset_of_accounts

LEAST_SIDE_POSTS = MIN_POSTS // 2
# posts a side of the main answer: the first of these that ENOUGH authors have
SIDE_POSTS = (16, 8, 4, LEAST_SIDE_POSTS)
PAUSE_SECONDS = 24 * 60 * 60  # between the known and the released posts of an author
MAX_AUTHORS = 5000  # of more authors so many are drawn at random
# up to so many authors all pairs are matched; of more, the NEAREST of each author
MATCH_ALL = 1000
BASELINE = short_name("TF-IDF subword", norm="AS-norm")
AUTHOR_POSTS = (4, 8, 16, 32, 64)  # least number of posts of the authors of each group
KNOWN_SHARE = 0.5  # share of the known authors who are in the corpus, in the part OPEN
OPEN_LISTS = 8  # pairs of lists that are drawn for the part OPEN
RISK = "A@P90"  # the metric by which the highest answer is chosen
ABOUT = "part condition known_posts released_posts authors system way".split()
COLUMNS = [*ABOUT, "metric", "value", "low", "high"]

# what is measured, the values of the column "part"
CORPUS = "all posts"
GROWTH = "posts a side"
OPEN = "half of the known authors"  # are in the corpus
CHANGE = "change"
# the conditions of the part CHANGE
UNCLEANED = "not cleaned"
MASKED = "rare words masked"
WITHOUT_HOURS = "hours removed"
SHORTENED = "texts shortened"
FEW_RELEASED = "few posts released"
MOST_CHANGES = 5

ListAnswers = dict[tuple[str, str], Answers]  # (system, way) -> answers


@dataclass(frozen=True, eq=False)
class Sides:
    """The posts of N authors that are known elsewhere, and those that a corpus releases.

    Attributes
    ----------
    known, released : N samples, in the same order of authors
    hours : whether the hours of posts are known on both sides
    part, condition : what is measured with them
    """

    known: Samples
    released: Samples
    hours: bool
    part: str
    condition: str = ""

    def cut(self, posts: int) -> "Sides":
        """Return the first known and the last released posts of each author, so many at most."""
        known = replace(self.known, count=np.minimum(self.known.count, posts))
        return replace(self, known=known, released=last_posts(self.released, posts))

    def draw(self, authors: int, rng: np.random.Generator) -> "Sides":
        """Return so many of the authors at most, chosen at random.

        Parameters
        ----------
        authors : number of authors
        rng : chooses them
        """
        rows = np.sort(rng.permutation(len(self.known))[:authors])
        return replace(self, known=self.known[rows], released=self.released[rows])

    def about(self) -> dict:
        """Return what the columns of ABOUT say of these sides."""
        return {
            "part": self.part,
            "condition": self.condition,
            "known_posts": int(self.known.count.max()),
            "released_posts": int(self.released.count.max()),
            "authors": len(self.known),
        }


@dataclass(frozen=True, eq=False)
class LinkageRisk:
    """How many authors of a corpus could be linked again.

    Attributes
    ----------
    metrics : COLUMNS, a row for each metric of each answer
    highest : a row for each part and condition, the RISK of its highest answer: ABOUT, ``value``,
        ``low``, ``high``, ``ranked_first``, the R@1, and ``linked``, the number of authors, which
        the part OPEN lacks; in the part CHANGE also ``difference``, ``difference_low`` and
        ``difference_high``, paired, to the main answer
    by_author_posts : ``least_posts``, ``most_posts``, ``authors``, ``linked``, ``value``, ``low``
        and ``high`` of the highest answer of the part CORPUS, by number of posts; the last group
        has no ``most_posts``
    counts : numbers of authors that were measured, and of those left out, by reason
    side_posts : posts a side of the main answer
    """

    metrics: pd.DataFrame
    highest: pd.DataFrame
    by_author_posts: pd.DataFrame
    counts: dict[str, int]
    side_posts: int

    @property
    def main(self) -> pd.Series:
        """The row of ``highest`` that is the main answer."""
        is_main = (self.highest.part == GROWTH) & (self.highest.known_posts == self.side_posts)
        return self.highest[is_main].iloc[0]


def deal_posts(posts: OwnPosts, seed: int = 0) -> OwnPosts:
    """Shuffle the posts of each author, so that the older and newer halves become random ones.

    Parameters
    ----------
    posts : OwnPosts
        of all authors
    seed : int
        seed of the shuffle
    """
    store = posts.store
    author = np.repeat(np.arange(store.authors), store.posts_per_author())
    order = np.lexsort((np.random.default_rng(seed).random(store.posts), author))
    return replace(posts, store=subset(store, order, np.asarray(store.author_offsets)))


def readable_authors(store: TokenStore, kinds: np.ndarray) -> np.ndarray:
    """Tell which authors write in letters that the encoder knows, (authors,) bool.

    Parameters
    ----------
    store : TokenStore
        posts of all authors
    kinds : (vocabulary,)
        result of :func:`helpers.accounts.passages.token_kinds`
    """
    unknown_before = np.append(0, np.cumsum(kinds[store.tokens] == 0))
    ends = store.post_offsets[store.author_offsets]
    return np.diff(unknown_before[ends]) <= UNREADABLE_SHARE * np.diff(ends)


def known_and_released(
    store: TokenStore, min_posts: int, max_posts: int, pause: int = 0
) -> tuple[Samples, Samples]:
    """Return the first and the last posts of each author, of which at most halves, with a pause.

    Parameters
    ----------
    store : TokenStore
        posts of the authors
    min_posts, max_posts : int
        number of posts a side, at least and at most; authors with fewer are left out
    pause : int
        seconds after the last known post within which no post is released; 0 where posts are not in
        the order of time

    Returns
    -------
    The known and the released posts, in the same order of authors
    """
    known, released = distant_halves(store, min_posts, max_posts)
    if not pause:
        return known, released
    earliest = store.time[known.first + known.count - 1] + pause
    end = released.first + released.count
    first = released.first.copy()
    for row, time in enumerate(earliest):
        times = store.time[released.first[row] : end[row]]
        first[row] += np.searchsorted(times, time)
    rows = np.flatnonzero(end - first >= min_posts)
    released = replace(released, first=first, count=end - first)
    return known[rows], released[rows]


def measure_risk(
    posts: OwnPosts,
    encoder: AuthorEncoder,
    name: str = "open-small",
    uncleaned: OwnPosts | None = None,
    pause: int = 0,
    max_authors: int = MAX_AUTHORS,
    seed: int = 0,
) -> LinkageRisk:
    """Measure how many authors could be linked again, by number of posts and after changes.

    Parameters
    ----------
    posts : OwnPosts
        of all authors, in the order in which they are dealt to the two sides
    encoder : AuthorEncoder
        the first of the two systems
    name : str
        its name
    uncleaned : OwnPosts, optional
        the same posts before they were cleaned, in the order in which they are dealt
    pause : int
        seconds between known and released posts, see :func:`known_and_released`
    max_authors : int
        of more authors so many are drawn at random, not those with most posts: these are at a
        higher risk than the others
    seed : int
        seed of the draw and of the bootstrap

    Raises
    ------
    ValueError
        Where fewer than ENOUGH authors have LEAST_SIDE_POSTS posts on each side, in letters that
        the encoder knows.
    """
    posts, counts = _with_readable_authors(posts, encoder)
    corpus = _all_sides(posts, CORPUS, LEAST_SIDE_POSTS, MOST_POSTS, pause)
    counts["authors_without_pause"] = counts["authors_with_posts"] - len(corpus.known)
    side_posts, growth = _growth_sides(posts, pause)
    rng = np.random.default_rng(seed)
    counts["authors_not_drawn"] = max(len(corpus.known) - max_authors, 0)
    corpus = corpus.draw(max_authors, rng)
    growth = growth.draw(max_authors, rng)
    main = growth.cut(side_posts)
    counts["authors_measured"] = len(corpus.known)

    results = _Results(seed)
    scores, config = system_scores(main, encoder, name)
    results.add(main, closed_answers(scores, config), is_main=True)
    results.add_open(main, scores, config)
    sizes = [2**power for power in range(side_posts.bit_length() - 1)]
    all_sides = [growth.cut(size) for size in sizes]
    if growth.known.count.max() > side_posts:
        all_sides.append(growth)
    all_sides.append(corpus)
    comparisons = chain(all_sides, _changes(posts, main, uncleaned, encoder.tokenizer))
    total = len(all_sides) + MOST_CHANGES
    for sides in progress_bar(comparisons, total=total, desc="measuring", unit="comparison"):
        results.add(sides, closed_answers(*system_scores(sides, encoder, name)))
    return LinkageRisk(
        pd.DataFrame(results.metrics)[COLUMNS],
        pd.DataFrame(results.highest).astype({"linked": "Int64"}),
        _by_author_posts(corpus, results.corpus_answers, seed),
        counts,
        side_posts,
    )


def _with_readable_authors(posts, encoder):
    """Leave out authors whose letters the encoder does not know, and count who may be measured."""
    has_posts = posts.store.posts_per_author() >= MIN_POSTS
    is_readable = readable_authors(posts.store, encoder.kinds)
    counts = {
        "authors_unreadable": int((has_posts & ~is_readable).sum()),
        "authors_with_posts": int((has_posts & is_readable).sum()),
    }
    return subset_of_accounts(posts, np.flatnonzero(has_posts & is_readable)), counts


def _all_sides(posts, part, min_posts, max_posts, pause):
    known, released = known_and_released(posts.store, min_posts, max_posts, pause)
    return Sides(known, released, posts.hours, part)


def _growth_sides(posts, pause):
    """Return the first of SIDE_POSTS that ENOUGH authors have, and the sides of these authors."""
    for side_posts in SIDE_POSTS:
        sides = _all_sides(posts, GROWTH, side_posts, 2 * side_posts, pause)
        if len(sides.known) >= ENOUGH:
            return side_posts, sides
    raise ValueError(
        f"{len(sides.known)} authors have {LEAST_SIDE_POSTS} posts of their own words or more on "
        f"each side, in letters that the encoder knows: a share of fewer than {ENOUGH} authors "
        "would say little about the risk"
    )


def _changes(posts, main, uncleaned, tokenizer) -> Iterator[Sides]:
    """Yield the sides of the main answer after each change, one at a time to save memory."""
    main = replace(main, part=CHANGE)
    if uncleaned is not None:
        names = posts.names[main.known.authors]
        pair = same_authors(uncleaned, names, int(main.known.count.max()))
        if pair is not None:
            yield replace(main, known=pair[0], released=pair[1], condition=UNCLEANED)
    known, released = mask_rare_words(main.known, main.released, tokenizer)
    yield replace(main, known=known, released=released, condition=MASKED)
    if main.hours:
        yield replace(main, hours=False, condition=WITHOUT_HOURS)
    released = with_changed_texts(main.released, first_words, tokenizer)
    yield replace(main, released=released, condition=SHORTENED)
    if main.released.count.max() > FEW_POSTS:
        yield replace(main, released=last_posts(main.released, FEW_POSTS), condition=FEW_RELEASED)


def system_scores(
    sides: Sides, encoder: AuthorEncoder, name: str = "open-small"
) -> tuple[dict[str, np.ndarray], MatchConfig]:
    """Score the known posts of every author with the released ones of every author, by two systems.

    Parameters
    ----------
    sides : Sides
        of N authors, ENOUGH or more
    encoder : AuthorEncoder
        the first system
    name : str
        its name

    Returns
    -------
    Name of a system -> (N, N) float32; and the line from scores to log-weights of a matching. It is
    fitted for the encoder. AS-norm gives the TF-IDF scores of the same unit, so they share it.
    """
    numbers = np.arange(len(sides.released)).astype(str)
    gallery = AccountGallery(encoder, sides.released, numbers, sides.hours)
    member = next(part for part in gallery.model.members if part.name == "tfidf_subword")
    # the embeddings of the gallery's member are used again
    tfidf = replace(member, normaliser="as_norm", neighbours=None, weight=1.0)
    systems: dict[str, Model] = {name: gallery.model, BASELINE: as_model(tfidf)}
    scores = {}
    for system, model in systems.items():
        scores[system] = model.score_matrix(sides.known, sides.released, MAX_TOKENS)
    return scores, gallery.use.match


def closed_answers(scores: dict[str, np.ndarray], config: MatchConfig) -> ListAnswers:
    """Answer who is who where every author is on both sides, by all systems and in both ways.

    Parameters
    ----------
    scores : dict
        name of a system -> (N, N)
    config : MatchConfig
        line of the log-weights
    """
    partner = np.arange(len(next(iter(scores.values()))))
    return _answers(scores, config, partner, MAX_OVERLAP)


def _answers(scores, config, partner, overlap):
    """Return the answers by system and way; ``partner`` (Q,) is -1 where a query has none."""
    answers = {}
    for system, matrix in scores.items():
        answers[system, ALONE] = answers_alone(matrix, partner)
        answers[system, MATCHED] = _matched_answers(matrix, config, partner, overlap)
    return answers


def answers_alone(scores: np.ndarray, partner: np.ndarray) -> Answers:
    """Return what :func:`helpers.evaluation.lists.best_answers` does, of a whole matrix of scores.

    Parameters
    ----------
    scores : (Q, T) float32
        Q queries and T targets
    partner : (Q,) int
        row of each query's partner among the targets, or -1
    """
    has_partner = np.flatnonzero(partner >= 0)
    is_partner = partner[has_partner, None] == np.arange(scores.shape[1])
    rank = np.full(len(scores), np.nan)
    rank[has_partner] = best_ranks(scores[has_partner], is_partner)
    target = scores.argmax(1)
    return Answers(target, scores[np.arange(len(scores)), target], rank, partner)


def _matched_answers(scores, config, partner, overlap):
    """Return the answers of both lists matched together; of long lists the nearest pairs only."""
    if max(scores.shape) <= MATCH_ALL:
        candidates = all_candidates(scores)
    else:
        blocks = [(slice(0, len(scores)), scores)]
        candidates = best_candidates(blocks, *scores.shape, NEAREST)
    same = partner[:, None] == np.arange(scores.shape[1])
    return best_answers(candidates, sinkhorn(candidates, config, overlap).probability, same)


def linked_queries(answers: Answers, precision: float = PRECISIONS[RISK]) -> np.ndarray:
    """Tell which queries are answered rightly above the threshold of a precision, (Q,) bool.

    The threshold is the lowest one above which so many answers are right, as in
    :func:`helpers.evaluation.lists.list_metrics`; the share of these queries is its A@P90.

    Parameters
    ----------
    answers : Answers
        to Q queries
    precision : float
        least share of right answers above the threshold
    """
    order = np.argsort(-answers.value, kind="stable")
    right, answered, is_last = cumulative_answers(answers, order, np.ones(len(order)))
    places = np.flatnonzero(is_last & (right >= precision * answered))
    if not len(places):
        return np.zeros(len(order), bool)
    return answers.right & (answers.value >= answers.value[order[places[-1]]])


class _Results:
    """Rows of results, and the highest answers of the corpus and of the main comparison."""

    def __init__(self, seed):
        self.seed = seed
        self.metrics = []
        self.highest = []
        self.main_answers = None
        self.corpus_answers = None

    def add(self, sides, answers, is_main=False):
        """Add the answers to sides whose authors are all on both of them."""
        accounts = np.arange(len(sides.known))
        highest, row = self._add_metrics(sides.about(), answers, accounts)
        row["linked"] = int(linked_queries(highest).sum())
        if is_main:
            self.main_answers = highest
        elif sides.part == CORPUS:
            self.corpus_answers = highest
        elif sides.part == CHANGE:
            table = list_metrics(highest, accounts, self.main_answers, self.seed)
            difference = table.loc[f"{RISK}_difference"]
            row["difference"] = difference.value
            row["difference_low"] = difference.low
            row["difference_high"] = difference.high
        self.highest.append(row)

    def add_open(self, sides, scores, config):
        """Add the answers where only the share KNOWN_SHARE of each list is in the other."""
        rng = np.random.default_rng(self.seed)
        accounts = []
        parts = []
        for _ in range(OPEN_LISTS):
            queries, targets = draw_lists(len(sides.known), KNOWN_SHARE, rng)
            drawn_scores = {
                system: matrix[np.ix_(queries, targets)] for system, matrix in scores.items()
            }
            is_partner = queries[:, None] == targets
            partner = np.where(is_partner.any(1), is_partner.argmax(1), -1)
            parts.append(_answers(drawn_scores, config, partner, KNOWN_SHARE))
            accounts.append(queries)
        answers = {key: join_answers([part[key] for part in parts]) for key in parts[0]}
        about = replace(sides, part=OPEN).about() | {"authors": len(queries)}
        _, row = self._add_metrics(about, answers, np.concatenate(accounts))
        self.highest.append(row)

    def _add_metrics(self, about, answers, accounts):
        """Add the metrics of all answers; return the highest answers, and a row about them."""
        rows = []
        for (system, way), answer in answers.items():
            table = list_metrics(answer, accounts, seed=self.seed).reset_index()
            row = about | {"system": system, "way": way}
            by_metric = table.set_index("metric")
            first = {"ranked_first": by_metric.value["R@1"]}
            rows.append(row | by_metric.loc[RISK].to_dict() | first)
            self.metrics += table.assign(**row).to_dict("records")
        highest = max(rows, key=_risk_of)
        return answers[highest["system"], highest["way"]], highest


def _risk_of(row):
    return row["value"]


def _by_author_posts(corpus, answers, seed):
    """Return the shares at risk by number of posts, see :class:`LinkageRisk`."""
    is_linked = linked_queries(answers)
    posts = corpus.known.store.posts_per_author()[corpus.known.authors]
    group = np.digitize(posts, AUTHOR_POSTS) - 1
    rows = []
    for number, least_posts in enumerate(AUTHOR_POSTS):
        linked = is_linked[group == number]
        row = {"least_posts": least_posts, "authors": len(linked), "linked": int(linked.sum())}
        if least_posts < AUTHOR_POSTS[-1]:
            row["most_posts"] = AUTHOR_POSTS[number + 1] - 1
        if len(linked):
            table = bootstrap_means({RISK: linked}, np.arange(len(linked)), seed=seed)
            row |= table.loc[RISK].to_dict()
        rows.append(row)
    return pd.DataFrame(rows).astype({"most_posts": "Int64"})
