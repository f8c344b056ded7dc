"""Show posts as HTML, with each subword coloured by its contribution to a score."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from ..core.escaping import escape_html
from ..tokens.batch import PAD, Samples
from .samples import MAX_TOKENS
from .topic_words import pieces_of_words

# members whose features are subwords and pairs of subwords
SUBWORD_MEMBERS = ("tfidf_subword", "lsa", "lsa_masked")
FOR_COLOUR = "0,114,178"
AGAINST_COLOUR = "213,94,0"
MIN_STRENGTH = 0.05  # share of the strongest subword; paler colours would not be seen


def highlight(
    parts: pd.DataFrame, samples: Samples, tokenizer, posts: int = 8, words: Collection[str] = ()
) -> str:
    """Return HTML of the posts of a sample that contribute most to a score, strongest first.

    Blue subwords support that one person wrote both samples, orange ones speak against it. The
    strength of a colour is the contribution of the subword and half of that of its pairs with its
    two neighbours, summed over SUBWORD_MEMBERS and relative to the strongest subword. Contributions
    of all other members are not shown. Text is escaped.

    Parameters
    ----------
    parts : DataFrame
        result of :func:`helpers.accounts.contributions.contributions`.
    samples : Samples
        the first sample is shown, the others are ignored.
    tokenizer : Tokenizer
        has made the tokens of the samples.
    posts : int
        maximum number of posts to show.
    words : Collection[str]
        words in lower case to underline, such as those that
        :func:`helpers.accounts.topic_words.topic_words` returns.
    """
    of_subwords = parts[parts.member.isin(SUBWORD_MEMBERS)]
    contribution = of_subwords.groupby("feature").contribution.sum().to_dict()
    batch = samples.batch(slice(0, 1), MAX_TOKENS)

    rated_posts = []
    for post in batch.tokens[batch.mask].tolist():
        pieces = [tokenizer.piece(token) for token in post if token != PAD]
        rated_posts.append((_strengths(pieces, contribution), pieces))
    largest = max((np.abs(strengths).max(initial=0) for strengths, _ in rated_posts), default=0)
    rated_posts.sort(key=_total_strength, reverse=True)

    paragraphs = []
    for strengths, pieces in rated_posts[:posts]:
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


def _total_strength(rated_post):
    return np.abs(rated_post[0]).sum()


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
