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
from .answers import Answer
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
MAX_COUNTED_POSTS = 10_000  # those of the two accounts, and of others as many as are left

MAX_FEATURES = 8  # that speak for a pair, and that speak against it
MIN_WEIGHT = 0.1  # least part of a sign that is shown, as a share of the strongest one's
SHOWN_POSTS = 5  # of each account
FOR_COLOUR = "0,114,178"
AGAINST_COLOUR = "213,94,0"
MIN_STRENGTH = 0.05  # share of the strongest subword; paler colours would not be seen


def evidence(answer: Answer, pair: tuple[str, str]) -> dict:
    """Collect the evidence of one pair of accounts.

    Parameters
    ----------
    answer : Answer
        about one list, or about two; the parts are then the means of both directions
    pair : tuple of str
        names of account a and account b

    Returns
    -------
    ``score`` of the pair; ``systems``, name of a system that reads the posts -> its part of the
    score; ``of_words`` and ``of_hours``, the part of words and letters, and that of hours of
    posting; ``speaks_for`` and ``speaks_against``, see :func:`strongest_signs`; ``words_of_topic``,
    words that both use, as others do where both write, and ``part_of_topic``, the part of features
    that hold these words; ``activity``, see :func:`activity`, None where times are not known;
    ``posts_html``, of both accounts the posts that contribute most, escaped
    """
    first, second = answer.galleries[0], answer.galleries[-1]
    samples = [first.accounts(pair[:1]), second.accounts(pair[1:])]
    own_name = ""
    if answer.is_one:
        own_name = pair[0]
    parts = contributions(second, samples[0], pair[1], own_name)
    if not answer.is_one:
        parts = pd.concat([parts, contributions(first, samples[1], pair[0])])
        parts["contribution"] /= 2
    words = topic_words(second, samples[0], pair[1], own_name)
    *of_members, (_, score) = scores_by_member(parts).to_numpy().tolist()
    systems = {label(name): value for name, value in of_members}
    of_hours = systems.get(label("hours"), 0.0)
    tokenizer = second.encoder.tokenizer
    return {
        "score": score,
        "systems": systems,
        "of_words": score - of_hours,
        "of_hours": of_hours,
        **strongest_signs(parts, words, [texts_read(side, tokenizer) for side in samples]),
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
    opened = gallery.model.opened(query, gallery.targets, MAX_TOKENS)
    features = {}
    for shared, (of_targets, query_vector) in opened.items():
        vectors = (query_vector, of_targets.rows[target_row : target_row + 1])
        features[shared] = _features(of_targets.encoder, batch, vectors, gallery)
    rows = []
    for member in gallery.model.used_members:
        of_targets, query_vector = opened[member.shared]
        slope, offset = of_targets.line(query_vector, target_row, query_row, member.steps)
        for feature, value in features[member.shared]:
            if value:
                rows.append((member.name, feature, member.weight * slope * value))
        rows.append((member.name, OFFSET, member.weight * offset))

    parts = pd.DataFrame(rows, columns=["member", "feature", "contribution"])
    parts = parts.groupby(["member", "feature"], sort=False, as_index=False).sum()
    return parts.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


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
    for tokens in _posts_read(batch):
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
    sums["All members"] = sums.sum()
    return sums.reset_index()


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
    rooms = posts.groupby("group").room.agg(set)
    is_shared = posts.room.isin(rooms["query"] & rooms["target"] - {UNKNOWN_TOPIC})
    is_elsewhere = ~is_shared & (posts.group == "here") & (posts.room != UNKNOWN_TOPIC)
    posts["group"] = posts.group.mask(is_elsewhere, "elsewhere")
    posts = posts[is_shared | is_elsewhere].head(MAX_COUNTED_POSTS)
    sizes = posts.group.value_counts()
    if not {"here", "elsewhere"} <= set(sizes.index):
        return []

    words = []
    for group, of_group in posts.groupby("group"):
        store = query.store if group == "query" else gallery.targets.store
        texts = texts_of(store, of_group.post, gallery.encoder.tokenizer)
        words.append(of_group.assign(word=list(map(_words_of, texts))).explode("word"))
    words = pd.concat(words)
    table = words.groupby(["word", "group"]).size().unstack(fill_value=0)
    users = words[words.group == "here"].groupby("word").account.nunique()
    rate = table.div(sizes)
    table = table[
        (table["query"] > 0)
        & (table.target > 0)
        & (users.reindex(table.index, fill_value=0) >= MIN_OTHER_ACCOUNTS)
        & (rate.here >= MIN_RATE_RATIO * rate.elsewhere)
    ]
    is_typical = (
        (_p_value(table, sizes, "here", "elsewhere") < MAX_P_VALUE)
        & (_p_value(table, sizes, "query", "here") >= MAX_P_VALUE)
        & (_p_value(table, sizes, "target", "here") >= MAX_P_VALUE)
    )
    return list(table.index[is_typical])


def _words_of(text):
    """Return the different words of a text in lower case; marks such as those of links are none."""
    return {match[0].lower() for match in WORD.finditer(text) if not match[1]}


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


def _posts_read(batch):
    """Return the tokens of each post of a batch of one sample, as far as they are read."""
    posts = batch.tokens[batch.mask].tolist()
    return [[token for token in post if token != PAD] for post in posts]


def texts_read(sample: Samples, tokenizer) -> list[str]:
    """Return the texts of the first sample's posts, as far as they are read.

    Parameters
    ----------
    sample : Samples
        of one account
    tokenizer : Tokenizer
        has made its tokens
    """
    posts = _posts_read(sample.batch(slice(0, 1), MAX_TOKENS))
    # a feature may be the blank before or after a word
    return [f" {' '.join(tokenizer.decode(post).split())} " for post in posts]


def strongest_signs(
    parts: pd.DataFrame, words: Collection[str], texts: list[list[str]]
) -> dict[str, list[dict]]:
    """Return the strongest features that are no words of a topic, as people read them.

    Each stands once: it speaks for one person if the parts that it has in all systems, taken
    together, do.

    Parameters
    ----------
    parts : DataFrame
        rows of :func:`contributions`
    words : collection of str
        words of a topic, in lower case
    texts : list of list of str
        results of :func:`texts_read` for account a and for account b

    Returns
    -------
    ``speaks_for`` and ``speaks_against``, MAX_FEATURES at most, the strongest first, none weaker
    than MIN_WEIGHT of the strongest one of both. Of each sign ``text``; ``part``, its part of the
    score; ``posts_a`` and ``posts_b``, numbers of the posts of each account in which it is
    """
    sums = parts.groupby("feature", as_index=False).contribution.sum()
    # nobody can count in how many posts a hidden word is, which stands for many words
    is_hidden = sums.feature.isin(NOT_WORDS) | sums.feature.str.contains(HIDDEN_WORD)
    is_hidden |= sums.feature.str.strip().str.lower().isin(["", *words])
    sums = sums[~is_hidden].sort_values("contribution")
    weight = sums.contribution.abs()
    sums = sums[weight >= MIN_WEIGHT * weight.max()]
    return {
        "speaks_for": _signs(sums[sums.contribution > 0][::-1], texts),
        "speaks_against": _signs(sums[sums.contribution < 0], texts),
    }


def _signs(sums, texts):
    """Return the first signs of one side, with the numbers of posts in which they are."""
    signs = []
    for row in sums.head(MAX_FEATURES).itertuples():
        sign = {"text": row.feature, "part": row.contribution}
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
    tokens = _posts_read(samples.batch(slice(0, 1), MAX_TOKENS))
    pieces = [[tokenizer.piece(token) for token in post] for post in tokens]
    strengths = [_strengths(of_post, contribution) for of_post in pieces]
    largest = max((np.abs(of_post).max(initial=0) for of_post in strengths), default=0) or 1.0
    order = np.argsort([-np.abs(of_post).sum() for of_post in strengths], kind="stable")
    paragraphs = []
    for number in order[:posts]:
        underlined = pieces_of_words(pieces[number], words)
        spans = map(_span, pieces[number], strengths[number] / largest, underlined)
        paragraphs.append(f"<p>{''.join(spans)}</p>")
    return "".join(paragraphs)


def _strengths(pieces, contribution):
    """Return, for each piece, its contribution plus half of that of its pairs with neighbours."""
    singles = np.array([contribution.get(piece, 0.0) for piece in pieces])
    pairs = [contribution.get(left + right, 0.0) for left, right in zip(pieces, pieces[1:])]
    pairs = np.array([0.0, *pairs, 0.0])
    return singles + (pairs[:-1] + pairs[1:]) / 2


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
    ends = np.cumsum([len(piece) for piece in pieces])
    begins = ends - [len(piece) for piece in pieces]
    is_of_word = np.zeros(len(pieces), bool)
    for match in WORD.finditer("".join(pieces)):
        if match[0].lower() in words:
            is_of_word |= (begins < match.end()) & (ends > match.start())
    return is_of_word
