"""Say which accounts are set aside, and of which no probability holds.

Whoever posts in a file is compared with others or set aside (``reading.py`` decides it): nobody
vanishes. Names that stand for nobody, such as "[deleted]", are no accounts. Of others no
probability holds, because the encoder cannot read them as it should.

Two people whose letters it does not know look alike to it, and unlike all others. So do two whose
posts hold hardly the words that others use: another language, one emoji, base64, texts from which a
program has taken the stop words. Limits were chosen so
that all generated kinds of such texts are found; of 492 test accounts of the run ``open`` (draw
4) they set 2 aside, of 3,131 bloggers 41, most of whom write in such letters or languages.

Two people who mention somebody in every other post are alike in the marks that replace mentions,
where few others mention anybody. Of five communities at most 0.6% of the accounts have so many.

Probabilities hold only for languages like those seen. Of 1,500 accounts of five communities that
write English, 3 were given another language, and 8 none; all of 300 members of the Spanish Congress
were given Spanish.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ..cleaning.authors import (
    author_name,
    is_placeholder,
    pseudonym_key,
    pseudonymiser,
    same_author,
)
from ..cleaning.text import is_bot
from ..corpus.same_texts import authors_of_texts
from ..sources.table import author_names
from ..tokens.batch import Samples
from ..tokens.store import TokenStore, with_tokens
from .samples import (
    MIN_POSTS,
    PASSAGE_TOKENS,
    are_repeated,
    covered,
    passage_hashes,
    texts_of,
    tokens_in_form,
)

ENGLISH = "English"
UNSURE = "not sure"
CAPITALS = "capital letters only"  # stands for a language: those who write so look alike
MIN_CAPITAL_SHARE = 0.7  # of the letters of such a text; of 4,845 accounts none has so many
MIN_PROBABILITY = 0.99  # of a language, to be named
# Newest posts of an account that are looked at: first so many, then so many if these leave it open
NEWEST_POSTS = (16, 64)
LETTERS_PER_POST = 125  # on average, that are looked at
# A language in which so many of an account's posts are written is named, too: two people who
# write a third of their posts in it look alike among others who do not. Of 500 bloggers six do.
MIN_SECOND_SHARE = 0.2
MIN_SECOND_PROBABILITY = 0.9  # of the language of one post
SPREAD_POSTS = 32  # of an account, evenly spread over its time, whose language is looked for
FIRST_LETTERS = 200  # of each that are looked at
MIN_LETTERS = 40  # of a post whose language can be told
# the name of whom a program has passed on: "<jane> hi", "[jane] hi", "**jane**: hi", "jane: hi"
PASSED_ON = re.compile(
    r"(?:<([^<>\n]{2,40})>|\[([^\[\]\n]{2,40})\]|\*\*([^*\n]{2,40})\*\*:?|([^\s<>:]{2,40}):)(?=\s)"
)
FORM_SHARE = 0.25  # of an account's posts hold a form at least
TIME_STAMP = re.compile(r"\d\d?[:.]\d\d")  # no name: "[13.02.24, 10:00]"
MIN_PASSED_ON = 0.9  # of a bridge's posts begin so, with the names of
# different people at least; somebody who answers others writes to some in some posts
MIN_PEOPLE = 3
NAMES = dict(pd.read_csv(Path(__file__).parent / "languages.csv", keep_default_na=False).to_numpy())
# Share of an account's tokens that are unknown letters. Two accounts by two people that both write
# 3% get a likelihood ratio that is e**3 times too high, with 8% one that links them.
MAX_UNKNOWN_SHARE = 0.03
UNREADABLE_SHARE = 0.2  # a larger share is too large whatever the others write
# An account's words are those of others if the most usual words of all are at least this share as
# frequent in them as in those of the median account. Texts without stop words, without vowels or
# with digits for letters have at most .5 in nearly all accounts of five communities; of English
# accounts 1 in 200 has less.
USUAL_WORDS = 100
MIN_USUAL_RATIO = 0.5
WHOLE_WORD = r" [^\W\d_]{2,}"  # a token, in lower case; it begins with a blank
LETTERS = r" ?[^\W\d_]"  # with which a token begins
LEAST_LETTERS = 1e-3  # share of the tokens that begin with letters, to divide by
# Marks of cleaning, what they stand for, and the share of an account's tokens that is usual. A pair
# gains as much by 2% of them as by 6% where nobody else has any.
MASKED = {
    "@user": ("mentions of people", 0.01),
    "@email": ("mail addresses", 0.01),
    "@self": ("mentions of oneself", 0.01),
    "@url": ("links", 0.04),
    "@code": ("code", 0.04),
}
# a larger share is too large if it is so many times that which nine of ten accounts stay below
MAX_MASKED_RATIO = 8
MIN_POSTS_TO_JUDGE = 8  # own calibration is fitted on halves of so many posts, and more
MIN_TOKENS_TO_JUDGE = 100  # in all posts of an account that are read
# words of the reasons
WRITES = "writes"  # a language: its letters are read all the same
UNREADABLE = "letters or signs that the encoder does not know"
UNCHECKED = "for which no probability was checked"
STRANGE_WORDS = "far fewer of the usual words (the, and, you ...) than others here"
COLUMNS = ["account", "posts", "reason", "detail"]
SET_ASIDE = "set aside"  # the state of such an account
BOTS = "accounts_of_bots"
UNUSABLE = "accounts_without_posts"
COPIES = "accounts_of_copies"
FEW = "accounts_with_few_posts"
ONE_FORM = "accounts_of_one_form"
BRIDGES = "accounts_of_bridges"
PASSAGES = "accounts_of_shared_passages"
BOTH_LISTS = "accounts_of_passages_in_both_lists"
# what is said after "2 accounts are set aside,"; the keys count them in a data card
REASONS = {
    BOTS: "with the name of a bot",
    UNUSABLE: "with no post that can be read (too short, only quotes, without a clear time, or "
    "marked in the file as a bot's or as passed on from others)",
    COPIES: "with nothing but copies of earlier posts, or too few words beside names and signature",
    FEW: f"with fewer than {MIN_POSTS} posts, copies and very short ones not counted",
    ONE_FORM: "with posts that are mostly alike but for numbers and names, such as those of a "
    "program, or with one signature below them all (cut it out of the posts, and ask again)",
    BRIDGES: "with posts before which the names of several people stand, as a program writes them "
    "that passes on what people write in another place",
    PASSAGES: f"with fewer than {MIN_POSTS} posts whose words do not stand in other posts, too",
    BOTH_LISTS: f"with fewer than {MIN_POSTS} posts whose words do not stand in the other list, "
    "too",
}


def language_of(text: str, min_probability: float = MIN_PROBABILITY) -> str:
    """Return the English name of a text's language, CAPITALS or UNSURE.

    Parameters
    ----------
    text : str
        of an account's posts, one after the other, or of one post
    min_probability : float
        of a language, to be named
    """
    capitals = sum(map(str.isupper, text))
    small_letters = sum(map(str.islower, text))
    if capitals > MIN_CAPITAL_SHARE * (capitals + small_letters):
        return CAPITALS
    code, probability = _identifier().classify(text)
    if probability < min_probability:
        return UNSURE
    return NAMES.get(code, UNSURE)


@cache
def _identifier():
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # reads a table of 4 MB

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def languages_of(samples: Samples, tokenizer) -> list[str]:
    """Return the language of each sample, as :func:`language_of` names it.

    Where MIN_SECOND_SHARE of the posts are in another one, both are named: "English and Spanish".

    Parameters
    ----------
    samples : Samples
        N samples, of which the last posts are looked at
    tokenizer : Tokenizer
        has made the tokens of the store
    """
    languages = []
    for end, count in zip(samples.first + samples.count, samples.count, strict=True):
        for newest in NEWEST_POSTS:
            posts = np.arange(end - min(count, newest), end)
            text = "\n".join(texts_of(samples.store, posts, tokenizer))
            language = language_of(text[: LETTERS_PER_POST * newest])
            if language != UNSURE:
                break
        spread = texts_of(samples.store, spread_rows(end - count, end), tokenizer)
        second = _second_language(spread, language)
        languages.append(" and ".join(sorted({language, second})))
    return languages


def spread_rows(first: int, end: int) -> np.ndarray:
    """Return numbers evenly spread over a range, SPREAD_POSTS at most.

    Parameters
    ----------
    first, end : int
        of the range; ``end`` itself is none of them
    """
    return np.unique(np.linspace(first, end - 1, min(end - first, SPREAD_POSTS)).astype(int))


def _second_language(texts, language):
    """Return the language of many of the texts that are not in the given one, else the given."""
    long_enough = [text[:FIRST_LETTERS] for text in texts if len(text) >= MIN_LETTERS]
    counts = Counter(language_of(text, MIN_SECOND_PROBABILITY) for text in long_enough)
    for no_second in (language, UNSURE, CAPITALS):
        counts.pop(no_second, None)
    if not counts or language in (UNSURE, CAPITALS):
        return language
    other, count = counts.most_common(1)[0]
    if count < max(2, MIN_SECOND_SHARE * len(long_enough)):
        return language
    return other


def are_bridges(store: TokenStore, tokenizer) -> np.ndarray:
    """Tell which accounts of a store pass on what several people wrote, (authors,) bool.

    Two such accounts of one place are alike because the same people write in them.

    Parameters
    ----------
    store : TokenStore
        the posts
    tokenizer : Tokenizer
        has made the tokens of the store
    """
    is_bridge = np.zeros(store.authors, bool)
    for account, (first, end) in enumerate(pairwise(store.author_offsets)):
        posts = spread_rows(first, end)
        names = [PASSED_ON.match(text) for text in texts_of(store, posts, tokenizer)]
        names = [name[name.lastindex] for name in names if name]
        names = [name for name in names if not TIME_STAMP.search(name)]
        is_passed_on = len(names) >= MIN_PASSED_ON * len(posts)
        is_bridge[account] = is_passed_on and len(set(names)) >= MIN_PEOPLE
    return is_bridge


def posts_of_one_form(store: TokenStore, kinds: np.ndarray) -> np.ndarray:
    """Count the posts of one form of accounts most of whose posts are, as those of programs.

    Some people write so, too: of 1,125 authors of commit messages 7 do.

    A token is of a form if FORM_TOKENS tokens in a row, it among them, stand in at least
    FORM_SHARE of the account's posts, numbers being equal. A post is of a form if more than half of
    its tokens are, an account if more than half of its posts are; none is where most accounts are.
    How posts end in several accounts, as with the footer of a company, does not count.

    Parameters
    ----------
    store : TokenStore
        the posts.
    kinds : (vocabulary,)
        result of :func:`token_kinds`.

    Returns
    -------
    (authors,) int, 0 for all other accounts
    """
    counts = _count_posts_in_form(store, kinds)
    if counts.any():
        without_footers = _count_posts_in_form(_without_footers(store, kinds), kinds)
        counts[without_footers == 0] = 0
    # a form of most accounts is one of the place, in which people write
    if (counts > 0).mean() > 0.5:
        return np.zeros_like(counts)
    return counts


def _without_footers(store, kinds):
    """Cut the end of each post that several accounts share, unless nothing is left of the post."""
    hashes = passage_hashes(store, kinds)
    account_offsets = store.post_offsets[store.author_offsets]
    begins = np.flatnonzero(are_repeated(hashes, account_offsets))
    is_shared = covered(begins, PASSAGE_TOKENS, len(hashes))
    places = np.arange(len(hashes))
    last_own = np.maximum.accumulate(np.where(is_shared, -1, places))
    post_begins, post_ends = store.post_offsets[:-1], store.post_offsets[1:]
    lengths = post_ends - post_begins
    own_lengths = last_own[post_ends - 1] + 1 - post_begins
    own_lengths = np.where(own_lengths > 0, own_lengths, lengths)
    is_own = places < np.repeat(post_begins + own_lengths, lengths)
    return with_tokens(store, is_own)


def _count_posts_in_form(store, kinds):
    """Return the number of posts of one form of each account, (authors,), 0 if not most are."""
    in_form_before = np.append(0, tokens_in_form(store, kinds, FORM_SHARE).cumsum())
    in_form = np.diff(in_form_before[store.post_offsets])
    is_of_form = in_form > np.diff(store.post_offsets) / 2
    counts = np.diff(np.append(0, is_of_form.cumsum())[store.author_offsets])
    return np.where(counts > store.posts_per_author() / 2, counts, 0)


def reading_problems(gallery, samples: Samples, languages: list[str]) -> np.ndarray:
    """Return for each sample why no probability holds for it, "" where one does.

    Its language must be one that the calibration of the gallery has seen, or too little is written
    to tell; its letters must be known to the encoder, or as rarely unknown as those of others; and
    in a gallery that normalises, it must hold the usual words, and not far more of it be masked
    than of others.

    Parameters
    ----------
    gallery : AccountGallery
        with whose targets the samples are compared
    samples : Samples
        N samples
    languages : list of str
        result of :func:`languages_of` for the samples

    Returns
    -------
    (N,) object, of texts
    """
    kinds = gallery.encoder.kinds
    median_share = np.median(token_shares(gallery.targets, kinds == 0))
    limit = min(max(2 * median_share, MAX_UNKNOWN_SHARE), UNREADABLE_SHARE)
    shares = token_shares(samples, kinds == 0)
    has_words = token_counts(samples) >= MIN_TOKENS_TO_JUDGE
    problems = np.full(len(samples), "", object)
    if gallery.normalised:
        problems = _masked_problems(gallery, samples)
        problems[_is_stranger(gallery, samples)] = STRANGE_WORDS
    for row, language in enumerate(languages):
        is_unchecked = language not in gallery.use.languages
        if is_unchecked and language != UNSURE:
            problems[row] = f"{WRITES} {language}, {UNCHECKED}"
        elif shares[row] > limit:
            problems[row] = UNREADABLE
        elif is_unchecked and has_words[row]:
            problems[row] = f"{WRITES} in a language that cannot be told, {UNCHECKED}"
    return problems


def is_read(problem: str) -> bool:
    """Tell whether an account's problem leaves its text readable, so that calibration may see it.

    Parameters
    ----------
    problem : str
        of :func:`reading_problems`
    """
    return not problem or problem.startswith(WRITES)


def token_counts(samples: Samples) -> np.ndarray:
    """Return the number of tokens of each sample, (N,)."""
    offsets = samples.store.post_offsets
    return offsets[samples.first + samples.count] - offsets[samples.first]


def token_shares(samples: Samples, is_counted: np.ndarray) -> np.ndarray:
    """Return the share of each sample's tokens that are of some kinds, (N,).

    Parameters
    ----------
    samples : Samples
        N samples
    is_counted : (vocabulary,) bool
        which tokens are of these kinds
    """
    store = samples.store
    counted_before = np.append(0, np.cumsum(is_counted[store.tokens]))
    begins = store.post_offsets[samples.first]
    ends = store.post_offsets[samples.first + samples.count]
    counted = counted_before[ends] - counted_before[begins]
    return counted / np.maximum(token_counts(samples), 1)


def _masked_problems(gallery, samples):
    """Return of each sample what is masked far more often than in the targets, (N,) object."""
    pieces = np.array(gallery.encoder.tokenizer.pieces)
    problems = np.full(len(samples), "", object)
    for mark, (words, usual_share) in MASKED.items():
        of_targets = token_shares(gallery.targets, pieces == mark)
        limit = max(MAX_MASKED_RATIO * np.quantile(of_targets, 0.9), usual_share)
        problems[token_shares(samples, pieces == mark) > limit] = f"far more {words} than others"
    return problems


def _is_stranger(gallery, samples):
    """Tell which samples hold far fewer of the most usual words than the targets, (N,) bool."""
    pieces = pd.Series(gallery.encoder.tokenizer.pieces).str.lower()
    of_letters = pieces.str.match(LETTERS).to_numpy()
    words = pieces.where(pieces.str.fullmatch(WHOLE_WORD))
    counts = pd.Series(np.bincount(gallery.targets.store.tokens, minlength=len(pieces)))
    usual_words = counts.groupby(words).sum().nlargest(USUAL_WORDS).index
    is_usual = words.isin(usual_words).to_numpy()
    shares_of_targets = _usual_shares(gallery.targets, is_usual, of_letters)
    limit = MIN_USUAL_RATIO * np.median(shares_of_targets)
    return _usual_shares(samples, is_usual, of_letters) < limit


def _usual_shares(samples, is_usual, of_letters):
    """Return the share of usual words among the tokens of letters of each sample, (N,)."""
    shares_of_letters = token_shares(samples, of_letters)
    return token_shares(samples, is_usual) / np.maximum(shares_of_letters, LEAST_LETTERS)


def set_aside_rows(
    accounts: Sequence[str], posts: Sequence[int], reason: str, details: Sequence[str] | str = ""
) -> pd.DataFrame:
    """Return a table of accounts that are set aside for one reason.

    Parameters
    ----------
    accounts : sequence of str
        names, as the list of accounts has them
    posts : sequence of int
        how many posts were read of each
    reason : str
        one of REASONS
    details : sequence of str or str
        what else is said of each, or of all

    Returns
    -------
    COLUMNS
    """
    frame = pd.DataFrame({"account": list(accounts), "posts": list(posts)})
    return frame.astype({"posts": int}).assign(reason=reason, detail=details)[COLUMNS]


def accounts_without_posts(
    location: str,
    column: str,
    texts_path: Path,
    kept: Collection[str],
    pseudonymise: bool,
) -> pd.DataFrame:
    """Return the accounts of a file of which no post is kept, as :func:`set_aside_rows` does.

    Parameters
    ----------
    location, column
        of the file, as :func:`helpers.sources.table.author_names` takes them
    texts_path : Path
        the file of who posted which texts, see :mod:`helpers.corpus.same_texts`
    kept : collection of str
        the accounts of which a post is kept
    pseudonymise : bool
        whether these, and those of the texts, are pseudonyms
    """
    secret = None
    if pseudonymise:
        secret = pseudonym_key()
    pseudonym = pseudonymiser(secret)
    # several spellings may be one account, which is kept under one of them
    kept_authors = set(map(same_author, kept))
    read_authors = set(map(same_author, authors_of_texts(texts_path)))
    reasons = {}
    accounts = {}
    for name in author_names(location, column):
        account = pseudonym(name)
        author = same_author(account)
        if author in kept_authors or not same_author(name) or is_placeholder(author_name(name)):
            continue
        accounts.setdefault(author, account)
        reasons[author] = UNUSABLE
        if author in read_authors:
            reasons[author] = COPIES
        elif is_bot(author_name(name)):
            reasons[author] = BOTS
    return set_aside_rows(accounts.values(), [0] * len(accounts), list(reasons.values()))
