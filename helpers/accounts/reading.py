"""Read own posts: a file with columns of any name becomes accounts, cleaned as in notebook 01."""

import shutil
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ..cleaning.authors import is_placeholder
from ..core.artifacts import folder_lock, is_current, note, verify_checksum
from ..core.paths import Run
from ..corpus.collection import CollectConfig, collect, parts_folder
from ..corpus.posts_table import open_database
from ..corpus.same_texts import write_texts
from ..evaluation.scores import reference_targets
from ..sources.table import author_names, column_names, listed_names
from ..tokens.batch import Samples
from ..tokens.store import TokenStore, build_store, list_topics
from ..tokens.tokenizer import Tokenizer
from .encoder import AuthorEncoder
from .gallery import AccountGallery
from .samples import (
    MAX_TOKENS,
    MIN_POSTS,
    MOST_POSTS,
    in_memory,
    spread_posts,
    without_frames,
    without_passages,
)
from .unjudged import (
    BRIDGES,
    FEW,
    ONE_FORM,
    PASSAGES,
    REASONS,
    UNREADABLE_SHARE,
    accounts_without_posts,
    are_bridges,
    posts_of_one_form,
    set_aside_rows,
)

BLOCK_ACCOUNTS = 2**14  # accounts whose vectors are made and multiplied at a time
# of posts in one hour of the day: a larger one says that times are dates, or one time for all
MAX_HOUR_SHARE = 0.5
# up to so many accounts, queries are compared with all; of more, with those of nearest vectors
FULL_GALLERY = 5000
NEAREST_OF_ALL = 4000  # accounts that are found for all queries together
# Accounts that are found for one query, at most. Among the nearest 40 of 5,000 accounts was
# the true partner of 0.7 of the queries, among the nearest 1000 that of 0.96.
NEAREST_OF_QUERY = 1000
MIN_PART_LEFT_OUT = 0.25  # of an account's posts: the page then says that it is read in part only
COHORT_ACCOUNTS = 1000  # accounts sampled at random beside these, which normalise the scores
# Posts kept in memory of all accounts together, which gives each at most MOST_POSTS of them, and
STORED_POSTS = FULL_GALLERY * MOST_POSTS
LEAST_STORED = 128  # at least so many
# tokens of a post that are kept: twice MAX_TOKENS, since shared passages are removed afterwards
STORED_TOKENS = 2 * MAX_TOKENS
QUERIES = 500  # default number of queries for up to FULL_GALLERY accounts
FEWER_QUERIES = 100  # default number of queries for more accounts
HOUR_SECONDS = 3600
# kind of column -> its usual names in lower case; of several in one file the first listed is taken
USUAL_NAMES = {
    "author": (
        "author account user username user_name screen_name handle nick nickname sender "
        "from_id from author_id user_id name by poster member"
    ),
    "text": "text full_text message body content comment post msg tweet selftext posting",
    "time": (
        "time date_unixtime date timestamp created_at created created_utc datetime sent written "
        "posted published when ts post_time post_date created_time"
    ),
    "topic": "topic room channel stream subreddit forum thread group list category board",
}
ID_NAMES = ("author_id", "authorid", "from_id", "sender_id", "user_id", "userid")
GUEST_IDS = ("0", "1", "-1")  # of forums: all guests have one
NEEDED = ("author", "text")
NO_TIMES = "none"  # the column of times that a user names to go without times
NO_HOURS = "Times of posting have no hours, so hours say nothing here."


