"""Encoders that count words: the baselines a user can fit in a minute, and the topic model of ARR.

They read the same text as every encoder, the first L tokens of each post of a sample. A table in
which baselines read whole posts and the other encoders 32 tokens of each would not be fair.

Letters: B samples, M posts a sample, L tokens a post.
"""

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import chain

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..tokens.batch import PAD, Batch, Samples, training_windows
from ..tokens.store import TokenStore
from .base import Encoder, batches_of

PAIR_BUCKETS = 2**18  # number of hash values for pairs of subwords
MAX_TOPICS = 2**16  # no store lists more topics
FIT_POSTS = 500_000  # a TF-IDF of texts is fitted on no more posts, as released


def shapes(text: str) -> str:
    """Replace each capital A-Z by "A", each run of other letters by "a", each run of digits by "0".

    "Call Bob at 10:45!" becomes "Aa Aa a 0:0!". Space at both ends is removed. Text distortion
    (Stamatatos 2017) keeps frequent words; here no word is kept.
    """
    text = re.sub(r"\d+", "0", text.strip())
    text = re.sub("[A-Z]", "A", text)
    return re.sub(r"[^\W\d_A-Z]+", "a", text)  # letters but A-Z: the "all" of "Call", a whole "é"


# scikit-learn is imported inside the functions: the import takes a second, and a trained network
# does not need it


def _weighting(name, **settings):
    """Return a class of scikit-learn that counts or weighs terms, with settings."""
    return getattr(import_module("sklearn.feature_extraction.text"), name)(**settings)


_counts = partial(_weighting, "CountVectorizer", dtype=np.float32)
_tfidf = partial(_weighting, "TfidfVectorizer", dtype=np.float32)
_log_tfidf = partial(_weighting, "TfidfTransformer", sublinear_tf=True)


class WordNgrams:
    """The TF-IDF of n-grams of characters within words that scikit-learn makes, in less time.

    The n-grams of each different word are counted once, and a product with the counts of words
    gives those of texts. All values are those of ``TfidfVectorizer(analyzer="char_wb")`` with
    logarithms of counts, which counts the n-grams of every word of every text.

    Parameters
    ----------
    ngram_range : tuple
        fewest and most characters of an n-gram; a space stands at both ends of a word
    min_df : int
        n-grams in fewer texts are left out
    max_features : int
        so many n-grams are kept, the most frequent ones
    """

    def __init__(self, ngram_range: tuple[int, int], min_df: int, max_features: int):
        self.min_df = min_df
        self.max_features = max_features
        self.words = _counts(analyzer=str.split)
        self.ngrams = _counts(analyzer="char_wb", ngram_range=ngram_range, lowercase=False)
        self.tfidf = _log_tfidf()

    def fit_transform(self, texts: list[str]) -> sparse.csr_matrix:
        """Choose the n-grams, fit their idf weights, and return the (N, n-grams) weights.

        Parameters
        ----------
        texts : list[str]
            N texts

        Raises
        ------
        ValueError
            If no n-gram is in so many texts.
        """
        word_counts = self.words.fit_transform(texts)
        counts = word_counts @ self.ngrams.fit_transform(self.words.get_feature_names_out())
        frequent = counts.getnnz(0) >= self.min_df
        total = np.where(frequent, np.asarray(counts.sum(0)).ravel(), 0)
        columns = np.sort(np.argsort(-total)[: min(self.max_features, frequent.sum())])
        # the others are forgotten: those of all words take hundreds of megabytes
        kept_ngrams = self.ngrams.get_feature_names_out()[columns]
        self.ngrams.vocabulary_ = {ngram: column for column, ngram in enumerate(kept_ngrams)}
        return self.tfidf.fit_transform(_sorted(counts[:, columns]))

    def transform(self, texts: list[str]) -> sparse.csr_matrix:
        """Return the (N, n-grams) weights of N texts.

        Parameters
        ----------
        texts : list[str]
            N texts
        """
        if not any(text.split() for text in texts):
            return sparse.csr_matrix((len(texts), len(self.ngrams.vocabulary_)), dtype=np.float32)
        word_counts = self.words.fit_transform(texts)
        counts = word_counts @ self.ngrams.transform(self.words.get_feature_names_out())
        return self.tfidf.transform(_sorted(counts), copy=False)


def _sorted(counts):
    """Return a sparse matrix with its columns ascending in each row, as sums depend on it."""
    counts = sparse.csr_matrix(counts)
    counts.sort_indices()
    return counts


