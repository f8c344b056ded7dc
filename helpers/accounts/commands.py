"""The commands of ``authorbook``, ``encode`` to ``mine``, each with its parsed options."""

from argparse import Namespace
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ..core import paths
from ..core.artifacts import folder_lock
from ..core.escaping import without_formulas
from ..core.files import check_target, write_target
from ..core.messages import printable
from ..core.progress import progress_bar
from ..corpus.loss_lines import NAME_FORMS, name_forms
from ..sources.table import author_names, column_names
from . import decided_pairs, list_matching, match_page, match_report, reading
from .answer_page import write_answer
from .answer_record import answer_record, pairs_table, same_texts_record, set_aside_record
from .answer_text import passage_sentences, unknown_sentences, who_was_asked
from .answers import LINKED, Question, answer_question
from .columns import NO_TIMES
from .encoder import AuthorEncoder
from .log import log_answer
from .match_page import MatchWords, match_record
from .same_texts import find_same_texts
from .samples import spread_posts

CARE = "These are likelihoods, not proof: read the posts, and let a person decide."


def encode(options: Namespace) -> None:
    """Write the vectors of all accounts to a Parquet file.

    Its columns are ``account``, ``posts`` (the number that was read) and ``vector``.

    Raises
    ------
    ValueError
        Where the file has another ending than .parquet, or is one that may not be replaced, see
        :func:`helpers.core.files.check_target`.
    """
    if Path(options.out).suffix.lower() != ".parquet":
        raise ValueError(
            f"{options.out}: vectors are written as Parquet, so name a file that ends in .parquet; "
            f"to compare two files of posts: {paths.PROGRAM} match {options.posts} {options.out}"
        )
    check_target(options.out, [options.posts], options.force)
    encoder = AuthorEncoder.load(options.encoder)
    with _folders(options.run):
        posts, names = _read(options, options.posts, options.run, encoder)
        _write_vectors(options.out, encoder, posts, names)
    set_aside = set_aside_record(posts.set_aside, names)
    for sentence in [*passage_sentences(posts.card), *_sentences_of(set_aside)]:
        print(sentence)


def _write_vectors(out, encoder, posts, names):
    """Write the vectors of :func:`encode` to a file."""
    samples = spread_posts(posts.store)
    frame = pd.DataFrame(
        {
            "account": _shown(posts.names[samples.authors], names),
            "posts": samples.count,
            "vector": list(encoder.vectors(samples, posts.hours)),
        }
    )
    with write_target(out) as partial:
        frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {out}")


def _with_common_hours(posts):
    """Return the posts of two files, whose hours count only where both have them.

    Raises ValueError where only one of the files has times.
    """
    if len({own_posts.card["columns"]["time"] is None for own_posts in posts}) > 1:
        raise ValueError(
            "only one of the files has times: name a time column of both, or of neither"
        )
    hours = all(own_posts.hours for own_posts in posts)
    return [replace(own_posts, hours=hours) for own_posts in posts]


def match(options: Namespace) -> None:
    """Match the accounts of two files, or of two sides of one, and write the likely pairs.

    Raises
    ------
    ValueError
        Where there are not two lists of enough accounts, a number or a decision is none, only one
        of the lists has times, or a file may not be written.
    """
    if options.overlap is not None and not 0 < options.overlap <= 1:
        raise ValueError(f"--overlap {options.overlap}: a share above 0, at most 1")
    sides = _sides(options)
    decisions = None
    if options.decisions:
        decisions = decided_pairs.read_decisions(options.decisions)
    encoder = AuthorEncoder.load(options.encoder)
    with _folders(options.run, f"{options.run}-a", f"{options.run}-b"):
        out = Path(options.out or paths.Run(options.run).folder / "matches.csv")
        page = out.with_suffix(".html")
        if page == out:
            raise ValueError(f"--out {out}: name a CSV file; the page is written beside it")
        inputs = [location for location, _ in sides]
        if options.decisions:
            inputs.append(options.decisions)
        for target in (out, page):
            # without --out, they replace those of the command before
            check_target(target, inputs, options.force or not options.out)
        _match(options, encoder, sides, decisions, out, page)


