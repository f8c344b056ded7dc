"""Evidence for a pair of accounts: its fused score, split exactly into members and, within these, features.

The s-normed score of a member is linear in its raw score, and the raw score of TF-IDF and LSA-WCCN is a sum over
features, so the contributions of a pair add up to its score. The score of the network cannot be split. The constant
of s-norm is one term a member: it stands for how similar the two accounts are to all others.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from scipy.stats import hypergeom

from helpers.accounts.encoder import MAX_TOKENS
from helpers.accounts.gallery import LINK_COSTS, AccountGallery
from helpers.accounts.samples import (
    UNKNOWN,
    concatenate_samples,
    in_memory,
    rooms_of,
    texts_of,
    whole_accounts,
)
from helpers.cleaning.text import WORD
from helpers.encoders.base import Encoder, embed
from helpers.encoders.frequent_tokens import FrequentTokens
from helpers.encoders.lsa import LSAEncoder
from helpers.encoders.tfidf import PAIR_BUCKETS, TfidfEncoder, ngram_counts, pair_bucket
from helpers.encoders.wccn import WCCN
from helpers.evaluation.detection import DetectionCosts
from helpers.figures.style import escape_html
from helpers.tokens.batch import PAD, Batch, Samples

MEAN = "(unlike the mean of all)"
OFFSET = "(s-norm: similarity to all others)"
WHOLE = "(the whole member)"
HIDDEN = " \u2423"  # a word that "LSA-WCCN, frequent" does not see
CHANCE, MORE, OTHERS = 0.001, 2, 3  # of a topic's words, see :func:`topic_words`
SUBWORDS = ("tfidf_subword", "lsa", "lsa_masked")  # whose features are subwords and pairs of them


def contributions(
    gallery: AccountGallery, query: Samples, target: str, name: str = ""
) -> pd.DataFrame:
    """Split a query's score with a target: ``member``, ``feature``, ``contribution``, the largest first.

    query : one sample. target : an account of the gallery. name : of the query, where it is one of the gallery too.
    The contributions add up to the ``score`` of :meth:`~helpers.accounts.gallery.AccountGallery.rank`, which rounds to
    2**-20. Features are those of the query's posts.
    """
    gallery.accounts([target])
    column, own = gallery.columns([target, name])
    rows = []
    for part in gallery.model.used_members:
        member, weight = part.name, part.weight
        opened, query_row = part.opened(query, gallery.targets, MAX_TOKENS)
        slope, offset = opened.line(query_row, column, own)
        target_row = opened.rows[column : column + 1]
        told = list(_features(opened.encoder, query, target_row, gallery.encoder.tokenizer))
        rows += [(member, feature, weight * slope * value) for feature, value in told if value]
        rows.append((member, OFFSET, weight * offset))
    frame = pd.DataFrame(rows, columns=["member", "feature", "contribution"])
    frame = frame.groupby(["member", "feature"], sort=False, as_index=False).sum()
    return frame.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


def scores_by_member(parts: pd.DataFrame) -> pd.DataFrame:
    """Sum :func:`contributions` by member, its offset within it; the total last."""
    sums = parts.groupby("member", sort=False).contribution.sum().sort_values(ascending=False)
    total = pd.Series({"All members": sums.sum()})
    return pd.concat([sums, total]).rename("contribution").rename_axis("member").reset_index()


def topic_words(gallery: AccountGallery, query: Samples, target: str, name: str = "") -> list[str]:
    """List words that two accounts share because they write about the same topic; arguments of :func:`contributions`.

    They are the words that both use in rooms where both write, if other accounts' posts hold them there MORE times as
    often as elsewhere, OTHERS of them or more, and neither of the two holds them more often than these: typical of the
    room, of neither account. Both are one-sided hypergeometric tests of posts, at CHANCE. Empty where no room is shared
    or known, or everybody writes in the same: then nothing tells topic from habit.
    """
    from sklearn.feature_extraction.text import (
        CountVectorizer,  # a second, which a first embedding need not wait for
    )

    column, own = gallery.columns([target, name])
    store = concatenate_samples(query, gallery.targets).store
    account, rooms = (
        np.repeat(np.arange(store.authors), store.posts_per_author()) - 1,
        rooms_of(store),
    )
    pair = account == -1, account == column
    there = np.isin(rooms, [*set(rooms[pair[0]]) & set(rooms[pair[1]]) - {UNKNOWN}])
    others = ~np.isin(account, [-1, column, own])
    here, elsewhere = others & there, others & ~there & (rooms != UNKNOWN)
    if not (here.any() and elsewhere.any()):
        return []
    counter = CountVectorizer(binary=True, analyzer=lambda text: [
        match[0].lower() for match in WORD.finditer(text) if not match[1]])  # fmt: skip
    holds = counter.fit_transform(
        texts_of(store, np.arange(store.posts), gallery.encoder.tokenizer)
    )
    crowd, base, *both = ((np.asarray(holds[rows].sum(0))[0], rows.sum())
                          for rows in (here, elsewhere, *(side & there for side in pair)))  # fmt: skip
    typical = (_by_chance(crowd, base) < CHANCE) & (crowd[0] / crowd[1] >= MORE * base[0] / base[1])
    for side in both:
        typical &= (side[0] > 0) & (_by_chance(side, crowd) >= CHANCE)
    users = [
        len(np.unique(account[here & (holds[:, [word]].toarray()[:, 0] > 0)]))
        for word in np.flatnonzero(typical)
    ]
    return list(counter.get_feature_names_out()[typical][np.array(users, int) >= OTHERS])


def _by_chance(one, other):
    """How often as many posts of ``one`` or more would hold a word, were those of both (held, posts) dealt anew."""
    return hypergeom.sf(one[0] - 1, one[1] + other[1], one[0] + other[0], one[1])


def without_words(gallery: AccountGallery, query: Samples, target: str, words: Collection[str], name: str = "",
                  costs: DetectionCosts = LINK_COSTS) -> pd.Series:  # fmt: skip
    """Rank a pair again after words are erased from its posts: its row of ``rank``, all other accounts as they are.

    words : in lower case, such as :func:`topic_words`; the rest as in :func:`contributions`.
    """
    sides = [
        _erased(side, words, gallery.encoder.tokenizer)
        for side in (query, gallery.accounts([target]))
    ]
    there = name in gallery.names
    changed = gallery.exchanged(
        concatenate_samples(*sides) if there else sides[1], [name, target][not there :]
    )
    return changed.rank(sides[0], [name], len(changed), costs).set_index("target").loc[target]


def _erased(samples, words, tokenizer):
    store = in_memory(samples).store
    posts = [post[~_within([tokenizer.piece(token) for token in post], words)]
             for post in np.split(store.tokens, store.post_offsets[1:-1])]  # fmt: skip
    return whole_accounts(
        replace(store, tokens=np.concatenate(posts), post_offsets=np.cumsum([0, *map(len, posts)]))
    )


def _within(pieces, words):
    """Which of a post's pieces (N,) are part of one of the words."""
    letters = np.zeros(sum(map(len, pieces)), bool)
    for match in WORD.finditer("".join(pieces)):
        letters[slice(*match.span())] = match[0].lower() in words
    return np.array(
        [part.any() for part in np.split(letters, np.cumsum([*map(len, pieces)]))[: len(pieces)]],
        bool,
    )


