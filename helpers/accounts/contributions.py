"""Split the fused score of two accounts into contributions of members and of their features.

The normalised score of a member is a linear function of its raw score, and the raw score of TF-IDF
and of LSA-WCCN is a sum over features. The score of the network has no such sum, so it stays one
term. The constant of the linear function is one more term of each member: it says how similar the
two accounts are to all others.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

import pandas as pd
import torch

from ..encoders.base import Encoder
from ..encoders.lsa import WCCN, FrequentTokens, LSAEncoder
from ..encoders.tfidf import PAIR_BUCKETS, TfidfEncoder, ngram_counts, pair_bucket
from ..tokens.batch import PAD, Samples
from .gallery import AccountGallery
from .samples import MAX_TOKENS

MEAN = "(unlike the mean of all)"
OFFSET = "(similarity to all others)"
WHOLE = "(the whole member)"
NOT_WORDS = (MEAN, OFFSET, WHOLE)  # terms that are no feature of a post
HOUR_ENDS = " h UTC"  # ends the name of an hour
SPELLINGS_JOINER = " / "  # between the texts that one feature stands for
HIDDEN_WORD = " \u2423"  # stands for a word that "LSA-WCCN, frequent" masks

Parts = list[tuple[str, float]]  # (feature, its summand of the raw score) pairs


def contributions(
    gallery: AccountGallery, query: Samples, target: str, name: str = ""
) -> pd.DataFrame:
    """Split a query's score with a target into the contributions of features.

    Parameters
    ----------
    gallery : AccountGallery
        holds the target, and the accounts that the normalisation compares with.
    query : Samples
        one sample.
    target : str
        name of an account of the gallery.
    name : str
        name of the query, where it is itself an account of the gallery.

    Returns
    -------
    Columns ``member``, ``feature``, ``contribution``, sorted by absolute contribution, the largest
    first. ``feature`` is a feature of the query's posts or one of NOT_WORDS; features that
    contribute nothing are left out. The contributions add up to the ``score`` of
    :meth:`~helpers.accounts.gallery.AccountGallery.rank` but for its rounding, see
    :mod:`helpers.evaluation.scores`, which slopes of normalisation make larger.

    Raises
    ------
    ValueError
        Where the target is no account of the gallery.
    """
    gallery.accounts([target])
    target_row, query_row = gallery.columns([target, name])
    pieces = gallery.encoder.tokenizer.pieces
    rows = []
    for member in gallery.model.used_members:
        opened, query_vector = member.opened(query, gallery.targets, MAX_TOKENS)
        slope, offset = opened.line(query_vector, target_row, query_row)
        target_vector = opened.rows[target_row : target_row + 1]
        names = pieces
        if _is_named_by_terms(opened.encoder):
            key = ("terms", opened.encoder)
            names = member.embeddings.once(key, opened.encoder.weighting.get_feature_names_out)
        features = _features(opened.encoder, query, (query_vector, target_vector), names)
        for feature, value in features:
            if value:
                rows.append((member.name, feature, member.weight * slope * value))
        rows.append((member.name, OFFSET, member.weight * offset))

    frame = pd.DataFrame(rows, columns=["member", "feature", "contribution"])
    frame = frame.groupby(["member", "feature"], sort=False, as_index=False).sum()
    return frame.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


def part_of_words(parts: pd.DataFrame, words: Collection[str]) -> float:
    """Return the part of a score that features with some words in them have.

    It is what a score loses, to first order, without these words: in posts that lack them, all
    other words would weigh more.

    Parameters
    ----------
    parts : DataFrame
        result of :func:`contributions`
    words : collection of str
        words in lower case
    """
    pattern = rf"\b(?:{'|'.join(map(re.escape, words))})\b"
    holds = parts.feature.str.lower().str.contains(pattern) & ~parts.feature.isin(NOT_WORDS)
    return float(parts.contribution[holds].sum())


def scores_by_member(parts: pd.DataFrame) -> pd.DataFrame:
    """Sum the result of :func:`contributions` by member, the largest sum first.

    The sum of a member includes the constant of its normalisation.

    Returns
    -------
    Columns ``member``, ``contribution``; the last row, "All members", holds the total.
    """
    sums = parts.groupby("member", sort=False).contribution.sum().sort_values(ascending=False)
    total = pd.Series({"All members": sums.sum()})
    return pd.concat([sums, total]).rename("contribution").rename_axis("member").reset_index()


def _is_named_by_terms(encoder):
    """Return whether the features of an encoder are the terms of its vocabulary, not subwords."""
    return isinstance(encoder, TfidfEncoder) and encoder.kind != "tfidf_subword"


def _features(encoder: Encoder, query: Samples, vectors, names: Sequence[str]) -> Parts:
    """Split one member's raw score, the product of the query's and the target's vector (1, D).

    ``names`` are those of subwords, or of terms, see :func:`_is_named_by_terms`.
    """
    query_vector, target = vectors
    batch = query.batch(slice(0, 1), MAX_TOKENS)
    if isinstance(encoder, TfidfEncoder):
        return _tfidf_features(encoder, batch, target, names)
    if isinstance(encoder, WCCN):
        return _wccn_features(encoder, batch, torch.as_tensor(target)[0], names)
    return [(WHOLE, float(query_vector[0] @ target[0]))]


# Return each feature that query and target share, and the product of its two weights.
def _tfidf_features(encoder, batch, target, names):
    product = encoder(batch).multiply(target).tocoo()
    if not _is_named_by_terms(encoder):
        names = _feature_names(batch, len(names), PAIR_BUCKETS, names)
    features = product.coords[1]
    return [(names[feature], float(value)) for feature, value in zip(features, product.data)]


@torch.no_grad()
def _wccn_features(encoder, batch, target, pieces):
    """Split the product of the whitened query and the target by feature.

    The score is ``normalize((sum of feature rows - mean) W) . target``, W being the whitening
    matrix; the term of the mean is named MEAN.
    """
    if not encoder(batch).any():  # no token is known
        return []
    names, rows = _summands(encoder.encoder, batch, pieces)
    rows = rows.double()
    mean = encoder.mean.double()
    whiten = encoder.whiten.double()
    length = ((rows.sum(0) - mean) @ whiten).norm()
    direction = whiten @ target.double() / length
    return [*zip(names, (rows @ direction).tolist()), (MEAN, -float(mean @ direction))]


def _summands(encoder, batch, pieces):
    """Return the names of F features, and rows (F, D) that add up to the encoder's row."""
    if isinstance(encoder, FrequentTokens):
        shown = {number: pieces[token] for token, number in enumerate(encoder.shown.tolist())}
        shown[encoder.encoder.vocabulary - 1] = HIDDEN_WORD  # all masked words share this number
        return _lsa_summands(encoder.encoder, encoder.view(batch), shown)
    if isinstance(encoder, LSAEncoder):
        return _lsa_summands(encoder, batch, pieces)
    hours = batch.hours[batch.mask]
    has_post = torch.ones(len(hours), 1, dtype=torch.bool)
    single_posts = replace(batch, hours=hours[:, None], mask=has_post)  # each a sample of its own
    return [f"{hour:02d}{HOUR_ENDS}" for hour in hours.tolist()], encoder(single_posts) / len(hours)


