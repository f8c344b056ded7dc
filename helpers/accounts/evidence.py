"""Why two accounts are alike: the fused score of a pair, split exactly into members and, within those, features.

A normalised score is a line in the member's own score, and the own score of what counts is a sum over features, so
the contributions of a pair add up to its score. Of a network only the sum is known. What stands for "both resemble
everybody", or nobody, is one negative or positive term a member.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from helpers.accounts.encoder import MAX_TOKENS
from helpers.accounts.gallery import AccountGallery
from helpers.encoders.base import Encoder, embed
from helpers.encoders.lsa import LSAEncoder
from helpers.encoders.masked import Masked
from helpers.encoders.tfidf import BUCKETS, TfidfEncoder, ngram_counts
from helpers.encoders.whitened import Whitened
from helpers.evaluation.normalisation import NormalisedGallery, statistics
from helpers.figures.style import escaped
from helpers.tokens.batch import PAD, Batch, Samples

MEAN = "(unlike the mean of all)"
OFFSET = "(how alike each is to others)"
WHOLE = "(the whole member)"
HIDDEN = " \u2423"  # a word that the masked view does not show
SUBWORDS = ("tfidf_subword", "lsa", "lsa_masked")  # whose features are subwords and pairs of them


def contributions(gallery: AccountGallery, query: Samples, target: str, name: str = "") -> pd.DataFrame:
    """What a query's score with a target is made of: ``member``, ``feature``, ``contribution``, largest first.

    query : one sample. target : an account of the gallery. name : of the query, where it is one of the gallery too.
    The contributions add up to the ``score`` of :meth:`~helpers.accounts.gallery.AccountGallery.rank`, which rounds to
    2**-20. Features are those of the query's posts.
    """
    gallery.accounts([target])
    column, own = gallery.columns([target, name])
    rows, members = [], [member for member, weight in gallery.model.weights.items() if weight]
    for member, (part, weight) in zip(members, gallery.scored.parts, strict=True):
        slope, offset = line(part, query, column, own) if isinstance(part, NormalisedGallery) else (1.0, 0.0)
        inner = getattr(part, "inner", part)
        told = list(_features(inner.encoder, query, inner.rows[column : column + 1], gallery.encoder.tokenizer))
        rows += [(member, feature, weight * slope * value) for feature, value in told if value]
        rows.append((member, OFFSET, weight * offset))
    frame = pd.DataFrame(rows, columns=["member", "feature", "contribution"])
    frame = frame.groupby(["member", "feature"], sort=False, as_index=False).sum()
    return frame.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


def line(part: NormalisedGallery, query: Samples, target: int, own: int) -> tuple[float, float]:
    """(slope, offset) that make of the score of one query and a target the normalised one. own : as in ``scores``."""
    (_, block), = part.inner.scores(query)
    mean_q, scale_q = statistics(block[:, part.drawn])[:, 0] if own < 0 else part.of_targets[:, own]
    mean_t, scale_t = part.of_targets[:, target]
    return scale_q + scale_t, -(mean_q * scale_q + mean_t * scale_t)


def by_member(parts: pd.DataFrame) -> pd.DataFrame:
    """The sums of :func:`contributions` by member, its offset within it; the total last."""
    sums = parts.groupby("member", sort=False).contribution.sum().sort_values(ascending=False)
    total = pd.Series({"all members": sums.sum()})
    return pd.concat([sums, total]).rename("contribution").rename_axis("member").reset_index()


def highlighted(parts: pd.DataFrame, samples: Samples, tokenizer, posts: int = 8) -> str:
    """HTML of the posts of one sample that contributions rest on most: blue speaks for one person, orange against.

    parts : of :func:`contributions`. A subword's colour is what it and its pairs contribute wherever they occur; what
    only TF-IDF of characters, hours or the network see has none. Text is escaped.
    """
    worth = parts[parts.member.isin(SUBWORDS)].groupby("feature").contribution.sum()
    batch = samples.batch(slice(0, 1), MAX_TOKENS)
    told = []
    for post in batch.tokens[batch.mask].tolist():
        pieces = [tokenizer.piece(token) for token in post if token != PAD]
        pairs = [worth.get(left + right, 0.0) / 2 for left, right in zip(pieces, pieces[1:])]
        sums = np.array([worth.get(piece, 0.0) for piece in pieces]) + np.array([0.0, *pairs]) + np.array([*pairs, 0.0])
        told.append((pieces, sums[: len(pieces)]))
    largest = max((np.abs(sums).max(initial=0) for _, sums in told), default=0) or 1.0
    told = sorted(told, key=lambda one: -np.abs(one[1]).sum())[:posts]
    return "".join(f"<p>{''.join(map(_coloured, pieces, sums / largest))}</p>" for pieces, sums in told)


def _coloured(piece: str, strength: float) -> str:
    colour = "0,114,178" if strength > 0 else "213,94,0"
    shade = f' style="background:rgba({colour},{abs(strength):.2f})"' if abs(strength) >= 0.05 else ""
    return f"<span{shade}>{escaped(piece)}</span>"


def _features(encoder: Encoder, query: Samples, target, tokenizer) -> Iterator[tuple[str, float]]:
    """(feature, its part of the product) of one query and one row of a target."""
    batch = query.batch(slice(0, 1), MAX_TOKENS)
    if isinstance(encoder, TfidfEncoder):
        product = encoder(batch).multiply(target).tocoo()
        if encoder.kind == "tfidf_subword":
            names = _names(batch, encoder.tokenizer.vocabulary, BUCKETS, tokenizer.piece)
        else:
            names = encoder.weighting.get_feature_names_out()
        yield from ((names[feature], float(value)) for feature, value in zip(product.coords[1], product.data))
    elif isinstance(encoder, Whitened):
        yield from _whitened(encoder, batch, torch.as_tensor(target)[0], tokenizer)
    else:
        yield WHOLE, float(torch.as_tensor(embed(encoder, query, MAX_TOKENS))[0] @ torch.as_tensor(target)[0])


@torch.no_grad()
def _whitened(encoder: Whitened, batch: Batch, target, tokenizer) -> Iterator[tuple[str, float]]:
    """The parts of ``normalize((sum of feature rows - mean) W) . target``, the mean's among them."""
    names, rows = _rows(encoder.encoder, batch, tokenizer)
    length = ((rows.sum(0) - encoder.mean) @ encoder.whiten).norm()
    seen = encoder.whiten @ target / length
    yield from zip(names, (rows @ seen).tolist())
    yield MEAN, -float(encoder.mean @ seen)


