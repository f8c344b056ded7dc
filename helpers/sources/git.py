"""Histories of git repositories: a commit message is a post, an address is an account.

The topic is the folder in which most of a commit's files lie. Nothing of a repository is executed:
its settings could name programs.
"""

import os
import re
import secrets
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..cleaning.code_lines import NAMED_PERSON, without_trailers
from ..cleaning.text import is_bot, normalise_unicode
from . import Part, as_list, existing_path
from .table_columns import unix_seconds

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
# settings of a repository could start programs or use the network
SAFE = ["-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "log.showSignature=false"]
SAFE_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat"}
# folders in a topic, beside the project
TOPIC_FOLDERS = 2
LOG = ["log", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--encoding=UTF-8"]

# where another commit was copied from: "(cherry picked from commit 0a1b)", "backported from ..."
COPIED = re.compile(r"^[ \t]*\(?(?:cherry[- ]picked|back-?ported) from\b", re.I | re.M)
REVERTED = re.compile(r"^[ \t]*(?:revert\b|this reverts commit\b)", re.I | re.M)


def parts(location: str | list[str]) -> list[Part]:
    """Return one part per repository; the posts are the messages of its commits.

    The author is the address in lower case, the topic the project and the folder in which most
    files of a commit lie, the text the message without its first line. Signatures and other
    trailers, notes of bugs and plans, quotes, code, and lists of files are left out.

    Drops counted: merge, revert, copy (a commit that says that it was copied from another one),
    bot, no_address, bad_time (not between 1979 and 2100), empty.

    Parameters
    ----------
    location : str or list of str
        folders of repositories, as ``git clone`` makes them, bare or not

    Raises
    ------
    ValueError
        A location is no repository or has no commit, two have the same name, or git is missing.
    """
    return [
        Part(name, partial(_rows, name, root), _head(root))
        for name, root in repositories(location).items()
    ]


def address_of(text: str) -> str:
    """Return an address of a commit as the posts table has it."""
    return normalise_unicode(text).strip().lower()


def repositories(location: str | list[str]) -> dict[str, Path]:
    """Return the folder of each repository, by name; ValueError where one holds no commit."""
    repositories = {}
    for place in as_list(location):
        root = existing_path("git", place)
        name = Path(re.sub(r"(?:/\.git|\.git)/*$", "", str(place))).name
        if name in repositories:
            raise ValueError(f"git: two repositories are called {name}; rename one folder")
        _head(root)
        repositories[name] = root
    return repositories


def _run(*words):
    """Return how a command of git ended, with its output."""
    environment = os.environ | SAFE_ENVIRONMENT
    try:
        return subprocess.run(["git", *words], capture_output=True, env=environment)
    except FileNotFoundError:
        raise ValueError("reading a repository needs git, which is not installed") from None


def _head(root):
    """Return the hash of the last commit; ValueError where a folder holds no history."""
    answer = _run("-C", str(root), *SAFE, "rev-parse", "HEAD")
    if answer.returncode:
        reason = answer.stderr.decode("utf-8", "replace").partition("\n")[0]
        raise ValueError(f"git: {root.name} holds no history that git can read: {reason}")
    return answer.stdout.decode().strip()


def commits(root: Path) -> Iterator[dict]:
    """Yield the commits of a history as dicts: FIELDS, and ``files``, a list of paths.

    The history is held in memory. Bytes that are not UTF-8 are read as cp1252.
    """
    # no commit holds this line of random digits, so nothing in a message can look like a commit
    marker = secrets.token_hex(16)
    form = "%x00".join([marker, *FIELDS.values(), ""])
    log = _run("-C", str(root), *SAFE, *LOG, f"--format={form}", "HEAD")
    if log.returncode:
        raise ValueError(
            f"git: the history of {root.name} is damaged or not complete: `git fsck` says where"
        )
    for text in log.stdout.decode("utf-8", "cp1252").split(f"{marker}\0")[1:]:
        values = text.split("\0")
        files = [value.strip("\n") for value in values[len(FIELDS) :]]
        yield dict(zip(FIELDS, values)) | {"files": list(filter(None, files))}


def _rows(project, root, drops):
    """Yield a post, or the reason of its drop, for each commit of a repository."""
    for commit in commits(root):
        yield _row(commit, project)


def _row(commit, project):
    """Return the values of the post that a commit is, or the reason why it is dropped."""
    address = address_of(commit["address"])
    subject, _, body = commit["message"].strip().partition("\n")
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
    time = unix_seconds(commit["time"])
    topic = _topic(project, commit["files"])
    names = [commit["name"], *NAMED_PERSON.findall(body)]
    return address, time, topic, without_trailers(body), None, names


def _topic(project, files):
    """Return the project and the folder, TOPIC_FOLDERS deep, that holds most of the files."""
    folders = ["/".join(file.split("/")[:-1][:TOPIC_FOLDERS]) for file in files]
    if not folders:
        return project
    ((folder, _),) = Counter(sorted(folders)).most_common(1)
    return f"{project}/{folder}".rstrip("/")
