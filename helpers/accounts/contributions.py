"""Split the fused score of two accounts into contributions of members and of their features.

The normalised score of a member is a linear function of its raw score, and the raw score of TF-IDF
and of LSA-WCCN is a sum over features. The score of the network has no such sum, so it stays one
term. The constant of the linear function is one more term of each member: it says how similar the
two accounts are to all others. Some features are words of the topic that both write about.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
import torch
from scipy.stats import hypergeom

from ..cleaning.text import WORD
from ..encoders.base import Encoder
from ..encoders.lsa import WCCN, FrequentTokens, LSAEncoder
from ..encoders.tfidf import PAIR_BUCKETS, TfidfEncoder, ngram_counts, pair_bucket
from ..tokens.batch import PAD, Samples
from .gallery import AccountGallery
from .samples import MAX_TOKENS, UNKNOWN_TOPIC, in_memory, rooms_of, texts_of

MEAN = "(unlike the mean of all)"
OFFSET = "(similarity to all others)"
WHOLE = "(the whole member)"
NOT_WORDS = (MEAN, OFFSET, WHOLE)  # terms that are no feature of a post
HOUR_ENDS = " h UTC"  # ends the name of an hour
SPELLINGS_JOINER = " / "  # between the texts that one feature stands for
HIDDEN_WORD = " \u2423"  # stands for a word that "LSA-WCCN, frequent" masks

MAX_P_VALUE = 0.001  # small, because thousands of words are tested
MIN_RATE_RATIO = 2  # share of posts with a word in the shared rooms, over that share elsewhere
MIN_OTHER_ACCOUNTS = 3  # so many other accounts must use a word in the shared rooms
MAX_OTHER_POSTS = 20_000  # posts of other accounts that are counted, drawn at random if more
OF_QUERY = -1  # stands for the account of the query

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


def topic_words(gallery: AccountGallery, query: Samples, target: str, name: str = "") -> list[str]:
    """List the words that two accounts share because they write about the same topic.

    Only rooms in which both accounts write are looked at, and words that both use there. Such a
    word is listed if it is typical of these rooms, and of neither account:

    - at least MIN_OTHER_ACCOUNTS other accounts use it there;
    - the share of other accounts' posts that hold it is at least MIN_RATE_RATIO times as large
      there as in other rooms, and significantly larger;
    - neither of the two accounts uses it significantly more often there than the others.

    Significance is that of a one-sided hypergeometric test of numbers of posts, at MAX_P_VALUE.

    Parameters
    ----------
    gallery, query, target, name : AccountGallery, Samples, str, str
        as in :func:`contributions`.

    Returns
    -------
    The words in lower case. The list is empty where the two share no known room, or the other
    accounts have no posts in these rooms or none in other ones: topic and habit cannot be told
    apart then.
    """
    target_row, query_row = gallery.columns([target, name])
    stores = [in_memory(samples).store for samples in (query, gallery.targets)]
    rooms = np.concatenate([rooms_of(store) for store in stores])
    accounts = np.repeat(np.arange(len(gallery)), stores[1].posts_per_author())
    account = np.append(np.full(stores[0].posts, OF_QUERY), accounts)
    groups = _groups_of_posts(rooms, account, target_row, query_row)
    if not (len(groups["others_here"]) and len(groups["others_elsewhere"])):
        return []

    words = {}
    tokenizer = gallery.encoder.tokenizer
    for group in ("query_here", "target_here"):
        words[group] = _words_of_posts(stores, groups[group], tokenizer)
    shared = set().union(*words["query_here"]) & set().union(*words["target_here"])
    if not shared:
        return []
    groups |= _drawn_others(groups)
    for group in ("others_here", "others_elsewhere"):
        words[group] = _words_of_posts(stores, groups[group], tokenizer)
    users = pd.Series(words["others_here"]).explode().to_frame("word")
    users["account"] = account[groups["others_here"]][users.index]
    counts = {group: Counter(chain.from_iterable(posts)) for group, posts in words.items()}
    counts["accounts"] = users.groupby("word").account.nunique()
    table = pd.DataFrame(counts, sorted(shared)).fillna(0)
    is_typical = _is_typical(table, {group: len(posts) for group, posts in words.items()})
    return list(table.index[is_typical & (table.accounts >= MIN_OTHER_ACCOUNTS)])


def _groups_of_posts(rooms, account, target, query_row):
    """Return the numbers of the posts of each group of writers, in rooms of both accounts or not.

    "here" are the rooms where both write, "elsewhere" all other known rooms.
    """
    of_query = account == OF_QUERY
    of_target = account == target
    of_others = ~np.isin(account, [OF_QUERY, target, query_row])
    shared_rooms = set(rooms[of_query]) & set(rooms[of_target]) - {UNKNOWN_TOPIC}
    in_shared_room = np.isin(rooms, list(shared_rooms))
    masks = {
        "others_here": of_others & in_shared_room,
        "others_elsewhere": of_others & ~in_shared_room & (rooms != UNKNOWN_TOPIC),
        "query_here": of_query & in_shared_room,
        "target_here": of_target & in_shared_room,
    }
    return {group: np.flatnonzero(mask) for group, mask in masks.items()}


def _drawn_others(groups):
    """Return the posts of others here and elsewhere, of which at most MAX_OTHER_POSTS are drawn."""
    of_others = np.union1d(groups["others_here"], groups["others_elsewhere"])
    drawn = np.random.default_rng(0).permutation(of_others)[:MAX_OTHER_POSTS]
    names = ("others_here", "others_elsewhere")
    return {group: np.intersect1d(groups[group], drawn) for group in names}


def _words_of_posts(stores, numbers, tokenizer):
    """Return the set of words of each post; ``numbers``, in order, count the posts of two stores.

    Words are in lower case; placeholders such as those of links are none.
    """
    of_first = numbers < stores[0].posts
    texts = texts_of(stores[0], numbers[of_first], tokenizer)
    texts += texts_of(stores[1], numbers[~of_first] - stores[0].posts, tokenizer)
    return [{match[0].lower() for match in WORD.finditer(text) if not match[1]} for text in texts]


def _is_typical(counts, posts):
    """Tell which words are typical of the shared rooms and of neither account, (words,) bool.

    ``counts`` has the numbers of posts with each word, ``posts`` the number of all, by group.
    """
    rate = counts.others_here / posts["others_here"]
    rate_elsewhere = counts.others_elsewhere / posts["others_elsewhere"]
    is_typical = _p_value(counts, posts, "others_here", "others_elsewhere") < MAX_P_VALUE
    is_typical &= rate >= MIN_RATE_RATIO * rate_elsewhere
    for account in ("query_here", "target_here"):
        is_typical &= _p_value(counts, posts, account, "others_here") >= MAX_P_VALUE
    return is_typical


def _p_value(counts, posts, sample, remainder):
    """Return the p-values of one-sided hypergeometric tests for words, (words,).

    They are the probabilities that at least so many posts of ``sample`` hold a word if the posts of
    ``sample`` and ``remainder`` were assigned to the two at random.
    """
    total = posts[sample] + posts[remainder]
    holding = counts[sample] + counts[remainder]
    return hypergeom.sf(counts[sample] - 1, total, holding, posts[sample])
