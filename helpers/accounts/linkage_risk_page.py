"""Make one page of a linkage risk: the answer in two sentences, what it rests on and its limits.

The page is made from :func:`risk_facts` alone, which is also what ``risk.json`` holds, so that no
number stands on the page that a program could not read. The page has no script and loads nothing.
"""

import pandas as pd

from ..core.messages import printable
from ..evaluation.drawn_lists import ALONE, MATCHED
from ..evaluation.lists import PRECISIONS
from .linkage_changes import FEW_POSTS, KEPT_WORDS, SHORT_WORDS
from .linkage_risk import (
    BASELINE,
    CHANGE,
    CORPUS,
    FEW_RELEASED,
    GROWTH,
    KNOWN_SHARE,
    LEAST_SIDE_POSTS,
    MASKED,
    OPEN,
    PAUSE_SECONDS,
    SHORTENED,
    UNCLEANED,
    WITHOUT_HOURS,
    LinkageRisk,
)
from .pages import render_page
from .samples import MAX_TOKENS, MIN_POSTS, MOST_POSTS

SETTINGS = {
    "percent_right": 90,
    "higher_percent_right": 99,
    "percent_of_interval": 95,
    "min_posts": MIN_POSTS,
    "side_posts": LEAST_SIDE_POSTS,
    "pause_hours": PAUSE_SECONDS // 3600,
    "posts_read": MOST_POSTS,
    "tokens_of_post": MAX_TOKENS,
    "kept_words": KEPT_WORDS,
    "short_words": SHORT_WORDS,
    "few_posts": FEW_POSTS,
    "percent_known": round(100 * KNOWN_SHARE),
}
WAYS = {ALONE: "each author alone", MATCHED: "both lists matched"}
CHANGES = {  # condition -> what was done, with numbers of SETTINGS
    UNCLEANED: "The file as it is: names, addresses, quotes, code and copied passages left in",
    MASKED: "All but the {kept_words:,} most frequent words masked",
    WITHOUT_HOURS: "Times of posts removed",
    SHORTENED: "Each post cut to its first {short_words} words",
    FEW_RELEASED: "At most {few_posts} posts of each author released",
}
LEFT_OUT = {  # key of the counts -> why these authors were not judged, with numbers of SETTINGS
    "authors_with_few_posts": "Authors with fewer than {min_posts} posts after cleaning",
    "authors_of_shared_passages": (
        "Authors with fewer than {min_posts} posts of their own words, because passages of the "
        "other posts stand word for word in several posts"
    ),
    "authors_beyond_the_largest": "Authors beyond the largest ones, which alone are read",
    "authors_unreadable": "Authors who write in letters that the encoder does not know",
    "authors_without_pause": (
        "Authors with fewer than {side_posts} posts that come {pause_hours} hours or more after "
        "their older half"
    ),
    "authors_not_drawn": "Authors who were not drawn, so that the run does not take too long",
}
KNOWN_POSTS = {"time": "older", "half": "other"}  # split -> what the known posts are called


def risk_facts(risk: LinkageRisk, card: dict, about: dict) -> dict:
    """Return all that ``risk.json`` holds and the page shows.

    Parameters
    ----------
    risk : LinkageRisk
        what was measured
    card : dict
        the counts of :class:`helpers.accounts.reading.OwnPosts`
    about : dict
        ``corpus``, the name of the file; ``split``, ``seed``, ``encoder``, ``hours`` and
        ``minutes``
    """
    highest = risk.highest
    growth = highest[highest.part == GROWTH].sort_values("known_posts")
    return about | {
        "settings": SETTINGS,
        "columns": card["columns"],
        "counts": _counts(risk, card),
        "answer": _records(risk.main.to_frame().T)[0],
        "all_posts": _records(highest[highest.part == CORPUS])[0],
        "growth": _records(growth),
        "by_author_posts": _records(risk.by_author_posts),
        "changes": _records(highest[highest.part == CHANGE]),
        "half_known": _records(highest[highest.part == OPEN])[0],
        "systems": _records(risk.metrics[risk.metrics.part == GROWTH]),
    }