class NoTerms:
    """The weighting of texts that have no term in common: one feature, which no text has."""

    def transform(self, texts: list[str]) -> sparse.csr_matrix:
        """Return rows of zeros (N, 1) for N texts."""
        return sparse.csr_matrix((len(texts), 1), dtype=np.float32)


_NGRAMS = {"lowercase": False, "sublinear_tf": True, "min_df": 3, "max_features": 300_000}
WEIGHTINGS: dict[str, Callable] = {  # kind -> function that makes what fits and transforms
    # words as khan2021's authors released it: no stop words, no words of more than 90% of the texts
    "tfidf_word": partial(
        _tfidf, lowercase=False, stop_words="english", max_df=0.9, max_features=20_000
    ),
    # the strong baseline: n-grams of characters within word boundaries
    "tfidf_char": partial(WordNgrams, (2, 5), min_df=3, max_features=300_000),
    # n-grams of a text's shape: case, digits, marks, spaces and line ends, but no letter that could
    # tell a topic
    "tfidf_shape": partial(
        _tfidf, preprocessor=shapes, analyzer="char", ngram_range=(1, 6), **_NGRAMS
    ),
    # subwords and pairs of neighbouring subwords, the same features that LSA starts from
    "tfidf_subword": _log_tfidf,
    # not the text but the topics of the posts, each counted like a word
    "topics": _log_tfidf,
    # PAN's baseline (tyo2021 section 3)
    "tfidf_4grams": partial(_tfidf, analyzer="char", ngram_range=(4, 4), max_features=3000),
    # words, with scikit-learn's defaults (sawatphol2022)
    "tfidf": _tfidf,
    # 1 for each word that occurs, however often (sawatphol2022)
    "bow": partial(_counts, binary=True),
}
TOKEN_KINDS = ("tfidf_subword", "topics")  # kinds that count numbers; all others read texts
TEXT_KINDS = tuple(kind for kind in WEIGHTINGS if kind not in TOKEN_KINDS)


def pair_bucket(left, right, buckets: int):
    """Return the hash of a pair of neighbouring tokens, 0 .. buckets - 1.

    Parameters
    ----------
    left, right : int or Tensor
        a token and the token that follows it
    buckets : int
        number of hash values
    """
    # two different primes, so that the pairs (a, b) and (b, a) have different hashes
    return (left * 1_000_003 + right * 7_919) % buckets


def ngram_counts(tokens: Tensor, vocabulary: int, buckets: int) -> tuple[Tensor, Tensor, Tensor]:
    """Count the tokens of each sample, and the pairs of neighbouring tokens within its posts.

    Parameters
    ----------
    tokens : (B, M, L) int64
        PAD where there is no token
    vocabulary : int
        number of different tokens
    buckets : int
        number of hash values for pairs, whose features follow those of the tokens

    Returns
    -------
    Three tensors, an entry for each feature that occurs in a sample: the sample, the feature
    (0 .. vocabulary + buckets - 1) and its count, sorted by sample, then feature.
    """
    n_features = vocabulary + buckets
    length = tokens.shape[2]
    place = (tokens.flatten() != PAD).nonzero().flatten()
    sample = place // (tokens.shape[1] * length)
    token = tokens.flatten()[place]
    # of two neighbours the right one does not begin a post
    is_pair = (place.diff() == 1) & (place[1:] % length != 0)

    pairs = pair_bucket(token[:-1][is_pair], token[1:][is_pair], buckets) + vocabulary
    features = torch.cat([token, pairs])
    samples = torch.cat([sample, sample[1:][is_pair]])
    keys = (samples * n_features + features).sort().values
    key, count = keys.unique_consecutive(return_counts=True)
    return key // n_features, key % n_features, count


def count_matrix(tokens: Tensor, vocabulary: int, buckets: int) -> sparse.csr_matrix:
    """Return the counts of :func:`ngram_counts` as (B, vocabulary + buckets) float32.

    Parameters
    ----------
    tokens : (B, M, L) int64
        PAD where there is no token
    vocabulary : int
        number of different tokens
    buckets : int
        number of hash values for pairs
    """
    counts = ngram_counts(tokens, vocabulary, buckets)
    sample, feature, count = [part.cpu().numpy() for part in counts]
    shape = (len(tokens), vocabulary + buckets)
    return sparse.csr_matrix((count.astype(np.float32), (sample, feature)), shape)