def _sides(options):
    """Return for each list its file, and which rows of it are read: {column: value}, or all."""
    if bool(options.others) == bool(options.side):
        raise ValueError(
            "name two files; or one file and, with --side, its column that says who is in which "
            "list"
        )
    if options.others:
        return [(options.posts, {}), (options.others, {})]
    location = str(Path(options.posts).absolute())
    columns = column_names(location)
    if options.side not in columns:
        raise ValueError(
            f"{options.posts} has no column {options.side!r}; it has {', '.join(columns)}"
        )
    all_values = author_names(location, options.side)
    values = [value for value in all_values if value.strip()]
    if len(values) < len(all_values):
        print(
            f"Rows of {Path(location).name} without a value of {options.side} are in neither list "
            "and are not read."
        )
    if len(values) != 2:
        shown = [repr(value) for value in values[:5]]
        if len(values) > len(shown):
            shown.append("...")
        raise ValueError(
            f"the column {options.side!r} must have two values, one for each list; it has "
            f"{len(values)}: {', '.join(shown)}"
        )
    return [(options.posts, {options.side: value}) for value in values]


def _match(options, encoder, sides, decisions, out, page):
    """Print and write the answer of :func:`match`, in whose folders nobody else works."""
    read = [
        _read(
            options,
            location,
            f"{options.run}-{letter}",
            encoder,
            where=where,
        )
        for letter, (location, where) in zip("ab", sides, strict=True)
    ]
    posts = _with_common_hours([posts for posts, _ in read])
    own_posts = list_matching.without_shared_passages(*posts, encoder.kinds)
    same_texts = _name_same_texts(own_posts, decisions, read[0][1] | read[1][1])
    encoder, *fitted_on = list_matching.calibrated_on_list(encoder, *own_posts)
    lists = list_matching.TwoLists.of(encoder, *own_posts)
    asked_accounts = _listed_accounts(options.accounts, lists)
    files = [printable(_list_name(side)) for side in sides]
    read_sentences = []
    set_aside = []
    sides = zip("ab", files, posts, own_posts, read, strict=True)
    for letter, file_name, whole, side, (_, names) in sides:
        gallery = lists.galleries[letter]
        in_both = whole.store.posts - side.store.posts
        read_sentences.append(match_report.list_sentence(letter, file_name, gallery, in_both))
        accounts = list_matching.accounts_set_aside(side, gallery)
        set_aside += set_aside_record(accounts, names, place=f" of list {letter.upper()}")
    decided = None
    if decisions is not None:
        names = [lists.galleries[letter].names for letter in "ab"]
        decided = decided_pairs.decided_pairs(decisions, *names)
        read_sentences.append(match_report.decided_sentence(decided))
    matched = list_matching.match_lists(lists, decided, options.overlap)
    trust = [
        match_report.calibration_sentence(*fitted_on),
        match_report.overlap_sentence(matched, options.overlap is not None),
    ]
    new_links = matched.pairs[matched.pairs.linked & ~matched.pairs.known]
    log_answer(paths.Run(options.run), list(matched.nobody["a"].index), new_links)
    shown = matched.pairs.copy()
    for letter, (_, names) in zip("ab", read, strict=True):
        shown[f"account_{letter}"] = _shown(shown[f"account_{letter}"], names)
    beside = (out.name, options.encoder, same_texts, set_aside)
    words = MatchWords(files, read_sentences, trust, *beside)
    record = match_record(lists, matched, shown, words, _evidence_bar)
    for sentence in [*read_sentences, *_sentences_of(set_aside), *trust]:
        print(sentence)
    asked = shown.drop_duplicates("account_a")
    if options.accounts:
        of_pairs = matched.pairs[["account_a", "account_b"]]
        asked = shown[of_pairs.isin(asked_accounts).any(axis=1)]
    print(f"\n{match_report.table(asked)}\n")
    for sentence in [record["headline"], *record["sentences"]]:
        print(sentence)
    _write_matches(out, page, shown, record)
    print(match_report.ONE_PARTNER, CARE)


def _name_same_texts(own_posts, decisions, names):
    """Print which accounts of two lists posted the same texts; return what the page says of it."""
    record = same_texts_record(find_same_texts(*own_posts, decisions), names)
    for sentence in record["sentences"][:1]:
        print(sentence)
    return record