def _records(frame):
    """Return the rows of a frame as dicts without missing values, of plain numbers."""
    rows = []
    for row in frame.astype(object).to_dict("records"):
        kept = {}
        for column, value in row.items():
            if not pd.isna(value):
                kept[column] = value.item() if hasattr(value, "item") else value
        rows.append(kept)
    return rows


def _counts(risk, card):
    """Return how many rows, posts and authors were read, measured and left out."""
    dropped = {name: count for name, count in card.items() if name.startswith("dropped_")}
    return {
        "rows_read": card["rows_read"],
        "rows_dropped": sum(dropped.values()),
        **dropped,
        "posts": card["posts"],
        "authors": card["authors"],
        "authors_with_few_posts": card["accounts_with_few_posts"],
        "authors_of_shared_passages": card["accounts_of_shared_passages"],
        "authors_beyond_the_largest": card["accounts_beyond_the_largest"],
        **risk.counts,
    }


def risk_sentences(facts: dict) -> list[str]:
    """Return the answer in two sentences of plain text.

    Parameters
    ----------
    facts : dict
        result of :func:`risk_facts`
    """
    answer = facts["answer"]
    whole = facts["all_posts"]
    whole_name = f"all {whole['authors']:,} authors who could be judged"
    if facts["counts"]["authors_not_drawn"]:
        whole_name = f"{whole['authors']:,} authors, drawn at random from all who could be judged"
    half = {"time": "the older half", "half": "one half"}[facts["split"]]
    return [
        f"Of {answer['authors']:,} authors with {answer['known_posts']} posts or more in each half "
        f"of their posts, {answer['linked']:,} ({_share(answer)}) can be linked again with "
        f"{facts['settings']['percent_right']}% of the links right, by whoever knows "
        f"{answer['known_posts']} {KNOWN_POSTS[facts['split']]} posts of each.",
        f"Of {whole_name}, {whole['linked']:,} ({_share(whole)}) can be linked in this way, by "
        f"whoever knows {half} of the posts of each, {whole['known_posts']} at most.",
    ]


def risk_page(facts: dict) -> str:
    """Return the HTML of the page.

    Parameters
    ----------
    facts : dict
        result of :func:`risk_facts`
    """
    facts = facts | {name: printable(facts[name]) for name in ("corpus", "encoder")}
    return render_page(
        "linkage_risk",
        {
            "corpus": facts["corpus"],
            "answer": risk_sentences(facts),
            "features": _features(facts),
            "best": _best_sentence(facts),
            "growth": _growth_sentence(facts),
            "growth_table": _growth_table(facts),
            "authors": _authors_sentence(facts),
            "authors_table": _authors_table(facts),
            "changes": _changes_sentence(facts),
            "changes_table": _changes_table(facts),
            "left_out": _left_out(facts),
            "method": _method(facts),
            "systems_table": _systems_table(facts),
            "limits": _limits(facts),
            "files": _files_sentence(facts),
        },
    )


def _percent(value):
    """Return a share in percent without its sign, with a decimal place where it is below 1%."""
    if 0 < value < 0.01:
        return f"{100 * value:.1f}"
    return f"{100 * value:.0f}"


def _share(row):
    """Return a share and its interval: "68%, 63 to 72"."""
    return f"{_percent(row['value'])}%, {_percent(row['low'])} to {_percent(row['high'])}"


def _points(value):
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * value:+.0f}".replace("-", "\N{MINUS SIGN}")


def _system(row):
    return f"{row['system']}, {WAYS[row['way']]}"


def _bar(row):
    """Return a share as the page draws it: a bar, the line of its interval, and both in words."""
    return {
        "width": f"{100 * row['value']:.2f}",
        "line_begin": f"{100 * row['low']:.2f}",
        "line_width": f"{100 * (row['high'] - row['low']):.2f}",
        "cell": _share_cell(row),
    }


