"""Histories of git repositories: a commit message is a post, an address is an account.

People change their addresses, so a history also says which accounts are one person's, see
:func:`people`. No encoder may see that. The topic is the folder in which most of a commit's files
lie. Nothing of a repository is executed: its settings could name programs.
"""

import re
import secrets
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..cleaning.authors import is_placeholder
from ..cleaning.commit_messages import NAMED_PERSON, without_trailers
from ..cleaning.text import FIRST_NAMES, USER_NUMBER, is_bot, normalise_unicode
from ..core import paths
from . import Part, as_list, row_part
from .downloads import GIT_URL, clone_repository
from .git_commands import git_output, git_process
from .timestamps import EARLIEST, LATEST

# fields of a commit, as `git log --format` names them
FIELDS = {
    "parents": "%P",
    "name": "%an",
    "address": "%ae",
    "mapped_name": "%aN",
    "mapped_address": "%aE",
    "time": "%at",
    "message": "%B",
}
BLOCK_BYTES = 1 << 18  # bytes read at a time
MAX_FIELD_BYTES = 1 << 20  # of a longer message or name only the first bytes are read
MAX_FILES = 1000  # files of a commit that decide its topic

# where another commit was copied from: "(cherry picked from commit 0a1b)", "backported from ..."
COPIED = re.compile(r"^[ \t]*\(?(?:cherry[- ]picked|back-?ported) from\b", re.I | re.M)
REVERTED = re.compile(r"^[ \t]*(?:revert\b|this reverts commit\b)", re.I | re.M)
# words of names and of addresses that stand for a task or a machine, not for a person
ROLES = set(
    "account admin administrator backup build centos ci cloud contact debian default demo dev "
    "devel developer developers devstack docker ec2 email fedora git github gitlab hello home info "
    "jenkins linux localhost mail me name office openstack ops owner postgres public release "
    "releases root security server service stack staff super support sys system team test tester "
    "ubuntu user username vagrant web webmaster work zuul".split()
)
MIN_LOCAL_PART = 5  # letters and digits: "jd@a.org" and "jd@b.org" are often two people


def parts(location: str | list[str], *, depth: int = 2, raw: bool = False) -> list[Part]:
    """Return one part per repository; the posts are the messages of its commits.

    The author is the address in lower case, the topic the project and the folder in which most
    files of a commit lie, the text the message without its first line. Signatures and other
    trailers, notes of bugs and plans, quotes, code, and lists of files are left out.

    Drops counted: merge, revert, copy (a commit that says that it was copied from another one),
    bot, no_address, bad_time (not between 1979 and 2100), empty.

    Parameters
    ----------
    location : str or list of str
        clones, bare or not, or addresses of repositories (cloned once, with their history, into
        ``data/clones/``)
    depth : int
        number of folders in a topic, beside the project; 0 for the project alone
    raw : bool
        keep the whole message

    Raises
    ------
    ValueError
        A location is no repository or has no commit, two have the same name, or git is missing.
    """
    if not 0 <= depth <= 9:
        raise ValueError(f"git: depth is {depth}: a number from 0 to 9")
    repositories = _repositories(location)
    return [
        row_part(
            name, partial(_rows, name, root, depth, raw), git_output(root, "rev-parse", "HEAD")
        )
        for name, root in repositories.items()
    ]


def people(location: str | list[str]) -> pd.DataFrame:
    """Say which addresses of some histories are one person's.

    Two addresses are one person's where a ``.mailmap`` says so, where both were used with one full
    name, or where they agree before the @ in more than a first name, a last name or a role. Names
    such as "Your Name" and "root", and addresses such as root@localhost, join nobody. Who shares a
    last name and nothing else is undecided: such pairs are neither one person nor two.

    Parameters
    ----------
    location : str or list of str
        as in :func:`parts`; all histories are joined

    Returns
    -------
    One row per address, sorted, with the columns ``author`` (the address as :func:`parts` has it),
    ``person`` (a number) and ``surname`` (the last name in lower case, "" where there is none).
    """
    commits = []
    for root in _repositories(location).values():
        commits += [_author_of(commit) for commit in _commits(root)]
    table = pd.DataFrame(commits, columns=["author", "name", "mapped"]).drop_duplicates()
    table = table[table["author"] != ""]
    authors = np.sort(table["author"].unique())
    full_name = table["name"].where(table["name"].map(_is_full_name))
    local_part = table["author"].map(_local_part)
    is_role = table["author"].str.partition("@")[0].isin(ROLES)
    has_names = full_name.groupby(table["author"]).transform("nunique") > 1
    is_own = ~(is_role & has_names | table["author"].map(is_bot).astype(bool))
    is_own &= ~table["author"].map(is_placeholder).astype(bool)
    is_rare = ~local_part.isin(set(full_name.dropna().str.split().explode()))
    keys = [
        table["author"] + "\0address",
        table["mapped"] + "\0address",
        full_name.where(is_own) + "\0name",
        local_part.where(is_own & is_rare) + "\0local",
    ]
    links = pd.concat([pd.DataFrame({"author": table["author"], "key": key}) for key in keys])
    links = links.dropna()
    author_row = np.searchsorted(authors, links["author"])
    key_row, key_names = pd.factorize(links["key"])
    size = len(authors) + len(key_names)
    edges = coo_array(
        (np.ones(len(links)), (author_row, len(authors) + key_row)), shape=(size, size)
    )
    _, component = connected_components(edges, directed=False)
    last_name = table.groupby("author")["name"].agg(_surname)
    return pd.DataFrame(
        {"author": authors, "person": component[: len(authors)], "surname": last_name[authors]}
    ).reset_index(drop=True)


