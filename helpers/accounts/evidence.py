"""Collect what speaks for and against that two accounts are one person's, for people to read.

The normalised score of a member is a linear function of its raw score, and the raw score of TF-IDF
subword and of LSA-WCCN is a sum over subwords and pairs of them. The scores of the other members
stay one term each. The constant of the linear function is one more term of each member: it says
how similar the two accounts are to all others. Some features are words of the topic that both write
about.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import torch
from scipy.stats import hypergeom

from ..cleaning.text import WORD
from ..core.messages import escape_html
from ..core.names import label
from ..encoders.lsa import WCCN, FrequentTokens, HourProfile
from ..encoders.tfidf import PAIR_BUCKETS, TfidfEncoder, ngram_counts, pair_bucket
from ..evaluation.scores import cosine
from ..tokens.batch import PAD, Samples
from ..tokens.store import concat_ranges
from .gallery import AccountGallery
from .samples import MAX_TOKENS, UNKNOWN_TOPIC, rooms_of, texts_of

MEAN = "(unlike the mean of all)"
OFFSET = "(similarity to all others)"
WHOLE = "(the whole member)"
NOT_WORDS = (MEAN, OFFSET, WHOLE)  # terms that are no feature of a post
SPELLINGS_JOINER = " / "  # between the texts that one feature stands for
HIDDEN_WORD = " \u2423"  # stands for a word that "LSA-WCCN, frequent" masks

MAX_P_VALUE = 0.001  # small, because thousands of words are tested
MIN_RATE_RATIO = 2  # share of posts with a word in the shared rooms, over that share elsewhere
MIN_OTHER_ACCOUNTS = 3  # so many other accounts must use a word in the shared rooms
MAX_COUNTED_POSTS = 20_000  # those of the two accounts, and of others as many as are left

MAX_FEATURES = 8  # that speak for a pair, and that speak against it
SHOWN_POSTS = 5  # of each account
FOR_COLOUR = "0,114,178"
AGAINST_COLOUR = "213,94,0"
MIN_STRENGTH = 0.05  # share of the strongest subword; paler colours would not be seen


def pair_evidence(galleries: list[AccountGallery], account_a: str, account_b: str) -> dict:
    """Collect the evidence of one pair of accounts.

    Parameters
    ----------
    galleries : list of AccountGallery
        one that holds both accounts, or one of each; the parts are then the means of both
        directions
    account_a, account_b : str
        their names

    Returns
    -------
    ``score`` of the pair; ``systems``, name of a system that reads the posts -> its part of the
    score; ``of_words`` and ``of_hours``, the part of words and letters, and that of hours of
    posting; ``speaks_for`` and ``speaks_against``, see :func:`strongest_signs`; ``words_of_topic``,
    words that both use, as others do where both write, and ``part_of_topic``, the part of features
    that hold these words; ``activity``, see :func:`activity`, None where times are not known;
    ``posts_html``, of both accounts the posts that contribute most, escaped
    """
    first, second = galleries[0], galleries[-1]
    samples = [first.accounts([account_a]), second.accounts([account_b])]
    own_name = ""
    if first is second:
        own_name = account_a
    parts = contributions(second, samples[0], account_b, own_name)
    if first is not second:
        parts = pd.concat([parts, contributions(first, samples[1], account_a)])
        parts = parts.assign(contribution=parts.contribution / 2)
        parts = _summed(parts)
    words = topic_words(second, samples[0], account_b, own_name)
    *of_members, (_, score) = scores_by_member(parts).to_numpy().tolist()
    systems = {label(name): value for name, value in of_members}
    of_hours = systems.get(label("hours"), 0.0)
    tokenizer = second.encoder.tokenizer
    texts = [texts_read(side, tokenizer) for side in samples]
    return {
        "score": score,
        "systems": systems,
        "of_words": score - of_hours,
        "of_hours": of_hours,
        "speaks_for": strongest_signs(parts[parts.contribution > 0], words, texts),
        "speaks_against": strongest_signs(parts[parts.contribution < 0], words, texts),
        "words_of_topic": words,
        "part_of_topic": part_of_words(parts, words) if words else 0.0,
        "activity": activity(*samples) if second.hours else None,
        "posts_html": [highlight(parts, side, tokenizer, SHOWN_POSTS, words) for side in samples],
    }


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
    batch = query.batch(slice(0, 1), MAX_TOKENS)
    rows = []
    for member in gallery.model.used_members:
        opened, query_vector = member.opened(query, gallery.targets, MAX_TOKENS)
        slope, offset = opened.line(query_vector, target_row, query_row)
        vectors = (query_vector, opened.rows[target_row : target_row + 1])
        for feature, value in _features(opened.encoder, batch, vectors, gallery):
            if value:
                rows.append((member.name, feature, member.weight * slope * value))
        rows.append((member.name, OFFSET, member.weight * offset))

    return _summed(pd.DataFrame(rows, columns=["member", "feature", "contribution"]))


def _features(encoder, batch, vectors, gallery):
    """Split one member's raw score, the product of two vectors (1, D), into (feature, value)."""
    query_vector, target = vectors
    pieces = gallery.encoder.tokenizer.pieces
    if isinstance(encoder, TfidfEncoder) and encoder.kind == "tfidf_subword":
        product = query_vector.multiply(target).tocoo()
        names = _feature_names(batch, len(pieces), PAIR_BUCKETS, pieces)
        numbers = product.coords[1].tolist()
        return [(names[number], value) for number, value in zip(numbers, product.data.tolist())]
    if isinstance(encoder, WCCN) and not isinstance(encoder.encoder, HourProfile):
        return _lsa_features(encoder, batch, torch.as_tensor(target)[0].double(), pieces)
    return [(WHOLE, cosine(query_vector, target).item())]