def _rows(encoder: Encoder, batch: Batch, tokenizer) -> tuple[list[str], torch.Tensor]:
    """Names of features, and the rows whose sum is the encoder's row of a batch of one sample."""
    if isinstance(encoder, Masked):
        shown = {int(number): token for token, number in enumerate(encoder.shown.tolist())
                 if number < encoder.encoder.vocabulary - 1}
        return _counted(encoder.encoder, encoder.view(batch),
                        lambda token: tokenizer.piece(shown[token]) if token in shown else HIDDEN)
    if isinstance(encoder, LSAEncoder):
        return _counted(encoder, batch, tokenizer.piece)
    hours = batch.hours[batch.mask]
    alone = replace(batch, hours=hours[:, None], mask=torch.ones(len(hours), 1, dtype=torch.bool))  # a post a sample
    return [f"{hour:02d} h UTC" for hour in hours.tolist()], encoder(alone) / len(hours)


def _counted(encoder: LSAEncoder, batch: Batch, spell) -> tuple[list[str], torch.Tensor]:
    _, feature, count = ngram_counts(batch.tokens, encoder.vocabulary, encoder.buckets)
    weight = (1 + count.float().log()) * encoder.idf[feature]
    latent = encoder.axes[feature] * weight[:, None]
    names = _names(batch, encoder.vocabulary, encoder.buckets, spell)
    return [names[each] for each in feature.tolist()], latent / latent.sum(0).norm()


def _names(batch: Batch, vocabulary: int, buckets: int, spell) -> dict[int, str]:
    """Of each feature that occurs its text; pairs that share a bucket are listed together."""
    names: dict[int, dict] = {}
    tokens = batch.tokens[batch.mask]
    for post in tokens.tolist():
        post = [token for token in post if token != PAD]
        for token in post:
            names.setdefault(token, {})[spell(token)] = None
        for left, right in zip(post, post[1:]):
            hashed = (left * 1_000_003 + right * 7_919) % buckets + vocabulary
            names.setdefault(hashed, {})[f"{spell(left)}{spell(right)}"] = None
    return {feature: " / ".join(each) for feature, each in names.items()}