def highlight(
    parts: pd.DataFrame, samples: Samples, tokenizer, posts: int = 8, words: Collection[str] = ()
) -> str:
    """Show, as HTML, the posts of a sample that a score rests on most: blue speaks for one person, orange against.

    parts : of :func:`contributions`. A subword's colour is what it and its pairs contribute wherever they occur; what
    only TF-IDF of characters, hours or the network see has none. words : are underlined, such as those of
    :func:`topic_words`. Text is escaped.
    """
    worth = parts[parts.member.isin(SUBWORDS)].groupby("feature").contribution.sum()
    batch = samples.batch(slice(0, 1), MAX_TOKENS)
    told = []
    for post in batch.tokens[batch.mask].tolist():
        pieces = [tokenizer.piece(token) for token in post if token != PAD]
        pairs = [worth.get(left + right, 0.0) / 2 for left, right in zip(pieces, pieces[1:])]
        sums = (
            np.array([worth.get(piece, 0.0) for piece in pieces])
            + np.array([0.0, *pairs])
            + np.array([*pairs, 0.0])
        )
        told.append((pieces, sums[: len(pieces)]))
    largest = max((np.abs(sums).max(initial=0) for _, sums in told), default=0) or 1.0
    told = sorted(told, key=lambda one: -np.abs(one[1]).sum())[:posts]
    return "".join(f"<p>{''.join(map(_marked, pieces, sums / largest, _within(pieces, words)))}</p>"
                   for pieces, sums in told)  # fmt: skip


