"""Baselines of verification: what pairs of texts tell without learning who wrote what (tyo2021 section 3).

Both give a number per pair that dev pairs turn into a score: cosines of character 4-grams through two thresholds, as
PAN's naive baseline does, cross-entropies through a logistic map, as its compression baseline does.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.evaluation.verification import GRID, apply_thresholds, best_thresholds, threshold_surface

ALPHABET = 256  # bytes
TEXTS = ["text_a", "text_b"]


def fit_ngrams(texts: list[str]) -> TfidfVectorizer:
    """TF-IDF of the 3,000 most frequent character 4-grams, the size of PAN's baseline, from training texts alone."""
    return TfidfVectorizer(analyzer="char", ngram_range=(4, 4), max_features=3000, dtype=np.float32).fit(texts)


def cosines(vectorizer: TfidfVectorizer, pairs: pd.DataFrame) -> np.ndarray:
    """Cosine of each pair, (N,) in [0, 1]; 0 where a text holds no known 4-gram. pairs: ``text_a``, ``text_b``."""
    a, b = (vectorizer.transform(pairs[name]) for name in TEXTS)
    return np.clip(np.asarray(a.multiply(b).sum(1), np.float64).ravel(), 0, 1)


def fit_shift(
    cosine: np.ndarray, same: np.ndarray, definition: str = "pan21", grid: np.ndarray = GRID
) -> Callable[[np.ndarray], np.ndarray]:
    """p1 and p2 of the highest overall on dev pairs: a cosine in [p1, p2] becomes 0.5, the others move apart.

    Returns cosines (N,) -> scores (N,). tyo2021 tuned them on its test set, which shows in its baseline's numbers.
    """
    p1, p2 = best_thresholds(threshold_surface(cosine, same, definition, grid))
    return lambda others: apply_thresholds(others, p1, p2)


class PPM:
    """Prediction by partial matching, escape method C with exclusion: what text comes next, in bits a byte.

    The counts of the bytes after every context of up to ``order`` bytes are those of one text. The longest context
    that was seen predicts; with n bytes counted after it, d of them different, one seen c times has c / (n + d), and
    d / (n + d) goes on to the context one byte shorter, where those bytes no longer count. Last are all bytes alike.
    """

    def __init__(self, text: str, order: int = 5):
        self.order, self.counts, data = order, {}, text.encode("utf-8", "replace")
        for end, byte in enumerate(data):
            for begin in range(max(0, end - order), end + 1):
                after = self.counts.setdefault(data[begin:end], {})
                after[byte] = after.get(byte, 0) + 1

    def probability(self, context: bytes, byte: int) -> float:
        """Of a byte after a context, of which the last ``order`` bytes matter."""
        left, excluded = 1.0, ()
        for begin in range(max(0, len(context) - self.order), len(context) + 1):
            after = self.counts.get(context[begin:])
            if after is None:
                continue
            counted = {one: count for one, count in after.items() if one not in excluded} if excluded else after
            total = sum(counted.values()) + len(counted)
            if byte in counted:
                return left * counted[byte] / total
            if counted:
                left *= len(counted) / total
                excluded = after  # what a longer context was followed by, its shorter ones were too
        return left / (ALPHABET - len(excluded))

    def cross_entropy(self, text: str) -> float:
        """Mean bits a byte of another text; NaN for an empty one."""
        data = text.encode("utf-8", "replace")
        if not data:
            return float("nan")
        bits = [self.probability(data[max(0, end - self.order) : end], byte) for end, byte in enumerate(data)]
        return float(-np.log2(bits).mean())


def cross_entropies(pairs: pd.DataFrame, characters: int = 5000, order: int = 5) -> np.ndarray:
    """Mean and absolute difference of both directions' cross-entropies, (N, 2), in bits a byte.

    pairs: ``text_a``, ``text_b``, of each the first ``characters``. The mean is a distance. Raises ValueError where a
    text is empty.
    """
    a, b = (pairs[name].str[:characters] for name in TEXTS)
    if empty := int(((a == "") | (b == "")).sum()):
        raise ValueError(f"{empty} of {len(pairs)} pairs hold an empty text")
    there = np.array([PPM(one, order).cross_entropy(other) for one, other in zip(a, b)])
    back = np.array([PPM(other, order).cross_entropy(one) for one, other in zip(a, b)])
    return np.column_stack([(there + back) / 2, np.abs(there - back)])


def fit_compression(features: np.ndarray, same: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Logistic regression of :func:`cross_entropies` (N, 2) on dev pairs; returns features -> scores (N,)."""
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, np.asarray(same, bool))
    return lambda others: model.predict_proba(others)[:, 1]
