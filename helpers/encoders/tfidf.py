"""Encoders that count words: the baselines a user can fit in a minute, and the topic model of ARR.

They read the same text as every encoder, the first L tokens of each post of a sample: a table that
gives a baseline whole posts and an encoder 32 tokens of each is not a fair table.

Letters: B samples, M posts a sample, L tokens a post.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import chain

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from helpers.encoders.base import Encoder, batches_of
from helpers.tokens.batch import PAD, Batch, Samples
from helpers.tokens.store import TokenStore
from helpers.tokens.windows import training_windows

PAIR_BUCKETS = 2**18  # for the hashes of pairs of subwords
MAX_TOPICS = 2**16  # a store lists no more
FIT_POSTS = 500_000  # as released


def shapes(text: str) -> str:
    """Return a text without its letters: "A" for a capital of A-Z, "a" for a run of others.

    Digits become "0", a run of them one. It is text distortion (Stamatatos 2017), which keeps
    frequent words, taken to its end.
    """
    text = re.sub(r"\d+", "0", text.strip())
    text = re.sub("[A-Z]", "A", text)
    return re.sub(r"[^\W\d_A-Z]+", "a", text)


# scikit-learn is imported where it is used: that takes a second, and a trained encoder needs none


def _tfidf(**settings):
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(dtype=np.float32, **settings)


def _tfidf_of_counts():
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer(sublinear_tf=True)


def _bag_of_words():
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(dtype=np.float32, binary=True)


_NGRAMS = {"lowercase": False, "sublinear_tf": True, "min_df": 3, "max_features": 300_000}
WEIGHTINGS: dict[str, Callable] = {  # kind -> () -> what fits and transforms
    # as khan2021's authors released it: without stop words and words in more than 90% of the texts
    "tfidf_word": partial(
        _tfidf, lowercase=False, stop_words="english", max_df=0.9, max_features=20_000
    ),
    # the strong one: characters within word boundaries
    "tfidf_char": partial(_tfidf, analyzer="char_wb", ngram_range=(2, 5), **_NGRAMS),
    # no letter is left to tell a topic: case, digits, marks, spaces, line ends as they follow
    "tfidf_shape": partial(
        _tfidf, preprocessor=shapes, analyzer="char", ngram_range=(1, 6), **_NGRAMS
    ),
    # the encoder's own subwords and pairs of neighbours: what LSA starts from
    "tfidf_subword": _tfidf_of_counts,
    # no text: each listed topic is a word
    "topics": _tfidf_of_counts,
    # PAN's baseline (tyo2021 section 3)
    "tfidf_4grams": partial(_tfidf, analyzer="char", ngram_range=(4, 4), max_features=3000),
    # scikit-learn's defaults (sawatphol2022)
    "tfidf": _tfidf,
    # words, there or not (sawatphol2022)
    "bow": _bag_of_words,
}


def pair_bucket(left, right, buckets: int):
    """Return the hash of neighbouring tokens, 0 .. buckets - 1.

    Parameters
    ----------
    left, right : int or Tensor
        tokens
    buckets : int
        number of different hashes
    """
    return (left * 1_000_003 + right * 7_919) % buckets


def ngram_counts(tokens: Tensor, vocabulary: int, buckets: int) -> tuple[Tensor, Tensor, Tensor]:
    """Count the tokens of each sample, and the pairs of neighbouring tokens within its posts.

    Parameters
    ----------
    tokens : (B, M, L) int64
        PAD where there is none
    vocabulary : int
        kinds of tokens
    buckets : int
        for the hashes of pairs, whose features follow those of the tokens

    Returns
    -------
    Three tensors, an entry for each feature that occurs in a sample: the sample, the feature
    (0 .. vocabulary + buckets - 1) and its count, sorted by sample, then feature.
    """
    n_features = vocabulary + buckets
    sample = torch.arange(len(tokens), device=tokens.device)[:, None, None].expand_as(tokens)
    left = tokens[:, :, :-1]
    right = tokens[:, :, 1:]
    is_token = tokens != PAD
    is_pair = right != PAD

    pairs = pair_bucket(left[is_pair], right[is_pair], buckets) + vocabulary
    features = torch.cat([tokens[is_token], pairs])
    samples = torch.cat([sample[is_token], sample[:, :, 1:][is_pair]])
    key, count = (samples * n_features + features).unique(return_counts=True)
    return key // n_features, key % n_features, count


def count_matrix(tokens: Tensor, vocabulary: int, buckets: int) -> sparse.csr_matrix:
    """Return the counts of :func:`ngram_counts` as (B, vocabulary + buckets) float32.

    Parameters
    ----------
    tokens : (B, M, L) int64
        PAD where there is none
    vocabulary : int
        kinds of tokens
    buckets : int
        for the hashes of pairs
    """
    counts = ngram_counts(tokens, vocabulary, buckets)
    sample, feature, count = [part.cpu().numpy() for part in counts]
    shape = (len(tokens), vocabulary + buckets)
    return sparse.csr_matrix((count.astype(np.float32), (sample, feature)), shape)


class TfidfEncoder(Encoder):
    """Weigh what a sample counts, as sparse unit rows.

    A sample without any known term is a zero row: score 0, not NaN.

    Parameters
    ----------
    kind : str
        one of WEIGHTINGS
    tokenizer : Tokenizer
        has ``decode(ids) -> text`` and ``vocabulary``
    """

    def __init__(self, kind: str, tokenizer):
        super().__init__()
        self.kind = kind
        self.tokenizer = tokenizer
        self.weighting = WEIGHTINGS[kind]()

    def fit(self, samples: Samples, max_tokens: int = 32) -> "TfidfEncoder":
        """Fit vocabulary and idf.

        Parameters
        ----------
        samples : Samples
            of training authors, or of a gallery
        max_tokens : int
            L, tokens read of each post

        Raises
        ------
        ValueError
            Where the texts hold no term.
        """
        self.topics = len(samples.store.meta["topics"])
        blocks = [self._read(batch) for batch in batches_of(samples, max_tokens)]
        if sparse.issparse(blocks[0]):
            documents = sparse.vstack(blocks).tocsr()
        else:
            documents = list(chain.from_iterable(blocks))

        if hasattr(self.weighting, "min_df"):
            # of a gallery of a few accounts little is in several
            self.weighting.min_df = min(self.weighting.min_df, 1 + len(samples) // 10)
        self.weighting.fit(documents)
        self.dim = self.weighting.transform(documents[:1]).shape[1]
        return self

    def forward(self, batch: Batch) -> sparse.csr_matrix:
        """Return the (B, terms) unit rows of a batch of B samples."""
        from sklearn.preprocessing import normalize

        weights = self.weighting.transform(self._read(batch))
        return normalize(weights.astype(np.float32)).tocsr()

    def _read(self, batch):
        """Return what the weighting takes: counts of topics or of subwords, or texts."""
        if self.kind == "topics":
            # a topic that is not listed is no trait of an author that could have been weighed
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
        of the store
    max_tokens : int
        L, tokens read of each post
    seed : int
        of the posts that are drawn; at most FIT_POSTS single ones are, as released
    posts : int
        M, posts of a training sample where subwords or topics are counted
    """
    if kind in ("tfidf_subword", "topics"):
        samples = training_windows(store, posts)
    else:
        shuffled_posts = np.random.default_rng(seed).permutation(store.posts)
        samples = Samples.of_posts(store)[np.sort(shuffled_posts[:FIT_POSTS])]
    return TfidfEncoder(kind, tokenizer).fit(samples, max_tokens)