def _listed_accounts(accounts, lists):
    """Return named accounts as two lists name them.

    Raises ValueError where an account is in neither list.
    """
    names = [name for gallery in lists.galleries.values() for name in gallery.names]
    listed = reading.as_listed(accounts, names)
    missing = [account for account, name in zip(accounts, listed) if name not in names]
    if missing:
        raise ValueError(
            f"{len(missing)} of the accounts asked about are in neither list, or are set aside; "
            f"the first is {missing[0]}"
        )
    return listed


def _list_name(side):
    """Return the name of a list's file, and which rows of it are read."""
    location, where = side
    name = Path(location).name
    for column, value in where.items():
        name += f" where {column} is {value}"
    return name


def _write_matches(out, page, shown, record):
    """Write the pairs and the page, and say where they are."""
    with write_target(out) as partial:
        without_formulas(shown).to_csv(partial, index=False)
    with write_target(page) as partial:
        partial.write_text(match_page.render_matches(record), "utf-8")
    print(
        f"All {len(shown):,} pairs with a probability of {list_matching.LEAST_PROBABILITY:.0%} or "
        f"more: {paths.display_path(out)}."
    )
    print(f"page: {paths.display_path(page)}")


def mine(options: Namespace) -> None:
    """Answer which accounts of a file may be one person's, on one page.

    Raises
    ------
    ValueError
        Where the file cannot be read, an account is not there, or a number is none.
    """
    settings = {"accounts": tuple(options.accounts), "k": options.k, "prior": options.prior}
    question = Question.of(settings, "mine")
    decisions = None
    if options.decisions:
        decisions = decided_pairs.read_decisions(options.decisions)
    encoder = AuthorEncoder.load(options.encoder)
    run = paths.Run(options.run)
    with _folders(options.run):
        posts, names = _read(options, options.posts, options.run, encoder)
        answer = answer_question(posts, encoder, question, decisions)
        answer = replace(answer, shown_names=names)
        log_answer(run, answer.queries, answer.pairs[answer.pairs.state == LINKED])
        record = answer_record(answer, Path(options.posts).name, options.encoder, _evidence_bar)
        page = write_answer(answer, record, run.folder)
    same_texts = record["same_texts"]["sentences"][:1]
    said = [*unknown_sentences(answer), *passage_sentences(posts.card), *same_texts]
    said += [record["headline"], *record["sentences"]]
    if len(answer.queries) < answer.compared_accounts and not question.accounts:
        said.append(who_was_asked(answer))
    for sentence in [*said, *_sentences_of(record["set_aside"])]:
        print(sentence)
    if question.accounts:
        columns = ["account_a", "account_b", "state", "probability", "posts_a", "posts_b"]
        print(f"\n{match_report.table(pairs_table(answer)[columns])}\n{CARE}\n")
    print(f"page: {paths.display_path(page)}")


def _sentences_of(groups):
    """Return the sentences about accounts that are set aside, one a reason."""
    return [group["sentence"] for group in groups]


def _evidence_bar(pairs):
    """Show a bar while the evidence of pairs is collected."""
    return progress_bar(pairs, desc="evidence", unit="pair", delay=2)


@contextmanager
def _folders(*runs):
    """Keep others from the folders of some runs, so that an answer is about its own files."""
    with ExitStack() as stack:
        for folder in sorted(paths.Run(run).folder for run in runs):  # waited for in one order
            stack.enter_context(folder_lock(folder))
        yield


def _columns(options):
    """Return the columns that the user named: kind -> column."""
    columns = {kind: getattr(options, kind) for kind in ("author", "time", "topic", "text")}
    return {kind: column for kind, column in columns.items() if column}


def _read(options, location, run, encoder, **how):
    """Return the posts of a file, and a dict pseudonym -> name to show, empty without --names."""
    location = str(Path(location).absolute())
    columns = _columns(options)
    posts = reading.read_posts(paths.Run(run), location, encoder, columns, **how)
    if posts.card["columns"]["time"] is None and options.time != NO_TIMES:
        print(
            f"{Path(location).name}: no column is known to hold times (date, created_at ...), "
            "so the order of the rows counts as that of time and hours say nothing. Say --time "
            "<column> if there is one."
        )
    if not options.names:
        return posts, {}
    if posts.card.get(NAME_FORMS):
        posts.card["name_forms"] = name_forms(location, posts.card["columns"]["author"])
    return posts, reading.own_names(location, columns)


# Replace each pseudonym by its name, where ``names`` has one.
def _shown(accounts, names):
    return [names.get(account, account) for account in accounts]
