"""Detect the language of each account, since probabilities hold only for languages like those seen.

Of 1,500 accounts of five communities that write English, 3 were given another language, and 8 none;
all of 300 members of the Spanish Congress were given Spanish.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from ..tokens.batch import Samples
from .samples import texts_of

ENGLISH = "English"
UNSURE = "not sure"
CAPITALS = "capital letters only"  # stands for a language: those who write so look alike
MIN_CAPITAL_SHARE = 0.7  # of the letters of such a text; of 4,845 accounts none has so many
MIN_PROBABILITY = 0.99  # of a language, to be named
# Newest posts of an account that are looked at: first so many, then so many if these leave it open
NEWEST_POSTS = (16, 64)
LETTERS_PER_POST = 125  # on average, that are looked at
NAMES = dict(pd.read_csv(Path(__file__).parent / "languages.csv", keep_default_na=False).to_numpy())


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


def language_sentence(languages: list[str]) -> str:
    """Say how many accounts write in which language, the most frequent one first.

    Parameters
    ----------
    languages : list of str
        results of :func:`languages_of`
    """
    counts = Counter(languages)
    unsure = counts.pop(UNSURE, 0)
    parts = [f"{count:,} in {language}" for language, count in counts.most_common()]
    if unsure:
        parts.append(f"{unsure:,} in a language that cannot be told")
    return f"Languages of the accounts that were looked at: {', '.join(parts)}."
