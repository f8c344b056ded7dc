"""Collect what speaks for and against that two accounts are one person's, for people to read."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from ..cleaning.text import WORD
from ..core.escaping import escape_html
from ..core.names import label
from ..tokens.batch import PAD, Samples
from .contributions import (
    HIDDEN_WORD,
    HOUR_ENDS,
    NOT_WORDS,
    SPELLINGS_JOINER,
    contributions,
    part_of_words,
    scores_by_member,
    topic_words,
)
from .gallery import AccountGallery
from .samples import MAX_TOKENS

MAX_FEATURES = 8  # that speak for a pair, and that speak against it
SHOWN_POSTS = 5  # of each account
RARER_WORD = " [rarer word]"  # is shown for a word that "LSA-WCCN, frequent" masks
# members whose features are subwords and pairs of subwords
SUBWORD_MEMBERS = ("tfidf_subword", "lsa", "lsa_masked")
FOR_COLOUR = "0,114,178"
AGAINST_COLOUR = "213,94,0"
MIN_STRENGTH = 0.05  # share of the strongest subword; paler colours would not be seen


def pair_evidence(galleries: list[AccountGallery], account_a: str, account_b: str) -> dict:
    """Collect the evidence of one pair of accounts.

    Parameters
    ----------
    galleries : list of AccountGallery
        one that holds both accounts, or one of each; the parts are then the means of both
        directions
    account_a, account_b : str
        their names

    Returns
    -------
    ``score`` of the pair; ``systems``, name of a system that reads the posts -> its part of the
    score; ``of_words`` and ``of_hours``, the part of words and letters, and that of hours of
    posting; ``speaks_for`` and ``speaks_against``, see :func:`strongest_signs`; ``read_a`` and
    ``read_b``, numbers of posts that were read; ``words_of_topic``, words that both use, as others
    do where both write, and ``part_of_topic``, the part of features that hold these words;
    ``activity``, see :func:`activity`, None where times are not known; ``posts_html``, of both
    accounts the posts that contribute most, escaped
    """
    first, second = galleries[0], galleries[-1]
    samples = [first.accounts([account_a]), second.accounts([account_b])]
    own_name = ""
    if first is second:
        own_name = account_a
    parts = contributions(second, samples[0], account_b, own_name)
    if first is not second:
        parts = mean_parts(parts, contributions(first, samples[1], account_a))
    words = topic_words(second, samples[0], account_b, own_name)

    sums = scores_by_member(parts)
    score = float(sums.contribution.iloc[-1])
    systems = {label(name): float(value) for name, value in sums.iloc[:-1].to_numpy()}
    of_hours = systems.get(label("hours"), 0.0)
    features = parts[~parts.feature.isin(NOT_WORDS)]
    tokenizer = second.encoder.tokenizer
    posts_read = [PostsRead.of(side, tokenizer) for side in samples]
    posts = [highlight(parts, side, tokenizer, SHOWN_POSTS, words) for side in samples]
    return {
        "score": score,
        "systems": systems,
        "of_words": sum(systems.values()) - of_hours,
        "of_hours": of_hours,
        "speaks_for": strongest_signs(features[features.contribution > 0], words, posts_read),
        "speaks_against": strongest_signs(features[features.contribution < 0], words, posts_read),
        "read_a": len(posts_read[0].texts),
        "read_b": len(posts_read[1].texts),
        "words_of_topic": words,
        "part_of_topic": part_of_words(parts, words) if words else 0.0,
        "activity": activity(*samples) if second.hours else None,
        "posts_html": posts,
    }


def mean_parts(parts: pd.DataFrame, back: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of the contributions of both directions of a pair.

    Parameters
    ----------
    parts, back : DataFrame
        results of :func:`helpers.accounts.contributions.contributions`
    """
    directions = pd.concat([parts, back])
    sums = directions.groupby(["member", "feature"], as_index=False).contribution.sum()
    sums["contribution"] /= 2
    return sums.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