@torch.no_grad()
def _lsa_features(encoder, batch, target, pieces):
    """Split the product of a whitened query and a target by feature.

    The score is ``normalize((sum of feature rows - mean) W) . target``, W being the whitening
    matrix; the term of the mean is named MEAN.
    """
    lsa = encoder.encoder
    if isinstance(lsa, FrequentTokens):
        batch = lsa.view(batch)
        pieces = {number: pieces[token] for token, number in enumerate(lsa.shown.tolist())}
        lsa = lsa.encoder
        pieces[lsa.vocabulary - 1] = HIDDEN_WORD  # all masked words share this number
    _, feature, count = ngram_counts(batch.tokens, lsa.vocabulary, lsa.buckets)
    weight = (1 + count.double().log()) * lsa.idf[feature]
    latent = lsa.axes[feature] * weight[:, None]
    length = latent.sum(0).norm()
    if not length:  # no token is known
        return []
    mean = encoder.mean.double()
    whiten = encoder.whiten.double()
    direction = whiten @ target / ((latent.sum(0) / length - mean) @ whiten).norm()
    values = (latent @ direction / length).tolist()
    names = _feature_names(batch, lsa.vocabulary, lsa.buckets, pieces)
    features = [(names[number], value) for number, value in zip(feature.tolist(), values)]
    return [*features, (MEAN, -float(mean @ direction))]


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


def _summed(parts):
    """Add up the contributions of each feature of a member, and sort them by size."""
    sums = parts.groupby(["member", "feature"], sort=False, as_index=False).contribution.sum()
    return sums.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


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
    own = gallery.columns([target, name])
    others = np.setdiff1d(np.arange(len(gallery)), own)
    posts = pd.concat(
        [
            _posts_of(query, np.zeros(1, int), "query"),
            _posts_of(gallery.targets, own[:1], "target"),
            _posts_of(gallery.targets, others, "here").sample(frac=1, random_state=0),
        ]
    )
    rooms = [set(posts.room[posts.group == writer]) for writer in ("query", "target")]
    is_shared = posts.room.isin(rooms[0] & rooms[1] - {UNKNOWN_TOPIC})
    is_elsewhere = ~is_shared & (posts.group == "here") & (posts.room != UNKNOWN_TOPIC)
    posts.loc[is_elsewhere, "group"] = "elsewhere"
    posts = posts[is_shared | is_elsewhere].head(MAX_COUNTED_POSTS)
    sizes = posts.group.value_counts()
    if not {"here", "elsewhere"} <= set(sizes.index):
        return []

    words = []
    for group, of_group in posts.groupby("group"):
        store = query.store if group == "query" else gallery.targets.store
        texts = texts_of(store, of_group.post, gallery.encoder.tokenizer)
        # marks such as those of links are no words
        matches = [[m[0].lower() for m in WORD.finditer(text) if not m[1]] for text in texts]
        words.append(of_group.assign(word=[set(of_text) for of_text in matches]).explode("word"))
    words = pd.concat(words)
    table = pd.crosstab(words.word, words.group)
    table = table[(table["query"] > 0) & (table.target > 0)]
    users = words[words.group == "here"].groupby("word").account.nunique()
    rate = table.here / sizes["here"]
    is_typical = rate >= MIN_RATE_RATIO * table.elsewhere / sizes["elsewhere"]
    is_typical &= users.reindex(table.index, fill_value=0) >= MIN_OTHER_ACCOUNTS
    is_typical &= _p_value(table, sizes, "here", "elsewhere") < MAX_P_VALUE
    for writer in ("query", "target"):
        is_typical &= _p_value(table, sizes, writer, "here") >= MAX_P_VALUE
    return list(table.index[is_typical])