def _share_cell(row):
    """Return a cell, (text, smaller text below it): a share and its interval."""
    return f"{_percent(row['value'])}%", f"{_percent(row['low'])} to {_percent(row['high'])}"


def _best_sentence(facts):
    answer = facts["answer"]
    return (
        "Two systems looked for the authors, each in two ways. The first number is that of "
        f"{_system(answer)}, which found most. The two numbers behind a share are its "
        f"{facts['settings']['percent_of_interval']}% interval. The corpus has "
        f"{answer['released_posts']} posts of each of these authors, and everybody whom the "
        "adversary knows is in it."
    )


def _growth_sentence(facts):
    answer = facts["answer"]
    largest = facts["growth"][-1]["known_posts"]
    sentence = (
        f"The same {answer['authors']:,} authors in each row. So many posts of each are known, and "
        "as many are released. Ranked first are those whose right author is on top, however unsure "
        "the system is."
    )
    if largest > answer["known_posts"]:
        sentence += f" In the last row they are {largest} at most, as many as an author has."
    return sentence


def _growth_table(facts):
    rows = []
    for row in facts["growth"]:
        cells = [(f"{_percent(row['ranked_first'])}%", ""), ("", _system(row))]
        rows.append({"name": row["known_posts"], "bar": _bar(row), "cells": cells})
    linked = f"linked, {facts['settings']['percent_right']}% right"
    return {"columns": ["posts a side", linked, "", "ranked first", "by"], "rows": rows}


def _authors_sentence(facts):
    whole = facts["all_posts"]
    return (
        f"The {whole['authors']:,} authors of the second sentence by their number of posts, of "
        f"which {facts['settings']['posts_read']:,} are read at most. One half is known, the other "
        f"one released. What found most of them is {_system(whole)}."
    )


def _authors_table(facts):
    rows = []
    for row in facts["by_author_posts"]:
        if not row["authors"]:
            continue
        name = f"{row['least_posts']} or more"
        if "most_posts" in row:
            name = f"{row['least_posts']} to {row['most_posts']}"
        cells = [(f"{row['linked']:,} of {row['authors']:,}", "")]
        rows.append({"name": name, "bar": _bar(row), "cells": cells})
    return {"columns": ["posts of an author", "linked", "", "authors"], "rows": rows}


def _changes_sentence(facts):
    answer = facts["answer"]
    return (
        f"Each change was made to the {answer['known_posts']} released posts of each of the "
        f"{answer['authors']:,} authors, and they were linked anew. Where words are masked or "
        "times removed, the known posts are changed in the same way, since the corpus shows how. "
        "The last column is the difference to the first row in percentage points, with its "
        "interval. Where the interval holds 0, these authors cannot show whether the change helps."
    )


def _changes_table(facts):
    rows = [{"name": "Cleaned, as in the answer above", "bar": _bar(facts["answer"]), "cells": []}]
    for row in facts["changes"]:
        interval = f"{_points(row['difference_low'])} to {_points(row['difference_high'])}"
        name = CHANGES[row["condition"]].format(**facts["settings"])
        cells = [(_points(row["difference"]), interval)]
        rows.append({"name": name, "bar": _bar(row), "cells": cells})
    return {"columns": ["change", "linked", "", "difference"], "rows": rows}


def _left_out(facts):
    """Return sentences about what was read and not judged."""
    counts = facts["counts"]
    sentences = [
        f"Of {counts['rows_read']:,} rows of the file {counts['rows_dropped']:,} were dropped: "
        "copies, posts that are too short or hold quotes alone, posts of bots. "
        f"{counts['posts']:,} posts of {counts['authors']:,} authors are left."
    ]
    for reason, words in LEFT_OUT.items():
        if counts[reason]:
            sentences.append(f"{words.format(**facts['settings'])}: {counts[reason]:,}.")
    sentences.append(
        "An author who was not judged is not safe: nobody measured it. Languages are not "
        "recognised; the encoder was made of English posts."
    )
    if UNCLEANED not in [row["condition"] for row in facts["changes"]]:
        sentences.append("The file as it is was not measured, only its cleaned posts.")
    return sentences