@dataclass(frozen=True)
class PostsRead:
    """What was read of an account: the texts of its posts, and their hours."""

    texts: list[str]
    hours: np.ndarray

    @classmethod
    def of(cls, sample: Samples, tokenizer) -> "PostsRead":
        """Take what a sample holds.

        Parameters
        ----------
        sample : Samples
            of one account
        tokenizer : Tokenizer
            has made its tokens
        """
        store = sample.store
        numbers = np.arange(sample.first[0], sample.first[0] + sample.count[0])
        texts = []
        for begin, end in zip(store.post_offsets[numbers], store.post_offsets[numbers + 1]):
            text = tokenizer.decode(store.tokens[begin : min(end, begin + MAX_TOKENS)])
            # a feature may be the blank before or after a word
            texts.append(f" {' '.join(text.split())} ")
        return cls(texts, store.time[numbers] // 3600 % 24)

    def count(self, feature: str) -> int | None:
        """Return in how many posts a feature is; None where nobody can count it.

        Parameters
        ----------
        feature : str
            as :func:`helpers.accounts.contributions.contributions` names it
        """
        if feature.endswith(HOUR_ENDS):
            return int((self.hours == int(feature.removesuffix(HOUR_ENDS))).sum())
        if HIDDEN_WORD in feature:
            return None
        spellings = feature.split(SPELLINGS_JOINER)
        return sum(any(spelling in text for spelling in spellings) for text in self.texts)


def strongest_signs(features: pd.DataFrame, words: Collection[str], posts_read) -> list[dict]:
    """Return the strongest features that are no words of a topic, as people read them.

    Parameters
    ----------
    features : DataFrame
        rows of :func:`helpers.accounts.contributions.contributions`, the strongest first
    words : collection of str
        words of a topic, in lower case
    posts_read : list of PostsRead
        of account a and of account b

    Returns
    -------
    ``text``; ``system``, which reads it; ``part``, its part of the score; ``posts_a`` and
    ``posts_b``, numbers of the posts of each account in which it is, None where that cannot be
    counted, since the feature stands for many words
    """
    of_topic = features.feature.str.strip().str.lower().isin(words)
    signs = []
    for row in features[~of_topic].head(MAX_FEATURES).itertuples():
        text = f"\u201c{row.feature.replace(HIDDEN_WORD, RARER_WORD)}\u201d"
        if row.feature.endswith(HOUR_ENDS):
            text = f"posts at {row.feature}"
        sign = {"text": text, "system": label(row.member), "part": row.contribution}
        for letter, posts in zip("ab", posts_read):
            sign[f"posts_{letter}"] = posts.count(row.feature)
        signs.append(sign)
    return signs


def activity(a: Samples, b: Samples) -> dict:
    """Return when two accounts wrote the posts that are read, and how often at once.

    Parameters
    ----------
    a, b : Samples
        one sample each

    Returns
    -------
    The days ``first_a``, ``last_a``, ``first_b``, ``last_b``; ``same_days`` and ``same_minutes``,
    numbers of days and minutes in which both wrote; ``days_between``, the number of days between
    the posts of both, None where their times overlap
    """
    times = [np.sort(side.store.time[side.first[0] :][: side.count[0]]) for side in (a, b)]
    facts = {}
    for letter, seconds in zip("ab", times, strict=True):
        for end, moment in (("first", seconds[0]), ("last", seconds[-1])):
            facts[f"{end}_{letter}"] = f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
    for unit, length in (("days", 86400), ("minutes", 60)):
        facts[f"same_{unit}"] = len(set(times[0] // length) & set(times[1] // length))
    pause = max(times[0][0], times[1][0]) - min(times[0][-1], times[1][-1])
    return facts | {"days_between": int(pause // 86400) if pause > 0 else None}


def highlight(
    parts: pd.DataFrame, samples: Samples, tokenizer, posts: int = 8, words: Collection[str] = ()
) -> str:
    """Return HTML of the posts of a sample that contribute most to a score, strongest first.

    Blue subwords support that one person wrote both samples, orange ones speak against it. The
    strength of a colour is the contribution of the subword and half of that of its pairs with its
    two neighbours, summed over SUBWORD_MEMBERS and relative to the strongest subword. Contributions
    of all other members are not shown. Text is escaped.

    Parameters
    ----------
    parts : DataFrame
        result of :func:`helpers.accounts.contributions.contributions`.
    samples : Samples
        the first sample is shown, the others are ignored.
    tokenizer : Tokenizer
        has made the tokens of the samples.
    posts : int
        maximum number of posts to show.
    words : Collection[str]
        words in lower case to underline, such as those that
        :func:`helpers.accounts.contributions.topic_words` returns.
    """
    of_subwords = parts[parts.member.isin(SUBWORD_MEMBERS)]
    contribution = of_subwords.groupby("feature").contribution.sum().to_dict()
    batch = samples.batch(slice(0, 1), MAX_TOKENS)

    rated_posts = []
    for post in batch.tokens[batch.mask].tolist():
        pieces = [tokenizer.piece(token) for token in post if token != PAD]
        rated_posts.append((_strengths(pieces, contribution), pieces))
    largest = max((np.abs(strengths).max(initial=0) for strengths, _ in rated_posts), default=0)
    rated_posts.sort(key=_total_strength, reverse=True)

    paragraphs = []
    for strengths, pieces in rated_posts[:posts]:
        underlined = pieces_of_words(pieces, words)
        relative = strengths / (largest or 1.0)
        spans = [_span(*values) for values in zip(pieces, relative, underlined)]
        paragraphs.append(f"<p>{''.join(spans)}</p>")
    return "".join(paragraphs)


def _strengths(pieces, contribution):
    """Return, for each piece, its contribution plus half of that of its pairs with neighbours."""
    singles = np.array([contribution.get(piece, 0.0) for piece in pieces])
    pairs = [contribution.get(left + right, 0.0) / 2 for left, right in zip(pieces, pieces[1:])]
    return singles + np.array([0.0, *pairs]) + np.array([*pairs, 0.0])


def _total_strength(rated_post):
    return np.abs(rated_post[0]).sum()


# Return a piece as HTML: with a colour for its strength in [-1, 1], underlined or plain.
def _span(piece, strength, underlined):
    text = escape_html(piece)
    style = ""
    if abs(strength) >= MIN_STRENGTH:
        colour = FOR_COLOUR if strength > 0 else AGAINST_COLOUR
        style = f"background:rgba({colour},{abs(strength):.2f});"
    if underlined:
        style += "text-decoration:underline dotted"
    if not style:
        return text
    return f'<span style="{style}">{text}</span>'


def pieces_of_words(pieces: list[str], words: Collection[str]) -> np.ndarray:
    """Tell which pieces of a post are part of one of the given words.

    Parameters
    ----------
    pieces : list[str]
        N texts, which make up the post when they are joined.
    words : Collection[str]
        words in lower case.

    Returns
    -------
    (N,) bool, True also for a piece that holds only a part of a word.
    """
    in_word = np.zeros(sum(len(piece) for piece in pieces), bool)  # one per letter of the post
    for match in WORD.finditer("".join(pieces)):
        in_word[match.start() : match.end()] = match[0].lower() in words
    piece_ends = np.cumsum([len(piece) for piece in pieces])
    letters_of_piece = np.split(in_word, piece_ends)[: len(pieces)]
    return np.array([letters.any() for letters in letters_of_piece], bool)
