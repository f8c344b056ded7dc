"""Say of which accounts no probability holds, because the encoder cannot read them as it should.

Two people whose letters it does not know look alike to it, and unlike all others. So do two whose
posts hold hardly a word that others use: another language, one emoji, base64. Limits were chosen so
that all generated kinds of such texts are found; of 492 test accounts of the run ``open`` (draw
4) they set 2 aside, of 3,131 bloggers 41, most of whom write in such letters or languages.

Two people who mention somebody in every other post are alike in the marks that replace mentions,
where few others mention anybody. Of five communities at most 0.6% of the accounts have so many.

Probabilities hold only for languages like those seen. Of 1,500 accounts of five communities that
write English, 3 were given another language, and 8 none; all of 300 members of the Spanish Congress
were given Spanish.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from ..encoders.base import embed
from ..evaluation.scores import as_rows
from ..tokens.batch import Samples
from .samples import MAX_TOKENS, texts_of

ENGLISH = "English"
UNSURE = "not sure"
CAPITALS = "capital letters only"  # stands for a language: those who write so look alike
MIN_CAPITAL_SHARE = 0.7  # of the letters of such a text; of 4,845 accounts none has so many
MIN_PROBABILITY = 0.99  # of a language, to be named
# Newest posts of an account that are looked at: first so many, then so many if these leave it open
NEWEST_POSTS = (16, 64)
LETTERS_PER_POST = 125  # on average, that are looked at
NAMES = dict(pd.read_csv(Path(__file__).parent / "languages.csv", keep_default_na=False).to_numpy())
# Share of an account's tokens that are unknown letters. Two accounts by two people that both write
# 3% get a likelihood ratio that is e**3 times too high, with 8% one that links them.
MAX_UNKNOWN_SHARE = 0.03
UNREADABLE_SHARE = 0.2  # a larger share is too large whatever the others write
# An account whose words are those of others: its similarity to all of them, by TF-IDF word, is at
# least this share of the median account's. Generated texts have at most .09, English ones .16.
MIN_WORD_SIMILARITY = 0.1
# Marks of cleaning, what they stand for, and the share of an account's tokens that is usual. A pair
# gains as much by 2% of them as by 6% where nobody else has any.
MASKED = {
    "@user": ("mentions of people", 0.01),
    "@email": ("mail addresses", 0.01),
    "@self": ("mentions of oneself", 0.01),
    "@url": ("links", 0.04),
    "@code": ("code", 0.04),
}
# a larger share is too large if it is so many times that which nine of ten accounts stay below
MAX_MASKED_RATIO = 8
MIN_TOKENS_TO_JUDGE = 100  # in all posts of an account that are read
# words of the reasons
WRITES = "writes"  # a language: its letters are read all the same
UNREADABLE = "letters or signs that the encoder does not know"
UNCHECKED = "for which no probability was checked"
STRANGE_WORDS = "hardly a word that others here use"


def language_of(text: str) -> str:
    """Return the English name of a text's language, CAPITALS or UNSURE.

    Parameters
    ----------
    text : str
        of an account's posts, one after the other
    """
    capitals = sum(1 for letter in text if letter.isupper())
    small_letters = sum(1 for letter in text if letter.islower())
    if capitals > MIN_CAPITAL_SHARE * (capitals + small_letters):
        return CAPITALS
    code, probability = _identifier().classify(text)
    if probability < MIN_PROBABILITY:
        return UNSURE
    return NAMES.get(code, UNSURE)


@cache
def _identifier():
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # reads a table of 4 MB

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def languages_of(samples: Samples, tokenizer) -> list[str]:
    """Return the language of each sample, as :func:`language_of` names it.

    Parameters
    ----------
    samples : Samples
        N samples, of which the last posts are looked at
    tokenizer : Tokenizer
        has made the tokens of the store
    """
    languages = []
    for end, count in zip(samples.first + samples.count, samples.count, strict=True):
        for newest in NEWEST_POSTS:
            posts = np.arange(end - min(count, newest), end)
            text = "\n".join(texts_of(samples.store, posts, tokenizer))
            language = language_of(text[: LETTERS_PER_POST * newest])
            if language != UNSURE:
                break
        languages.append(language)
    return languages


def reading_problems(
    gallery, samples: Samples, own_column: np.ndarray, languages: list[str]
) -> np.ndarray:
    """Return for each sample why no probability holds for it, "" where one does.

    Its language must be one that the calibration of the gallery has seen, or too little is written
    to tell; its letters must be known to the encoder, or as rarely unknown as those of others; and
    in a gallery that normalises, some of its words must be those of others, and not far more of it
    masked than of others.

    Parameters
    ----------
    gallery : AccountGallery
        with whose targets the samples are compared
    samples : Samples
        N samples
    own_column : (N,) int
        for each sample its number among the targets, -1 if it is none of them
    languages : list of str
        result of :func:`languages_of` for the samples

    Returns
    -------
    (N,) object, of texts
    """
    kinds = gallery.encoder.kinds
    median_share = np.median(token_shares(gallery.targets, kinds == 0))
    limit = min(max(2 * median_share, MAX_UNKNOWN_SHARE), UNREADABLE_SHARE)
    shares = token_shares(samples, kinds == 0)
    has_words = token_counts(samples) >= MIN_TOKENS_TO_JUDGE
    problems = np.full(len(samples), "", object)
    if gallery.normalised:
        problems = _masked_problems(gallery, samples)
        problems[_is_stranger(gallery, samples, own_column)] = STRANGE_WORDS
    for row, language in enumerate(languages):
        is_unchecked = language not in gallery.use.languages
        if is_unchecked and language != UNSURE:
            problems[row] = f"{WRITES} {language}, {UNCHECKED}"
        elif shares[row] > limit:
            problems[row] = f"{shares[row]:.0%} of the text is {UNREADABLE}"
        elif is_unchecked and has_words[row]:
            problems[row] = f"{WRITES} in a language that cannot be told, {UNCHECKED}"
    return problems


def is_read(problem: str) -> bool:
    """Tell whether an account's problem leaves its text readable, so that calibration may see it.

    Parameters
    ----------
    problem : str
        of :func:`reading_problems`
    """
    return not problem or problem.startswith(WRITES)


def token_counts(samples: Samples) -> np.ndarray:
    """Return the number of tokens of each sample, (N,)."""
    offsets = samples.store.post_offsets
    return offsets[samples.first + samples.count] - offsets[samples.first]


def token_shares(samples: Samples, is_counted: np.ndarray) -> np.ndarray:
    """Return the share of each sample's tokens that are of some kinds, (N,).

    Parameters
    ----------
    samples : Samples
        N samples
    is_counted : (vocabulary,) bool
        which tokens are of these kinds
    """
    store = samples.store
    counted_before = np.append(0, np.cumsum(is_counted[store.tokens]))
    begins = store.post_offsets[samples.first]
    ends = store.post_offsets[samples.first + samples.count]
    counted = counted_before[ends] - counted_before[begins]
    return counted / np.maximum(token_counts(samples), 1)


def _masked_problems(gallery, samples):
    """Return of each sample what is masked far more often than in the targets, (N,) object."""
    pieces = np.array(gallery.encoder.tokenizer.pieces)
    problems = np.full(len(samples), "", object)
    for mark, (words, usual_share) in MASKED.items():
        of_targets = token_shares(gallery.targets, pieces == mark)
        limit = max(MAX_MASKED_RATIO * np.quantile(of_targets, 0.9), usual_share)
        problems[token_shares(samples, pieces == mark) > limit] = f"far more {words} than others"
    return problems


def _is_stranger(gallery, samples, own_column):
    """Tell which samples hardly share a word with the targets, (N,) bool."""
    targets = gallery.words.rows
    columns = np.arange(len(gallery))
    median = np.median(_similarity_to_others(targets, targets, columns))
    rows = targets[own_column]
    if (own_column < 0).any():
        rows = as_rows(embed(gallery.words.encoder, samples, MAX_TOKENS))
    return _similarity_to_others(rows, targets, own_column) < MIN_WORD_SIMILARITY * median


def _similarity_to_others(rows, targets, own_column):
    """Return the mean similarity of sparse rows (N, D) to all targets (T, D) but their own."""
    is_target = own_column >= 0
    of_all = np.asarray(rows @ targets.sum(0).T).ravel()
    of_own = np.asarray(rows.multiply(targets[own_column]).sum(1)).ravel()
    return (of_all - is_target * of_own) / np.maximum(targets.shape[0] - is_target, 1)