def _posts_of(samples, rows, group):
    """Return the posts of some samples with their rooms and accounts, as a part of a group."""
    posts, _ = concat_ranges(samples.first[rows], samples.count[rows])
    account = np.repeat(rows, samples.count[rows])
    room = rooms_of(samples.store)[posts]
    return pd.DataFrame({"group": group, "account": account, "post": posts, "room": room})


def _p_value(counts, posts, sample, remainder):
    """Return the p-values of one-sided hypergeometric tests for words, (words,).

    They are the probabilities that at least so many posts of ``sample`` hold a word if the posts of
    ``sample`` and ``remainder`` were assigned to the two at random.
    """
    total = posts[sample] + posts[remainder]
    holding = counts[sample] + counts[remainder]
    return hypergeom.sf(counts[sample] - 1, total, holding, posts[sample])


def texts_read(sample: Samples, tokenizer) -> list[str]:
    """Return the texts of the first sample's posts, as far as they are read.

    Parameters
    ----------
    sample : Samples
        of one account
    tokenizer : Tokenizer
        has made its tokens
    """
    batch = sample.batch(slice(0, 1), MAX_TOKENS)
    texts = []
    for post in batch.tokens[batch.mask].tolist():
        text = tokenizer.decode([token for token in post if token != PAD])
        # a feature may be the blank before or after a word
        texts.append(f" {' '.join(text.split())} ")
    return texts


def strongest_signs(
    parts: pd.DataFrame, words: Collection[str], texts: list[list[str]]
) -> list[dict]:
    """Return the strongest features that are no words of a topic, as people read them.

    Parameters
    ----------
    parts : DataFrame
        rows of :func:`contributions`, the strongest first
    words : collection of str
        words of a topic, in lower case
    texts : list of list of str
        results of :func:`texts_read` for account a and for account b

    Returns
    -------
    ``text``; ``system``, which reads it; ``part``, its part of the score; ``posts_a`` and
    ``posts_b``, numbers of the posts of each account in which it is
    """
    # nobody can count in how many posts a hidden word is, which stands for many words
    is_hidden = parts.feature.isin(NOT_WORDS) | parts.feature.str.contains(HIDDEN_WORD)
    word = parts.feature.str.strip().str.lower()
    is_shown = ~is_hidden & ~word.isin(words) & (word != "")
    signs = []
    for row in parts[is_shown].head(MAX_FEATURES).itertuples():
        sign = {"text": row.feature, "system": label(row.member), "part": row.contribution}
        spellings = row.feature.split(SPELLINGS_JOINER)
        for letter, of_account in zip("ab", texts):
            holds = [any(form in text for form in spellings) for text in of_account]
            sign[f"posts_{letter}"] = sum(holds)
        signs.append(sign)
    return signs