def _method(facts):
    """Return sentences about how the number came about."""
    settings = facts["settings"]
    sides = {
        "time": "The older half of each author's posts is what an adversary knows, and the newer "
        "half is what the corpus releases. The first posts of the older half and the last posts of "
        f"the newer half are taken. Posts within {settings['pause_hours']} hours after the known "
        "ones are left out: who goes on with a conversation is found by what it is about.",
        "half": "The posts of each author are dealt at random to what an adversary knows and what "
        f"the corpus releases (seed {facts['seed']}). Both halves are of one time and one set of "
        "conversations, which makes linking easier than from older posts.",
    }[facts["split"]]
    return [
        sides,
        f"Of each author {settings['posts_read']:,} posts are read at most, evenly spread over "
        f"time, and of each post {settings['tokens_of_post']} tokens. Names, addresses, quotes and "
        "code are removed first, and so is each passage that stands word for word in several "
        "posts.",
        f"Two systems link: {facts['encoder']} reads {_features(facts)}; {BASELINE} counts parts "
        "of words, as anybody can in a minute. Both compare each author's known posts with the "
        "released posts of all authors. Both lists are matched by giving each author one partner "
        "at most.",
        "Links are sorted by how sure a system is, and cut where "
        f"{settings['percent_right']}% of them are right. The cut, and the best of the four "
        "answers, are chosen on these authors, which makes the number a little too high.",
        "Intervals are over authors, who are drawn anew with replacement.",
    ]


def _features(facts):
    if facts["hours"]:
        return "the text and the hours of posts"
    return "the text of posts"


def _limits(facts):
    """Return sentences about what the number does not show."""
    open_row = facts["half_known"]
    return [
        "It is a lower bound of what style can do: other adversaries may have better systems, more "
        "posts of an author, or more patience.",
        f"Programs compared {_features(facts)}. What posts say about a life, accounts known by "
        "name, and data about posts (times to the second, threads, who answers whom) are not "
        "counted; they can betray an author whom no style betrays.",
        "All known authors are in the corpus here, and the adversary knows it. If "
        f"{facts['settings']['percent_known']}% of them were in it, {_percent(open_row['value'])}% "
        f"({_percent(open_row['low'])} to {_percent(open_row['high'])}) of these could be linked "
        f"({_system(open_row)}).",
        "Known and released posts are of one corpus. What an author writes about helps to link "
        "them, most of all where all posts are of a few days. Who writes otherwise elsewhere is "
        "linked less often.",
        "A share says nothing about one author. Who is not linked here can still stand among the "
        "first few candidates.",
    ]


def _systems_table(facts):
    """Return the metrics of both systems and both ways, for each number of posts a side."""
    by_system = {}
    for row in sorted(facts["systems"], key=_known_posts):
        metrics = by_system.setdefault((row["known_posts"], _system(row)), {})
        metrics[row["metric"]] = row
    settings = facts["settings"]
    columns = ["posts a side", "system", "MRR", "ranked first"]
    for name in ("percent_right", "higher_percent_right"):
        columns.append(f"linked, {settings[name]}% right")
    rows = []
    for (posts, system), metrics in by_system.items():
        mrr = metrics["MRR"]
        row = [(system, ""), (f"{mrr['value']:.3f}", f"{mrr['low']:.3f} to {mrr['high']:.3f}")]
        row += [_share_cell(metrics[metric]) for metric in ("R@1", *PRECISIONS)]
        rows.append({"name": posts, "cells": row})
    return {"columns": columns, "rows": rows}


def _known_posts(row):
    return row["known_posts"]


def _files_sentence(facts):
    return (
        f"Measured in {facts['minutes']} minutes, seed {facts['seed']}. All numbers, also those of "
        "both systems after each change, are in risk.csv and risk.json beside this page."
    )