@dataclass(frozen=True)
class OwnPosts:
    """The accounts of a file, and their posts.

    Parameters
    ----------
    store : TokenStore
        the posts of each account, at most MOST_POSTS evenly spread ones, in memory.
    names : array
        name of each author of the store, in the same order; a pseudonym by default.
    hours : bool
        whether the times of posts are known, with hours, see :func:`has_hours`.
    card : dict
        numbers of rows, posts and accounts that were read, dropped and kept.
    texts_path : Path
        the file of who posted which texts, copies included, see
        :mod:`helpers.corpus.same_texts`.
    set_aside : DataFrame
        the accounts of the file that are not compared, and why, see
        :mod:`helpers.accounts.unjudged`.
    partly_read : DataFrame
        accounts of which MIN_PART_LEFT_OUT of the posts or more are not compared, because little
        stands in these but passages that other posts hold, too; columns ``account``, ``posts`` that
        are left, ``left_out``.
    encoder : AuthorEncoder
        its tokenizer has made the tokens; it embeds and scores the accounts.
    """

    store: TokenStore
    names: np.ndarray
    hours: bool
    card: dict
    texts_path: Path
    set_aside: pd.DataFrame
    partly_read: pd.DataFrame
    encoder: AuthorEncoder

    def gallery(self, samples: Samples | None = None, **settings) -> AccountGallery:
        """Return a gallery of samples of the store, by default the posts of each account.

        By default, accounts with fewer than MIN_POSTS posts are left out.

        Parameters
        ----------
        samples : Samples
            of the store, one per account
        settings : dict
            more attributes of the gallery
        """
        if samples is None:
            samples = spread_posts(self.store)
        names = self.names[samples.authors]
        return AccountGallery(self.encoder, samples, names, self.hours, **settings)

    def gallery_for(self, queries: list[str], seed: int = 0) -> AccountGallery:
        """Return a gallery for the given queries: of all accounts if these are few, else of some.

        Of more than FULL_GALLERY accounts, the gallery holds those whose vectors are nearest to one
        of the queries, the accounts of the queries themselves, and COHORT_ACCOUNTS sampled at
        random. Only the random ones normalise the scores: among accounts that are all near, the
        score of a true pair would not stand out.

        Parameters
        ----------
        queries : list of str
            names of the accounts that are asked about
        seed : int
            seed of the random sample of accounts.
        """
        samples = spread_posts(self.store)
        if len(samples) <= FULL_GALLERY:
            return self.gallery(samples)
        is_asked = np.isin(self.names[samples.authors], queries)
        near = np.union1d(self._nearest(samples, is_asked), np.flatnonzero(is_asked))
        cohort = reference_targets(len(samples), None, COHORT_ACCOUNTS, seed)
        rows = np.union1d(near, cohort)
        is_drawn = np.isin(rows, cohort)
        return self.gallery(samples[rows], drawn=is_drawn, beyond=len(samples) - len(rows))

    def _nearest(self, samples, is_asked):
        """Return the numbers of the samples nearest to those asked about, as many for each."""
        named = samples[np.flatnonzero(is_asked)]
        queries = torch.from_numpy(self.encoder.vectors(named, self.hours))
        # of the account itself, and of others
        of_query = 1 + max(min(NEAREST_OF_ALL // len(queries), NEAREST_OF_QUERY), 1)
        scores = []
        for begin in range(0, len(samples), BLOCK_ACCOUNTS):
            block = samples[begin : begin + BLOCK_ACCOUNTS]
            targets = torch.from_numpy(self.encoder.vectors(block, self.hours))
            scores.append(queries @ targets.T)
        nearest = torch.cat(scores, 1).topk(min(of_query, len(samples))).indices
        return nearest.unique().numpy()


def read_posts(
    run: Run,
    location: str,
    encoder: AuthorEncoder,
    columns: dict | None = None,
    pseudonymise: bool = True,
) -> OwnPosts:
    """Read, clean and tokenise a file of posts, CSV, TSV, JSON lines or Parquet.

    Parameters
    ----------
    run : Run
        the run whose folder, ``outputs/<run>/``, takes the files that are made.
    location : str
        path of the file.
    encoder : AuthorEncoder
        its tokenizer makes the tokens.
    columns : dict, optional
        kind ("author", "text", "time", "topic") -> column of the file; missing kinds are guessed,
        see :func:`column_types`.
    pseudonymise : bool
        replace names by pseudonyms, see :mod:`helpers.cleaning.authors`; the result then holds
        no name.

    Returns
    -------
    The accounts with at least MIN_POSTS posts. Passages that several posts share are removed, so
    that some accounts may have fewer posts left.

    Raises
    ------
    ValueError
        Where the file cannot be read or lacks a column, the encoder does not know its letters, or
        fewer than two accounts have MIN_POSTS posts.
    """
    with folder_lock(run.folder):
        return _read_posts(run, location, encoder, columns, pseudonymise)


def _read_posts(run, location, encoder, columns, pseudonymise):
    """Do what :func:`read_posts` does, in whose folder nobody else is at work."""
    columns = column_types(location, columns or {})
    given = {"columns": columns, "pseudonymise": pseudonymise}
    config = CollectConfig(source="table", location=[str(location)], **given)
    card, texts_path = _collect_with_texts(run, config)

    whole_store = tokenise_posts(run, encoder.tokenizer)
    count = whole_store.posts_per_author()
    accounts = _accounts_with_posts(count, card)
    most = int(np.clip(STORED_POSTS // len(accounts), LEAST_STORED, MOST_POSTS))
    spread = in_memory(spread_posts(whole_store, accounts, most)).store
    in_form = posts_of_one_form(spread, encoder.kinds)
    is_bridge = are_bridges(spread, encoder.tokenizer)
    kept = np.where(is_bridge | (in_form > 0), 0, spread.posts_per_author())
    by_persons = Samples(spread, spread.author_offsets[:-1], kept, np.arange(spread.authors))
    persons = in_memory(by_persons).store
    without_copies, dropped_tokens = without_passages(persons, encoder.kinds)
    store = without_frames(without_copies, encoder.kinds)
    with_own_posts = _count_readable(store, encoder)

    names = np.asarray(whole_store.author_names(), object)
    unread = (location, columns["author"], texts_path, names, pseudonymise)
    of_reasons = [
        accounts_without_posts(*unread),
        set_aside_rows(names[count < MIN_POSTS], count[count < MIN_POSTS], FEW),
        _rows_without_own_words(names[accounts], spread, store, in_form, is_bridge),
    ]
    set_aside = pd.concat(of_reasons, ignore_index=True)
    card = card | {
        "accounts": with_own_posts,
        "columns": columns,
        **{reason: int((set_aside.reason == reason).sum()) for reason in REASONS},
        "share_in_shared_passages": dropped_tokens / max(len(persons.tokens), 1),
        "posts_of_shared_passages": persons.posts - store.posts,
    }
    hours = _say_hours(columns, whole_store)
    partly_read = _partly_read(names[accounts], kept, store.posts_per_author())
    return OwnPosts(
        store, names[accounts], hours, card, texts_path, set_aside, partly_read, encoder
    )


def _say_hours(columns, store):
    """Return whether the times of posts have hours; say so where they have none."""
    hours = has_hours(columns, store)
    if columns["time"] is not None and not hours:
        print(NO_HOURS)
    return hours


def _partly_read(names, written, left):
    """Return whose posts are left out in part, those who lost most first, see OwnPosts."""
    frame = pd.DataFrame({"account": names, "posts": left, "left_out": written - left})
    is_part = (left >= MIN_POSTS) & (frame.left_out >= MIN_PART_LEFT_OUT * written)
    return frame[is_part].sort_values(["left_out", "account"], ascending=[False, True])


def _rows_without_own_words(names, spread, store, in_form, is_bridge):
    """Return who is a bridge, writes in one form, or has few posts left in the store."""
    whole = spread.posts_per_author()
    bridges = set_aside_rows(names[is_bridge], whole[is_bridge], BRIDGES)
    rows = np.flatnonzero(in_form * ~is_bridge)
    details = [f"{in_form[row]:,} of {whole[row]:,} posts" for row in rows]
    of_form = set_aside_rows(names[rows], whole[rows], ONE_FORM, details)
    count = store.posts_per_author()
    is_few = (count < MIN_POSTS) & (in_form == 0) & ~is_bridge
    few = set_aside_rows(names[is_few], count[is_few], PASSAGES)
    return pd.concat([bridges, of_form, few])


def _collect_with_texts(run, config):
    """Collect posts; return the data card, and the path of who posted which texts.

    This file is called after the posts that it belongs to.
    """
    folder = run.folder / "texts"
    current = [path for path in folder.glob("*.parquet") if is_current(run.data_card, path.stem)]
    if not any(map(verify_checksum, current)):
        run.data_card.unlink(missing_ok=True)  # the posts are read again, for their copies
    card = collect(run, config)
    texts_path = folder / f"{card['fingerprint']}.parquet"
    if not verify_checksum(texts_path):
        shutil.rmtree(folder, ignore_errors=True)
        parts = sorted(parts_folder(run).glob("*.parquet"))
        with open_database(folder / "work") as connection:
            write_texts(connection, parts, texts_path)
    # one file is read again in no time: neither its names nor a second copy of its posts is kept
    shutil.rmtree(parts_folder(run), ignore_errors=True)
    note(folder)
    return card, texts_path


def has_hours(columns: dict, store: TokenStore) -> bool:
    """Return whether a file tells the hours of its posts.

    Parameters
    ----------
    columns : dict
        result of :func:`column_types` for the file
    store : TokenStore
        posts of the file
    """
    if columns["time"] is None or not store.posts:
        return False
    if np.gcd.reduce(store.time) > HOUR_SECONDS:  # rounded to days, or by a program
        return False
    return bool(np.bincount(store.hour).max() <= MAX_HOUR_SHARE * store.posts)


def tokenise_posts(run: Run, tokenizer: Tokenizer) -> TokenStore:
    """Make the token store of a run's cleaned posts, or open the one that is there.

    Parameters
    ----------
    run : Run
        the run whose ``posts.parquet`` is read
    tokenizer : Tokenizer
        makes the tokens; each post is cut to STORED_TOKENS
    """
    posts = run.folder / "posts.parquet"
    return build_store(
        posts,
        run.tokens / "own",
        partial(_encode, tokenizer),
        list_topics(posts),
        f"{tokenizer.fingerprint}, {STORED_TOKENS} tokens, all spelt",
        tokenizer.vocabulary,
    )


# Tokenise texts and cut each to STORED_TOKENS tokens.
def _encode(tokenizer, texts):
    return [tokens[:STORED_TOKENS] for tokens in tokenizer.encode(texts)]


# Return the numbers of accounts with at least MIN_POSTS posts; fewer than two are an error.
def _accounts_with_posts(count, card):
    accounts = np.flatnonzero(count >= MIN_POSTS)
    if len(count) == 1:
        raise ValueError(
            "the file has one account: with nobody else there, nothing can be compared"
        )
    if len(accounts) < 2:
        raise ValueError(
            f"nothing can be compared: two accounts with {MIN_POSTS} posts or more are needed "
            f"after cleaning, and the file has {len(accounts)} of {len(count)}. "
            f"{card['rows_read']} rows were read, {card['posts']} posts are left"
        )
    return accounts


def _count_readable(store, encoder):
    """Count the accounts with at least MIN_POSTS posts.

    Raises ValueError where fewer than two have so many, or more than UNREADABLE_SHARE of the tokens
    are unknown letters.
    """
    if len(store.tokens):
        unreadable = float((encoder.kinds[store.tokens] == 0).mean())
        if unreadable > UNREADABLE_SHARE:
            raise ValueError(
                f"{unreadable:.0%} of the tokens are letters or signs that the encoder does not "
                "know: it was made of English posts"
            )
    accounts = int((store.posts_per_author() >= MIN_POSTS).sum())
    if accounts < 2:
        raise ValueError(
            f"{accounts} of {store.authors} accounts keep {MIN_POSTS} posts of their own: the "
            "other posts hold passages that stand word for word in several posts"
        )
    return accounts


def column_types(location: str, given: dict) -> dict[str, str | None]:
    """Find the columns of author, text, time and topic.

    Parameters
    ----------
    location : str
        path of the file.
    given : dict
        kind ("author", "text", "time", "topic") -> name of the column; a kind that is missing is
        guessed by USUAL_NAMES. NO_TIMES stands for no column of times.

    Returns
    -------
    Kind -> name of the column; None for a time or topic that was not given and not found.

    Raises
    ------
    ValueError
        Where no column of authors or texts is found, a given column is not in the file, or the file
        cannot be read.
    """
    file = Path(location).name
    columns = column_names(location)
    listed = listed_names(columns)
    types = {}
    for kind in USUAL_NAMES:
        column = given.get(kind) or _guess(kind, columns)
        if kind == "time" and column == NO_TIMES and NO_TIMES not in columns:
            column = None
        if column is None and kind in NEEDED:
            raise ValueError(
                f"{file}: which column is the {kind}? There are {listed}; say --{kind} <column>. "
                "To a CSV file without names add a first line with the names of the columns, such "
                "as author,time,topic,text; each object of JSON lines needs a key for the author "
                "of a post and one for its text"
            )
        if column is not None and column not in columns:
            raise ValueError(f"{file} has no column {column!r}; it has {listed}")
        types[kind] = column
    if not given.get("author"):
        _check_shared_names(location, columns, types["author"])
    _say_guests(location, columns, types["author"])
    return types


def _say_guests(location, columns, author):
    """Print a line where the id of a forum's guests has several names in a column of names."""
    for column in columns:
        is_name = column.lower() in USUAL_NAMES["author"].split()
        if not is_name or column.lower() in ID_NAMES or column == author:
            continue
        pairs = [pair.partition("/") for pair in author_names(location, [author, column])]
        for guest in GUEST_IDS:
            names = [name for account, _, name in pairs if account == guest]
            if len(names) > 1:
                print(
                    f"{Path(location).name}: {len(names):,} names in the column {column} have the "
                    f"{author} {guest}, as guests of a forum have, and count as one account"
                )


def _check_shared_names(location, columns, author):
    """Raise ValueError where a name of a guessed column has several ids in a column of ids."""
    for column in columns:
        if column.lower() not in ID_NAMES or column == author:
            continue
        ids = Counter()
        for pair in author_names(location, [author, column]):
            name, _, account = pair.rpartition("/")
            if account and not is_placeholder(name):
                ids[name] += 1
        shared = [name for name, number in ids.items() if number > 1]
        if shared:
            raise ValueError(
                f"{Path(location).name}: {len(shared):,} of the names in the column {author} have "
                f"several ids in {column} ({shared[0]!r} has {ids[shared[0]]:,}), so accounts "
                f"share a name: say --author {column}, or --author {author} where one name is one "
                "person"
            )


# Return the column whose name comes first among the usual names of a kind, None for none.
def _guess(kind: str, columns: list[str]) -> str | None:
    first_of_name = {column.lower().strip(): column for column in reversed(columns)}
    for name in USUAL_NAMES[kind].split():
        if name in first_of_name:
            return first_of_name[name]
    return None