def activity(a: Samples, b: Samples) -> dict:
    """Return when two accounts wrote the posts that are read, and how often at once.

    Parameters
    ----------
    a, b : Samples
        one sample each

    Returns
    -------
    The days ``first_a``, ``last_a``, ``first_b``, ``last_b``; ``same_days`` and ``same_minutes``,
    numbers of days and minutes in which both wrote
    """
    times = [side.store.time[side.first[0] :][: side.count[0]] for side in (a, b)]
    facts = {}
    for letter, seconds in zip("ab", times, strict=True):
        facts[f"first_{letter}"] = f"{datetime.fromtimestamp(seconds.min(), UTC):%Y-%m-%d}"
        facts[f"last_{letter}"] = f"{datetime.fromtimestamp(seconds.max(), UTC):%Y-%m-%d}"
    for unit, length in (("days", 86400), ("minutes", 60)):
        facts[f"same_{unit}"] = len(np.intersect1d(times[0] // length, times[1] // length))
    return facts


def highlight(
    parts: pd.DataFrame, samples: Samples, tokenizer, posts: int = 8, words: Collection[str] = ()
) -> str:
    """Return HTML of the posts of a sample that contribute most to a score, strongest first.

    Blue subwords support that one person wrote both samples, orange ones speak against it. The
    strength of a colour is the contribution of the subword and half of that of its pairs with its
    two neighbours, relative to the strongest subword. Text is escaped.

    Parameters
    ----------
    parts : DataFrame
        result of :func:`contributions`.
    samples : Samples
        the first sample is shown, the others are ignored.
    tokenizer : Tokenizer
        has made the tokens of the samples.
    posts : int
        maximum number of posts to show.
    words : Collection[str]
        words in lower case to underline, such as those that
        :func:`topic_words` returns.
    """
    contribution = parts.groupby("feature").contribution.sum().to_dict()
    batch = samples.batch(slice(0, 1), MAX_TOKENS)

    rated_posts = []
    for post in batch.tokens[batch.mask].tolist():
        pieces = [tokenizer.piece(token) for token in post if token != PAD]
        rated_posts.append((_strengths(pieces, contribution), pieces))
    largest = max((np.abs(strengths).max(initial=0) for strengths, _ in rated_posts), default=0)
    order = np.argsort([-np.abs(strengths).sum() for strengths, _ in rated_posts], kind="stable")
    paragraphs = []
    for number in order[:posts]:
        strengths, pieces = rated_posts[number]
        underlined = pieces_of_words(pieces, words)
        relative = strengths / (largest or 1.0)
        spans = [_span(*values) for values in zip(pieces, relative, underlined)]
        paragraphs.append(f"<p>{''.join(spans)}</p>")
    return "".join(paragraphs)


def _strengths(pieces, contribution):
    """Return, for each piece, its contribution plus half of that of its pairs with neighbours."""
    singles = np.array([contribution.get(piece, 0.0) for piece in pieces])
    pairs = [contribution.get(left + right, 0.0) / 2 for left, right in zip(pieces, pieces[1:])]
    return singles + np.array([0.0, *pairs]) + np.array([*pairs, 0.0])


# Return a piece as HTML: with a colour for its strength in [-1, 1], underlined or plain.
def _span(piece, strength, underlined):
    text = escape_html(piece)
    style = ""
    if abs(strength) >= MIN_STRENGTH:
        colour = FOR_COLOUR if strength > 0 else AGAINST_COLOUR
        style = f"background:rgba({colour},{abs(strength):.2f});"
    if underlined:
        style += "text-decoration:underline dotted"
    if not style:
        return text
    return f'<span style="{style}">{text}</span>'


def pieces_of_words(pieces: list[str], words: Collection[str]) -> np.ndarray:
    """Tell which pieces of a post are part of one of the given words.

    Parameters
    ----------
    pieces : list[str]
        N texts, which make up the post when they are joined.
    words : Collection[str]
        words in lower case.

    Returns
    -------
    (N,) bool, True also for a piece that holds only a part of a word.
    """
    in_word = np.zeros(sum(len(piece) for piece in pieces), bool)  # one per letter of the post
    for match in WORD.finditer("".join(pieces)):
        in_word[match.start() : match.end()] = match[0].lower() in words
    piece_ends = np.cumsum([len(piece) for piece in pieces])
    letters_of_piece = np.split(in_word, piece_ends)[: len(pieces)]
    return np.array([letters.any() for letters in letters_of_piece], bool)
