"""Topic taken out of the text itself, before the tokenizer: what ARR is compared with.

This is text distortion (Stamatatos 2017), as in sawatphol2022: words outside the k most frequent
ones are masked, and only their length or their place is left. A word is a run of letters and
digits, with apostrophes inside. Words are counted and compared in lower case. A placeholder of
cleaning, such as "@url", is never masked and never counted.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial

from ..cleaning.text import WORD
from ..core.artifacts import fingerprint_of
from ..tokens.document_sets import Documents

# what is masked at once: "don't4u2" becomes "***'*#*#" (multiple) or "*'*#*#" (single)
RUNS = {"multiple": "", "single": "+"}


def frequent_words(texts: Iterable[str], k: int) -> frozenset[str]:
    """Return the k most frequent words of training texts, lower-cased; fewer where there are fewer.

    Of equally frequent words those that come first in the alphabet are taken.

    Parameters
    ----------
    texts : iterable of str
        training texts
    k : int
        number of words
    """
    counts = Counter()
    for text in texts:
        counts.update(word[0].lower() for word in WORD.finditer(text) if not word[1])
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    return frozenset(by_frequency[:k])


def mask_text(text: str, keep: frozenset[str], kind: str = "multiple") -> str:
    """Mask every word that is not in ``keep``; punctuation, spaces and placeholders stay.

    Parameters
    ----------
    text : str
        text to mask
    keep : frozenset of str
        words that stay, lower-cased
    kind : str
        "multiple" (DV-MA): each letter becomes ``*`` and each digit ``#``; "single" (DV-SA): each
        run of them does
    """
    return WORD.sub(partial(_mask_word, keep=keep, run=RUNS[kind]), text)


# the replacement of one match of WORD, whose group 1 is a placeholder
def _mask_word(match, keep, run):
    word = match[0]
    if match[1] is not None or word.lower() in keep:
        return word
    without_digits = re.sub(rf"\d{run}", "#", word)
    return re.sub(rf"[^\W\d_]{run}", "*", without_digits)


def mask_documents(documents: Documents, keep: frozenset[str], max_tokens: int) -> Documents:
    """Return documents with stores of texts that are cut, with most words masked (DV-SA).

    Parameters
    ----------
    documents : Documents
        the documents, whose tables stay as they are
    keep : frozenset of str
        words that stay, lower-cased
    max_tokens : int
        L: a text is cut to its first L tokens before it is masked
    """
    change = partial(_cut_and_mask, documents.tokenizer, keep=keep, max_tokens=max_tokens)
    return documents.changed(change, fingerprint_of(sorted(keep), max_tokens))


def _cut_and_mask(tokenizer, text, keep, max_tokens):
    return mask_text(tokenizer.cut(text, max_tokens), keep, "single")
