"""Collect what speaks for and against that two accounts are one person's, for people to read."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from ..core.names import label
from ..tokens.batch import Samples
from . import highlight, topic_words
from .contributions import (
    HIDDEN_WORD,
    HOUR_ENDS,
    NOT_WORDS,
    SPELLINGS_JOINER,
    contributions,
    part_of_words,
    scores_by_member,
)
from .gallery import AccountGallery
from .list_matching import TwoLists
from .samples import MAX_TOKENS

MAX_FEATURES = 8  # that speak for a pair, and that speak against it
SHOWN_POSTS = 5  # of each account
RARER_WORD = " [rarer word]"  # is shown for a word that "LSA-WCCN, frequent" masks


@dataclass(frozen=True)
class Sign:
    """A feature of posts that speaks for a pair or against it.

    Attributes
    ----------
    text : what it is, as people read it
    system : the system that reads it
    part : its part of the score
    posts_a, posts_b : number of the posts that were read, of account a and of account b, in which
        it is; None where that cannot be counted, since the feature stands for many words
    """

    text: str
    system: str
    part: float
    posts_a: int | None
    posts_b: int | None


@dataclass(frozen=True)
class PairEvidence:
    """What speaks for and against a pair of accounts.

    Attributes
    ----------
    score : the score of the pair
    systems : name of a system that reads the posts -> its part of the score
    speaks_for, speaks_against : the strongest signs, the strongest one first
    read_a, read_b : number of posts of each account that were read
    words_of_topic : words that both use, as others do where both write
    part_of_topic : part of the score of features that hold these words
    activity : sentences about the times of the posts; none where times are not known
    posts : of account a and of account b, HTML of the posts that contribute most, escaped
    """

    score: float
    systems: dict[str, float]
    speaks_for: list[Sign]
    speaks_against: list[Sign]
    read_a: int
    read_b: int
    words_of_topic: list[str]
    part_of_topic: float
    activity: list[str]
    posts: tuple[str, str]


def pair_evidence(gallery: AccountGallery, account_a: str, account_b: str) -> PairEvidence:
    """Collect the evidence of one pair of accounts of a gallery.

    Parameters
    ----------
    gallery : AccountGallery
        holds both accounts
    account_a, account_b : str
        their names
    """
    samples = [gallery.accounts([name]) for name in (account_a, account_b)]
    parts = contributions(gallery, samples[0], account_b, account_a)
    words = topic_words.topic_words(gallery, samples[0], account_b, account_a)
    return _evidence(gallery, samples, parts, words)


def list_pair_evidence(lists: TwoLists, account_a: str, account_b: str) -> PairEvidence:
    """Collect the evidence of a pair of accounts of two lists.

    Each part is the mean of both directions.

    Parameters
    ----------
    lists : TwoLists
        both lists
    account_a, account_b : str
        names of an account of list A and of one of list B
    """
    a = lists.galleries["a"]
    b = lists.galleries["b"]
    samples = [a.accounts([account_a]), b.accounts([account_b])]
    words = topic_words.topic_words(b, samples[0], account_b)
    return _evidence(b, samples, lists.evidence(account_a, account_b), words)


def _evidence(gallery, samples, parts, words):
    """Collect the evidence of two samples, given the parts of their score and topic words."""
    sums = scores_by_member(parts)
    features = parts[~parts.feature.isin(NOT_WORDS)]
    tokenizer = gallery.encoder.tokenizer
    posts_read = [_PostsRead.of(side, tokenizer) for side in samples]
    posts = [highlight.highlight(parts, side, tokenizer, SHOWN_POSTS, words) for side in samples]
    activity = []
    if gallery.hours:
        activity = activity_sentences(*samples)
    return PairEvidence(
        float(sums.contribution.iloc[-1]),
        {label(name): float(value) for name, value in sums.iloc[:-1].to_numpy()},
        _strongest(features[features.contribution > 0], words, posts_read),
        _strongest(features[features.contribution < 0], words, posts_read),
        len(posts_read[0].texts),
        len(posts_read[1].texts),
        list(words),
        part_of_words(parts, words) if words else 0.0,
        activity,
        (posts[0], posts[1]),
    )


@dataclass(frozen=True)
class _PostsRead:
    """What was read of an account: the texts of its posts, and their hours."""

    texts: list[str]
    hours: np.ndarray

    @classmethod
    def of(cls, sample, tokenizer):
        """Take what a sample of one account holds."""
        store = sample.store
        numbers = np.arange(sample.first[0], sample.first[0] + sample.count[0])
        texts = []
        for begin, end in zip(store.post_offsets[numbers], store.post_offsets[numbers + 1]):
            text = tokenizer.decode(store.tokens[begin : min(end, begin + MAX_TOKENS)])
            # a feature may be the blank before or after a word
            texts.append(f" {' '.join(text.split())} ")
        return cls(texts, store.time[numbers] // 3600 % 24)

    def count(self, feature):
        """Return in how many posts a feature is; None where nobody can count it."""
        if feature.endswith(HOUR_ENDS):
            return int((self.hours == int(feature.removesuffix(HOUR_ENDS))).sum())
        if HIDDEN_WORD in feature:
            return None
        spellings = feature.split(SPELLINGS_JOINER)
        return sum(any(spelling in text for spelling in spellings) for text in self.texts)


def _strongest(features, words, posts_read):
    """Return the strongest of features that are sorted by strength and are no words of a topic."""
    of_topic = features.feature.str.strip().str.lower().isin(words)
    signs = []
    for row in features[~of_topic].head(MAX_FEATURES).itertuples():
        counts = [posts.count(row.feature) for posts in posts_read]
        signs.append(Sign(feature_text(row.feature), label(row.member), row.contribution, *counts))
    return signs


def feature_text(feature: str) -> str:
    """Return a feature of posts as people read it: an hour, or letters between quotation marks.

    Parameters
    ----------
    feature : str
        as :func:`helpers.accounts.contributions.contributions` names it
    """
    if feature.endswith(HOUR_ENDS):
        return f"posts at {feature}"
    return f"\u201c{feature.replace(HIDDEN_WORD, RARER_WORD)}\u201d"


def activity_sentences(a: Samples, b: Samples) -> list[str]:
    """Say when two accounts wrote the posts that are read, and how often at once.

    Parameters
    ----------
    a, b : Samples
        one sample each
    """
    times = [_times(sample) for sample in (a, b)]
    sentences = []
    for letter, seconds in zip("AB", times, strict=True):
        first, last = [datetime.fromtimestamp(moment, UTC) for moment in (seconds[0], seconds[-1])]
        sentences.append(
            f"The {len(seconds)} posts of {letter} that are read are from {first:%Y-%m-%d} to "
            f"{last:%Y-%m-%d}."
        )
    minutes = [set(seconds // 60) for seconds in times]
    days = [set(seconds // 86400) for seconds in times]
    same_minutes = len(minutes[0] & minutes[1])
    same_days = len(days[0] & days[1])
    if same_days:
        sentence = f"Both wrote on {same_days} of the same days"
        if same_minutes:
            sentence += f", and in {same_minutes} of the same minutes. Posts in one minute speak "
            sentence += "against one person; the probability"
        else:
            sentence += "; the probability"
        sentences.append(f"{sentence} does not count this.")
    elif min(times[0][-1], times[1][-1]) < max(times[0][0], times[1][0]):
        pause = max(times[0][0], times[1][0]) - min(times[0][-1], times[1][-1])
        days_between = pause // 86400
        if days_between < 2:
            sentences.append("Less than two days lie between these posts of A and of B.")
        else:
            sentences.append(f"Between these posts of A and of B lie {days_between:,} days.")
    else:
        sentences.append("None of these posts of A and B are from the same day.")
    return sentences


def _times(sample):
    """Return the times of the first sample's posts, sorted, in seconds since 1970."""
    first = sample.first[0]
    return np.sort(sample.store.time[first : first + sample.count[0]])