def _author_of(commit):
    """Return address, full name, and the address that a .mailmap gives instead, as compared."""
    full_name = " ".join(normalise_unicode(commit["mapped_name"]).casefold().split())
    return _address(commit["address"]), full_name, _address(commit["mapped_address"])


def _address(text):
    return normalise_unicode(text).strip().lower()


def _is_full_name(name):
    """Return whether a name in lower case has several words, and is one person's."""
    words = set(name.split())
    return len(words) > 1 and not words <= ROLES and not is_placeholder(name) and not is_bot(name)


def _local_part(address):
    """Return what stands before the @, without dots, where few people share it; else None."""
    name = USER_NUMBER.sub("", address).partition("@")[0].partition("+")[0]
    local_part = re.sub(r"[\W_]", "", name)
    if len(local_part) < MIN_LOCAL_PART or local_part in ROLES | FIRST_NAMES:
        return None
    return local_part


def _surname(names):
    """Return the last word of the longest of an address's names, "" where it has one word."""
    words = max(sorted(names), key=len).split()
    return words[-1] if len(words) > 1 else ""


def _repositories(location):
    """Return the folder of each repository, by name; ValueError where one holds no commit."""
    repositories = {}
    for place in as_list(location):
        if GIT_URL.match(str(place)):
            root = clone_repository(str(place), history=True)
        else:
            root = paths.resolve(place)
        if not root.is_dir():
            raise ValueError(f"git: {place} is not a folder or the address of a repository")
        name = Path(re.sub(r"(?:/\.git|\.git)/*$", "", str(place))).name
        if name in repositories:
            raise ValueError(f"git: two repositories are called {name}; rename one folder")
        git_output(root, "rev-parse", "HEAD")
        repositories[name] = root
    return repositories


def _commits(root):
    """Yield the commits of a history as dicts: FIELDS, and ``files``, a list of paths."""
    # no commit holds this line of random digits, so nothing in a message can look like a commit
    marker = secrets.token_hex(16)
    form = "%x00".join([marker, *FIELDS.values(), ""])
    command = ["log", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--encoding=UTF-8"]
    with git_process(root, *command, f"--format=%x00{form}", "HEAD") as process:
        values = None  # of a commit; before the first one git prints an empty field
        for field in _fields(process.stdout):
            if field == marker:
                if values is not None:
                    yield _commit(values)
                values = []
            elif values is not None and len(values) < len(FIELDS) + MAX_FILES:
                values.append(field)
        if values is not None:
            yield _commit(values)


def _commit(values):
    """Return a commit as a dict of its fields, and its files, between which empty values stand."""
    commit = dict(zip(FIELDS, values))
    files = [value.strip("\n") for value in values[len(FIELDS) :]]
    commit["files"] = [file for file in files if file]
    return commit


def _fields(stream):
    """Yield the fields that NUL bytes end, as text; bytes that are not UTF-8 are read as cp1252."""
    pending = b""
    while block := stream.read(BLOCK_BYTES):
        *fields, pending = (pending + block).split(b"\0")
        for field in fields:
            yield field[:MAX_FIELD_BYTES].decode("utf-8", "cp1252")
        pending = pending[:MAX_FIELD_BYTES]
    yield pending.decode("utf-8", "cp1252")


def _rows(project, root, depth, raw, drops):
    """Yield a post, or the reason of its drop, for each commit of a repository."""
    for commit in _commits(root):
        yield _row(commit, project, depth, raw, drops)


def _row(commit, project, depth, raw, drops):
    """Return the values of the post that a commit is, or the reason why it is dropped."""
    address = _address(commit["address"])
    message = commit["message"]
    subject, _, body = message.strip().partition("\n")
    if len(commit["parents"].split()) > 1:
        return "merge"
    if "@" not in address:
        return "no_address"
    if is_bot(address) or is_bot(commit["name"]):
        return "bot"
    if REVERTED.match(subject) or REVERTED.search(body):
        return "revert"
    if COPIED.search(body):
        return "copy"
    time = int(commit["time"]) if re.fullmatch(r"\d{1,12}", commit["time"]) else -1
    if not EARLIEST <= time <= LATEST:
        return "bad_time"
    text = message if raw else without_trailers(body)
    topic = _topic(project, commit["files"], depth)
    names = "\n".join([normalise_unicode(commit["name"]), *_named_people(body)])
    return address, time, topic, text, None, names


def _topic(project, files, depth):
    """Return the project and the folder, ``depth`` levels deep, that holds most of the files."""
    folders = Counter("/".join(file.split("/")[:-1][:depth]) for file in files)
    if not folders or depth == 0:
        return project
    folder = min(folders, key=lambda name: (-folders[name], name))
    return f"{project}/{folder}" if folder else project


def _named_people(body):
    """Return the names of people in the trailers of a message."""
    return [normalise_unicode(name) for name in NAMED_PERSON.findall(body)]
