"""Histories of git repositories: a commit message is a post, an address is an account.

People change their addresses, so a history also says which accounts are one person's, see
:func:`people`. No encoder may see that. The topic is the folder in which most of a commit's files
lie. Nothing of a repository is executed: its settings could name programs.
"""

import os
import re
import secrets
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..cleaning.code_lines import is_code, without_code
from ..cleaning.text import is_bot, normalise_unicode
from ..core import paths
from . import Part, as_list, row_part
from .downloads import GIT_URL, clone_repository
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
# settings of a repository that would start programs or use the network
SAFE = ["-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "log.showSignature=false"]
SAFE_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}
BLOCK_BYTES = 1 << 18  # bytes read at a time
MAX_FIELD_BYTES = 1 << 20  # of a longer message or name only the first bytes are read
MAX_FILES = 1000  # files of a commit that decide its topic

# "Change-Id: I0a1b", "Signed-off-by: Jane Doe", "Fixes bug 1257949", "Implements: blueprint x",
# "bp/x", "Part of blueprint x": who did what, and which bug or plan it belongs to
TRAILER = re.compile(
    r"\s*(?:[A-Za-z]+(?:-[A-Za-z]+)+ ?:\s*\S"  # "Signed-off-by: Jane", "Closes-Bug: #1257949"
    r"|(?:(?:{verbs}|{issues})[ :/#-]*)*(?:{issues})[ :/#-]*\S*\s*$"  # "part of blueprint x"
    r"|(?:(?:{verbs})[ :/#-]*)+#?(?:lp)?\d{{5,}}\W*$"  # "Fixes 1257949"
    r"|(?:cc|author|date|link|commit|merge|change[- ]?id) ?: *\S"
    r"|(?:[A-Z][A-Za-z]+Impact|CVE-\d+\S*)\s*:?.{{0,80}}$)".format(
        verbs="partial(?:ly)?|part|partly|closes?|closing|fix(?:es|ed)?|resolves?|related?|relates"
        "|addresses|implements?|completes?|supports?|for|of|see|the|this|to",
        issues="blueprint|bp|bugs?|lp|story|task|issue|bugzilla|coverity|id|number",
    ),
    re.I,
)
# where another commit was copied from: "(cherry picked from commit 0a1b)", "backported from ..."
COPIED = re.compile(r"^\s*\(?(?:cherry[- ]picked|back-?ported) from\b", re.I | re.M)
REVERTED = re.compile(r"^\s*(?:revert\b|this reverts commit\b)", re.I | re.M)
# "[1] https://example.org/x", "[1]: ...", a line that is an address
FOOTNOTE = re.compile(r"\s*(?:\[\w{1,9}\]:?|\(?\d{1,2}[.)])?\s*(?:https?|ftp)://\S+\s*$")
# "62e88623d977", "I5563360b43c4b648f5b035099b0e1d2e71d32503": a commit, or a change under review
HASH = re.compile(r"\bI?(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b")
# where a list of files follows that a merge could not join: "Conflicts:", "# Conflicts:"
CONFLICTS = re.compile(r"\s*#?\s*Conflicts:?\s*$", re.I)
INDENTED = re.compile(r"(?:\t| {4,})\S")
LIST_ITEM = re.compile(r"\s*(?:[-*+o]|\d{1,2}[.)])\s")
# local parts of addresses that many people have
COMMON_LOCAL_PARTS = set(
    "admin administrator contact dev developer devel email git github hello info john mail me "
    "michael mike openstack root stack support team test ubuntu user vagrant zuul jenkins".split()
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
        row_part(name, partial(_rows, name, root, depth, raw), _git(root, "rev-parse", "HEAD"))
        for name, root in repositories.items()
    ]


def people(location: str | list[str]) -> pd.DataFrame:
    """Say which addresses of some histories are one person's.

    Two addresses are one person's where a ``.mailmap`` says so, where both were used with one full
    name, or where they agree before the @. Who shares a last name and nothing else is undecided:
    such pairs are neither one person nor two.

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
    keys = [
        table["author"] + "\0address",
        table["mapped"] + "\0address",
        table["name"].where(table["name"].str.contains(" ")) + "\0name",
        table["author"].map(_local_part) + "\0local",
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


def _local_part(address):
    """Return what stands before the @, without dots, where few people share it; else None."""
    local_part = re.sub(r"[\W_]", "", address.partition("@")[0].partition("+")[0])
    if len(local_part) < MIN_LOCAL_PART or local_part in COMMON_LOCAL_PARTS:
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
        _git(root, "rev-parse", "HEAD")
        repositories[name] = root
    return repositories


def _command(root, *words):
    return ["git", "-C", str(root), *SAFE, *words]


def _git(root, *words):
    """Return what git prints; ValueError where it is missing or refuses."""
    environment = os.environ | SAFE_ENVIRONMENT
    try:
        answer = subprocess.run(
            _command(root, *words), capture_output=True, text=True, env=environment
        )
    except FileNotFoundError:
        raise ValueError("git: reading a history needs git, which is not installed") from None
    if answer.returncode:
        reason = (answer.stderr.strip().splitlines() or ["no reason given"])[0]
        raise ValueError(f"git: {root.name} holds no history that git can read: {reason}")
    return answer.stdout.strip()


def _commits(root):
    """Yield the commits of a history as dicts: FIELDS, and ``files``, a list of paths."""
    # no commit holds this line of random digits, so nothing in a message can look like a commit
    marker = secrets.token_hex(16)
    form = "%x00".join([marker, *FIELDS.values(), ""])
    command = _command(root, "log", "-z", "--name-only", "--no-renames", "--no-ext-diff")
    command += ["--encoding=UTF-8", f"--format=%x00{form}", "HEAD"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | SAFE_ENVIRONMENT,
    )
    with process:
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
    if process.returncode:
        raise ValueError(f"git: the history of {root.name} is damaged: `git fsck` says where")


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


# "Co-authored-by: Jane Doe <jane@example.org>"
NAMED_PERSON = re.compile(r"^\s*[A-Za-z]+-by:\s*([^<>\n]{3,80}?)\s*<", re.I | re.M)


def _named_people(body):
    """Return the names of people in the trailers of a message."""
    return [normalise_unicode(name) for name in NAMED_PERSON.findall(body)]


def without_trailers(body: str) -> str:
    """Return the prose of a message: its lines but trailers, footnotes, code and lists of files.

    Names of commits become "@code".

    Parameters
    ----------
    body : str
        a commit message without its first line
    """
    lines = []
    in_conflicts = False
    for line in HASH.sub("@code", body).expandtabs(4).splitlines():
        if CONFLICTS.match(line):
            in_conflicts = True
        elif in_conflicts and line.strip() and not line.startswith((" ", "#")):
            in_conflicts = False
        if in_conflicts or TRAILER.match(line) or FOOTNOTE.match(line):
            continue
        lines.append(line)
    return "\n".join(without_code(_without_blocks(lines)))


def _without_blocks(lines):
    """Return lines without code: indented blocks that follow a blank line and are no list.

    An indented line that goes on with a list's item, or with a sentence, stays.
    """
    kept = []
    in_block = False
    in_list = False
    for line in lines:
        if LIST_ITEM.match(line):
            in_list = True
        elif line.strip() and not line.startswith(" "):
            in_list = False
        after_blank = not kept or not kept[-1].strip()
        if not line.strip():
            kept.append(line)
        elif INDENTED.match(line) and not in_list and (in_block or after_blank or is_code(line)):
            in_block = True
        else:
            in_block = False
            kept.append(line)
    return kept