class TfidfEncoder(Encoder):
    """Turn the terms of each sample into a sparse unit row of weights.

    A sample without any known term has a zero row, so its scores are 0, not NaN. All samples have
    one where the fitted texts leave no term, such as those of stop words only.

    Parameters
    ----------
    kind : str
        one of WEIGHTINGS
    tokenizer : Tokenizer
        the store's, of which ``decode(ids) -> text`` and ``vocabulary`` are used
    """

    def __init__(self, kind: str, tokenizer):
        super().__init__()
        self.kind = kind
        self.tokenizer = tokenizer
        self.weighting = WEIGHTINGS[kind]()

    def fit(self, samples: Samples, max_tokens: int = 32) -> "TfidfEncoder":
        """Fit the terms and their idf weights.

        Parameters
        ----------
        samples : Samples
            samples of training authors, or the targets of a gallery
        max_tokens : int
            L, tokens read of each post
        """
        self.fit_transform(samples, max_tokens)
        return self

    def fit_transform(self, samples: Samples, max_tokens: int) -> sparse.csr_matrix:
        """Fit as :meth:`fit` does, and return the (N, terms) rows of the N samples.

        They are those of :meth:`forward`, in half the time, since texts are read once.

        Parameters
        ----------
        samples, max_tokens : Samples, int
            as in :meth:`fit`
        """
        documents = self._documents(samples, max_tokens)
        try:
            weights = self.weighting.fit_transform(documents)
        except ValueError:  # scikit-learn's and WordNgrams', where no term is left
            self.weighting = NoTerms()
            weights = self.weighting.transform(documents)
        self.dim = weights.shape[1]
        return _unit_rows(weights)

    def _documents(self, samples, max_tokens):
        """Return what the weighting is fitted on, and make ready for so many samples."""
        self.topics = len(samples.store.meta["topics"])
        if hasattr(self.weighting, "min_df"):
            # in a gallery of few accounts hardly any term is in three samples
            self.weighting.min_df = min(self.weighting.min_df, 1 + len(samples) // 10)
        blocks = [self._read(batch) for batch in batches_of(samples, max_tokens)]
        if sparse.issparse(blocks[0]):
            return sparse.vstack(blocks).tocsr()
        return list(chain.from_iterable(blocks))

    def forward(self, batch: Batch) -> sparse.csr_matrix:
        """Return the (B, terms) unit rows of a batch of B samples."""
        return _unit_rows(self.weighting.transform(self._read(batch)))

    def _read(self, batch):
        """Return what the weighting takes: counts of topics or of subwords, or texts."""
        if self.kind == "topics":
            # all topics that are not listed share one number, which says nothing of an author
            listed = batch.mask & (batch.topics < self.topics)
            topics = batch.topics.masked_fill(~listed, PAD)
            return count_matrix(topics[..., None], MAX_TOPICS, 0)
        if self.kind == "tfidf_subword":
            return count_matrix(batch.tokens, self.tokenizer.vocabulary, PAIR_BUCKETS)
        texts = []
        for tokens, mask in zip(batch.tokens.cpu().numpy(), batch.mask.cpu().numpy()):
            posts = [self.tokenizer.decode(post[post != PAD]) for post in tokens[mask]]
            texts.append("\n".join(posts))
        return texts


def _unit_rows(weights):
    """Scale rows to unit length, in place: those of a large gallery take a gigabyte."""
    from sklearn.preprocessing import normalize

    return normalize(weights.astype(np.float32, copy=False), copy=False).tocsr()


def fit_tfidf(
    kind: str, store: TokenStore, tokenizer, max_tokens: int = 32, seed: int = 0, posts: int = 16
) -> TfidfEncoder:
    """Fit a :class:`TfidfEncoder` on a training store.

    Parameters
    ----------
    kind : str
        one of WEIGHTINGS
    store : TokenStore
        training posts
    tokenizer : Tokenizer
        the store's tokenizer
    max_tokens : int
        L, tokens read of each post
    seed : int
        seed of the random choice of FIT_POSTS single posts from a larger store; not used where
        subwords or topics are counted
    posts : int
        M, posts of a training sample where subwords or topics are counted; else not used
    """
    if kind in TOKEN_KINDS:
        samples = training_windows(store, posts)
    else:
        shuffled_posts = np.random.default_rng(seed).permutation(store.posts)
        samples = Samples.of_posts(store)[np.sort(shuffled_posts[:FIT_POSTS])]
    return TfidfEncoder(kind, tokenizer).fit(samples, max_tokens)