# Return the names and rows of :func:`_summands` for LSA, divided by the length of the rows' sum.
def _lsa_summands(encoder, batch, pieces):
    _, feature, count = ngram_counts(batch.tokens, encoder.vocabulary, encoder.buckets)
    weight = (1 + count.double().log()) * encoder.idf[feature]
    latent = encoder.axes[feature] * weight[:, None]
    names = _feature_names(batch, encoder.vocabulary, encoder.buckets, pieces)
    return [names[number] for number in feature.tolist()], latent / latent.sum(0).norm()


def _feature_names(batch, vocabulary, buckets, pieces):
    """Map the number of each feature of a batch to its text.

    A feature is a token or a hashed pair of neighbouring tokens; pairs that fall into one bucket
    share a name, "a b / c d".
    """
    texts = {}
    for post in batch.tokens[batch.mask].tolist():
        tokens = [token for token in post if token != PAD]
        for token in tokens:
            texts.setdefault(token, {})[pieces[token]] = None
        for left, right in zip(tokens, tokens[1:]):
            hashed = pair_bucket(left, right, buckets) + vocabulary
            texts.setdefault(hashed, {})[pieces[left] + pieces[right]] = None
    return {feature: SPELLINGS_JOINER.join(spellings) for feature, spellings in texts.items()}