def evidence_sentences(evidence: PairEvidence, names: list[str]) -> list[str]:
    """Say for which side words, letters and hours speak, and what the strongest signs are.

    Parameters
    ----------
    evidence : PairEvidence
        of a pair
    names : list of str
        of account a and of account b, as they are shown
    """
    return _side_sentences(evidence.systems) + _sign_sentences(evidence, names)


def _side_sentences(systems):
    """Say for which side words and letters speak, all taken together, and for which side hours."""
    hours = systems.get(label("hours"), 0.0)
    words = sum(systems.values()) - hours
    sentences = []
    for noun, part in (("words and letters", words), ("hours of posting", hours)):
        verdict = "for one person"
        if part < 0:
            verdict = "against it"
        if part:
            sentences.append(f"All {noun} taken together speak {verdict} ({part:+.2f}).")
    return sentences


def _sign_sentences(evidence, names):
    """Say in how many posts of each account the strongest sign of each side is."""
    sentences = []
    for side, signs in (
        ("for one person", evidence.speaks_for),
        ("against it", evidence.speaks_against),
    ):
        countable = [sign for sign in signs if sign.posts_a or sign.posts_b]
        if countable:
            sign = countable[0]
            sentences.append(
                f"The strongest single sign {side} is {sign.text}: it is in {sign.posts_a} of "
                f"{evidence.read_a} posts read of {names[0]}, and in {sign.posts_b} of "
                f"{evidence.read_b} posts read of {names[1]}."
            )
    return sentences
