"""Write which accounts of two lists belong to one person, as a page to read, print and send.

The page needs no network, see :mod:`helpers.accounts.pages`. Names and posts are escaped.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import pandas as pd

from ..core.messages import printable
from . import match_report
from .answer_record import HIGHEST, LEAST_SHOWN, MAX_LIKELY_SHOWN, MAX_SHOWN
from .answer_text import pairs_title, percent
from .answers import LIKELY, LINKED, NOT_LINKED
from .list_matching import LEAST_PROBABILITY, MatchedLists, TwoLists
from .pages import render_page, script_fields
from .pair_evidence import evidence_sentences, list_pair_evidence

TITLE = "<title>Two lists: "


@dataclass(frozen=True)
class MatchWords:
    """What is said about a matching in words, beside the pairs.

    Attributes
    ----------
    files : names of both lists
    read : sentences about what was read
    trust : sentences about what weights, probabilities and the overlap rest on
    table : name of the file that holds all pairs
    encoder : its name
    same_texts : result of :func:`helpers.accounts.answer_record.same_texts_record`
    set_aside : results of :func:`helpers.accounts.answer_record.set_aside_record`
    """

    files: list[str]
    read: list[str]
    trust: list[str]
    table: str
    encoder: str
    same_texts: dict = field(default_factory=dict)
    set_aside: list[dict] = field(default_factory=list)


def pairs_to_read(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that are shown with their evidence: of each account the best one.

    Parameters
    ----------
    pairs : ``pairs`` of a matching; known ones are left out
    """
    new = pairs[~pairs.known]
    best = new.drop_duplicates("account_a").drop_duplicates("account_b")
    linked = int(best.linked.sum())
    likely = int((best.linked | (best.probability >= 0.5)).sum())
    wanted = max(linked, min(likely, MAX_LIKELY_SHOWN), LEAST_SHOWN)
    return best.head(min(wanted, MAX_SHOWN))


def match_record(
    lists: TwoLists,
    matched: MatchedLists,
    shown: pd.DataFrame,
    words: MatchWords,
    progress: Callable = iter,
) -> dict:
    """Return all that the page says.

    Parameters
    ----------
    lists : both lists
    matched : who of them is who
    shown : ``matched.pairs`` with the names to show
    words : what is said beside the pairs
    progress : takes the pairs whose evidence is collected, and yields them
    """
    rows = list(pairs_to_read(matched.pairs).index)
    records = []
    with lists.galleries["a"].model.inference(), lists.galleries["b"].model.inference():
        for row in progress(rows):
            records.append(_pair_record(lists, matched, row, shown.loc[row]))
    new = matched.pairs[~matched.pairs.known]
    worth_reading = int((new.linked | (new.probability >= 0.5)).sum())
    return asdict(words) | {
        "headline": match_report.count_sentence(matched),
        "sentences": match_report.findings(matched),
        "linked": int(new.linked.sum()),
        "new_pairs": len(new),
        "one_partner": match_report.ONE_PARTNER,
        "pairs": records,
        "pairs_more": worth_reading - len(records),
    }


def _pair_record(lists, matched, row, shown):
    """Return what the page says of the pair in a row; ``shown`` has the names that are shown."""
    pair = matched.pairs.loc[row]
    evidence = list_pair_evidence(lists, pair.account_a, pair.account_b)
    record = asdict(evidence)
    record["posts_html"] = record.pop("posts")
    names = [printable(shown[f"account_{letter}"]) for letter in "ab"]
    state = NOT_LINKED
    if pair.linked:
        state = LINKED
    elif pair.probability >= 0.5:
        state = LIKELY
    sentences = []
    if pair.probability >= matched.highest:
        sentences.append(HIGHEST)
    return record | {
        "key_a": shown.account_a,
        "key_b": shown.account_b,
        "a": names[0],
        "b": names[1],
        "state": state,
        "probability": float(pair.probability),
        "probability_text": percent(pair.probability),
        "posts_a": int(pair.posts_a),
        "posts_b": int(pair.posts_b),
        "sentences": [*sentences, *evidence_sentences(evidence, names)],
        "score_sentence": (
            f"The score is {evidence.score:.3f}, the sum of what each system says, in the mean of "
            f"both directions. The natural logarithm of the likelihood ratio is {pair.llr:.2f}. It "
            "counts all other accounts of both lists, too: a pair is worth less where one of its "
            "accounts fits another account better."
        ),
    }


def render_matches(record: dict) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    record : result of :func:`match_record`
    """
    fields = {
        "pairs_title": pairs_title({pair["state"] for pair in record["pairs"]}),
        "accounts_title": "account of A, of B",
        "least": f"{LEAST_PROBABILITY:.0%}",
        "made": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    return render_page("match_page", record | fields | script_fields(), style="answer_page")