def _marked(piece: str, strength: float, of_topic: bool) -> str:
    colour = "0,114,178" if strength > 0 else "213,94,0"
    shade = f"background:rgba({colour},{abs(strength):.2f});" if abs(strength) >= 0.05 else ""
    style = shade + ("text-decoration:underline dotted" if of_topic else "")
    return f'<span style="{style}">{escape_html(piece)}</span>' if style else escape_html(piece)


def _features(encoder: Encoder, query: Samples, target, tokenizer) -> Iterator[tuple[str, float]]:
    """(feature, its part of the product) of one query and one row of a target."""
    batch = query.batch(slice(0, 1), MAX_TOKENS)
    if isinstance(encoder, TfidfEncoder):
        product = encoder(batch).multiply(target).tocoo()
        if encoder.kind == "tfidf_subword":
            names = _names(batch, encoder.tokenizer.vocabulary, PAIR_BUCKETS, tokenizer.piece)
        else:
            names = encoder.weighting.get_feature_names_out()
        yield from (
            (names[feature], float(value))
            for feature, value in zip(product.coords[1], product.data)
        )
    elif isinstance(encoder, WCCN):
        yield from _whitened(encoder, batch, torch.as_tensor(target)[0], tokenizer)
    else:
        yield (
            WHOLE,
            float(
                torch.as_tensor(embed(encoder, query, MAX_TOKENS))[0] @ torch.as_tensor(target)[0]
            ),
        )


@torch.no_grad()
def _whitened(encoder: WCCN, batch: Batch, target, tokenizer) -> Iterator[tuple[str, float]]:
    """The parts of ``normalize((sum of feature rows - mean) W) . target``, the mean's among them."""
    names, rows = _rows(encoder.encoder, batch, tokenizer)
    length = ((rows.sum(0) - encoder.mean) @ encoder.whiten).norm()
    seen = encoder.whiten @ target / length
    yield from zip(names, (rows @ seen).tolist())
    yield MEAN, -float(encoder.mean @ seen)


def _rows(encoder: Encoder, batch: Batch, tokenizer) -> tuple[list[str], torch.Tensor]:
    """Names of features, and the rows whose sum is the encoder's row of a batch of one sample."""
    if isinstance(encoder, FrequentTokens):
        shown = {
            int(number): token
            for token, number in enumerate(encoder.shown.tolist())
            if number < encoder.encoder.vocabulary - 1
        }
        return _counted(
            encoder.encoder,
            encoder.view(batch),
            lambda token: tokenizer.piece(shown[token]) if token in shown else HIDDEN,
        )
    if isinstance(encoder, LSAEncoder):
        return _counted(encoder, batch, tokenizer.piece)
    hours = batch.hours[batch.mask]
    alone = replace(
        batch, hours=hours[:, None], mask=torch.ones(len(hours), 1, dtype=torch.bool)
    )  # a post a sample
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
            hashed = pair_bucket(left, right, buckets) + vocabulary
            names.setdefault(hashed, {})[f"{spell(left)}{spell(right)}"] = None
    return {feature: " / ".join(each) for feature, each in names.items()}
