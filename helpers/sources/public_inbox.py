"""Mailing lists as public-inbox keeps them: repositories of git that hold one mail a commit.

In the layout v2 a commit has the mail as the file ``m``, or as ``d`` to delete it, and a long list
goes on in another repository, its next epoch: ``git/0.git``, ``git/1.git`` ... In the layout v1
each mail is a file of its own in one of the folders ``00`` to ``ff``. The posts table's topic is
the list.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from ..cleaning.commit_messages import NAMED_PERSON
from ..cleaning.email import own_paragraphs
from ..cleaning.patch_lines import has_patch, prose_lines, without_patches
from ..cleaning.salutations import mask_addressees
from ..cleaning.text import is_bot, mask_mentions, normalise_unicode
from ..core.artifacts import fingerprint_of
from . import Part, as_list, existing_paths, row_part
from .downloads import GIT_URL, clone_repository
from .git_commands import git_output, git_process, read_objects
from .mails import parse_mail

MAX_MESSAGE_BYTES = 1 << 24  # a larger mail is dropped as too_large
MAX_HEAD_BYTES = 1 << 16  # the Message-ID is looked for in so many first bytes
BATCH_OBJECTS = 256  # mails that git is asked for at once
MAX_DEPTH = 3  # folders between a location and its repositories
MAX_AHEAD_SECONDS = 86_400  # a mail dated later than this after it was received has a forged date
# "0.git": an epoch, in the folder of its list or in the folder "git" there; "list.0": both in one
EPOCH = re.compile(r"\d{1,4}")
LIST_AND_EPOCH = re.compile(r"(.+)\.(\d{1,4})")
# a line of `git log --raw`: ":100644 100644 0a1b... 2c3d... M\tm"
CHANGE = re.compile(
    rb":\d{6} \d{6} ([\da-f]{40,64}) ([\da-f]{40,64}) ([A-Z])\d*\t"
    rb"(m|d|[\da-f]{2}/[\da-f]{38,62})\n"
)
HEAD_END = re.compile(rb"\r?\n\r?\n")
MESSAGE_ID = re.compile(rb"^message-id:\s*<?([^<>\s]{1,1000})", re.I | re.M)
# programs that send mails under names that do not say "bot" as a word of its own
ROBOT = re.compile(
    r"\brobot\b|syzbot|syzkaller|buildbot|patchwork|patchew|kernelci|\blkft\b|\blkp@"
    r"|functional testing|-daemon@|^notifications?@|autobuild|\bcron\b"
    r"|debian ftp masters|bug tracking system",
    re.I,
)
# subjects of mails that programs write under the name of a person
ROBOT_SUBJECT = re.compile(
    r"(?:Patch \".*\" has been added|FAILED: patch|Processed: |Processing of "
    r"|\[?Bug ?#?\d+\b.{0,3}:? New|\[syzbot\]|\S+ is marked"
    r"|Out of office|Automatic reply|Undeliver)",
    re.I,
)


class Inbox(NamedTuple):
    """A repository of a mailing list.

    Attributes
    ----------
    root : Path
    head : str
        hash of its last commit
    topic : str
        name of the list
    epoch : str
        number of the repository within its list, "" where it is the only one
    """

    root: Path
    head: str
    topic: str
    epoch: str

    @property
    def name(self) -> str:
        """The list, and the epoch if there is one."""
        return f"{self.topic}/{self.epoch}".rstrip("/")


def parts(location: str | list[str], *, by_list_id: bool = False, raw: bool = False) -> list[Part]:
    """Return one part per repository; the posts are the mails of people, replies without patches.

    The author is the address of the sender, the topic the list. Quotes, signatures, footers, code,
    patches, logs, and lines such as "Reviewed-by: Jane Doe" are left out.

    Drops counted: deleted, missing (git has not the file), too_large, duplicate (an earlier
    repository of the location, or a later commit, has the Message-ID), broken_mail, bot,
    broken_header (no sender or no date), list_sender (the list replaced the author's address),
    bad_date (unreadable, before 1980, or a day or more after the mail was received), patch (also a
    mail that asks to pull changes), no_text, too_many_tags, empty. Noted: see
    :func:`helpers.cleaning.email_headers.decode_header`.

    Parameters
    ----------
    location : str or list of str
        repositories, bare or not, folders that hold some at most MAX_DEPTH folders below, or
        addresses of repositories (cloned once, with all mails, into ``data/clones/``)
    by_list_id : bool
        take the topic from a mail's header List-Id where it has one, not from the name of the
        folder: "dev.0" and "dev/git/0.git" are both the list "dev"
    raw : bool
        keep the whole text: quotes, signatures, patches and the author's own name

    Raises
    ------
    ValueError
        A location is missing or holds no mails, two repositories have the same list and epoch, or
        git is missing.
    """
    inboxes = {}
    for place in as_list(location):
        for root, shown in _repositories(place):
            inbox = _inbox(root, shown)
            if inbox.name in inboxes:
                raise ValueError(
                    f"public_inbox: {inboxes[inbox.name].root} and {root} are both {inbox.name}; "
                    "rename one of the folders"
                )
            inboxes[inbox.name] = inbox

    mail_parts = []
    earlier = []
    for name, inbox in inboxes.items():
        rows = partial(_rows, inbox, tuple(earlier), by_list_id, raw)
        earlier.append(inbox)
        stamp = fingerprint_of([(known.name, known.head) for known in earlier])
        mail_parts.append(row_part(name, rows, stamp))
    return mail_parts


def _repositories(place):
    """Return the folder of each repository at a place, and the path that names its list."""
    if GIT_URL.match(str(place)):
        address = re.sub(r"\.git/*$|/+$", "", str(place))
        return [(clone_repository(str(place), history=True, files=True), PurePosixPath(address))]
    (root,) = existing_paths("public_inbox", place)
    if not root.is_dir():
        raise ValueError(f"public_inbox: {root} is no folder")
    return [(folder, folder) for folder in _find(root, MAX_DEPTH)]


def _find(folder, depth):
    """Return the repositories in a folder; ``all.git`` only points to its neighbours."""
    if (folder / ".git").exists() or (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return [folder]
    repositories = []
    if depth:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and path.name != "all.git":
                repositories += _find(path, depth - 1)
    return repositories


def _inbox(root, shown):
    """Return the inbox of a repository; ValueError where it holds no mails."""
    head = git_output(root, "rev-parse", "HEAD")
    names = git_output(root, "ls-tree", "--name-only", head).split("\n")
    if not any(re.fullmatch("m|d|[0-9a-f]{2}", name) for name in names):
        raise ValueError(
            f"public_inbox: {root} is no inbox: its last commit has neither a file m or d nor a "
            "folder 00 to ff"
        )
    folders = [name.removesuffix(".git") for name in shown.parts if name not in ("git", ".git")]
    folders = [name for name in folders if name]
    topic = folders[-1]
    match = LIST_AND_EPOCH.fullmatch(topic)
    if EPOCH.fullmatch(topic) and len(folders) > 1:
        return Inbox(root, head, folders[-2], topic)
    if match:
        return Inbox(root, head, *match.groups())
    return Inbox(root, head, topic, "")


def _rows(inbox, earlier, by_list_id, raw, drops):
    """Yield a post, or the reason of its drop, for each mail of a repository."""
    earlier_ids = np.unique(np.concatenate([_hashed_ids(known) for known in (*earlier, None)]))
    ids = set()
    for received, data in _mails(inbox, MAX_MESSAGE_BYTES):
        if isinstance(data, str):
            yield data
            continue
        if len(data) > MAX_MESSAGE_BYTES:
            yield "too_large"
            continue
        hashed_id = _hashed_id(data)
        if hashed_id is not None and (hashed_id in ids or _holds(earlier_ids, hashed_id)):
            yield "duplicate"
            continue
        ids.add(hashed_id)
        yield _row(parse_mail(data, drops, raw), received, inbox.topic, by_list_id, raw)


@lru_cache(maxsize=None)
def _hashed_ids(inbox):
    """Return the hashed Message-IDs of an inbox, 8 bytes each; none of None.

    They are kept: each later repository of a location is compared with them.
    """
    if inbox is None:
        return np.empty(0, np.uint64)
    ids = set()
    for _, data in _mails(inbox, MAX_HEAD_BYTES):
        if not isinstance(data, str):
            ids.add(_hashed_id(data))
    return np.array(sorted(ids - {None}), np.uint64)


def _hashed_id(data):
    """Return a hash of a mail's Message-ID, None where it has none."""
    head = HEAD_END.split(data[:MAX_HEAD_BYTES], maxsplit=1)[0]
    message_id = MESSAGE_ID.search(head)
    if not message_id:
        return None
    return int.from_bytes(hashlib.blake2b(message_id[1], digest_size=8).digest(), "little")


def _holds(sorted_ids, hashed_id):
    """Return whether a sorted array holds a number."""
    place = np.searchsorted(sorted_ids, np.uint64(hashed_id))
    return place < len(sorted_ids) and sorted_ids[place] == hashed_id


def _mails(inbox, max_bytes) -> Iterator[tuple[int, bytes | str]]:
    """Yield the time at which a mail was received and its bytes, or why there are none.

    Of a mail larger than ``max_bytes`` one byte more than these is read.
    """
    with git_process(inbox.root, "cat-file", "--batch") as reader:
        changes = _changes(inbox)
        while batch := list(islice(changes, BATCH_OBJECTS)):
            names = [name for _, name in batch if name]
            contents = read_objects(inbox.root, names, reader, max_bytes)
            for received, name in batch:
                if not name:
                    yield received, "deleted"
                    continue
                content = next(contents)
                yield received, "missing" if content is None else content


def _changes(inbox):
    """Yield the time at which a mail was received and the hash of its file, the latest mail first.

    The hash of a mail that was deleted later is "".
    """
    deleted = set()
    received = 0
    options = ["--raw", "--no-abbrev", "--root", "--no-renames", "--no-ext-diff", "--format=%ct"]
    with git_process(inbox.root, "log", *options, inbox.head) as process:
        for line in process.stdout:
            if line.strip().isdigit():
                received = int(line)
            change = CHANGE.fullmatch(line)
            if not change:
                continue
            old, new, kind, path = (group.decode() for group in change.groups())
            if path == "d":
                deleted.add(new)
            elif kind in "AMT":
                yield received, "" if new in deleted else new
            if len(path) > 1 and kind in "DM":
                deleted.add(old)


def _row(mail, received, topic, by_list_id, raw):
    """Return the values of the post that a mail is, or the reason why it is dropped."""
    if mail is None:
        return "broken_mail"
    message = mail.message
    reason = _drop_reason(mail, received)
    if reason:
        return reason
    text = message.body.strip()
    if not raw:
        text = own_paragraphs(without_patches(message.body), prose_lines)
        # here, because later steps know only the author's address, not the name
        text = mask_mentions(mask_addressees(text, message.name, mail.people), message.name)
    if by_list_id and mail.list_id:
        topic = mail.list_id
    names = [message.names, *mail.people, *NAMED_PERSON.findall(message.body)]
    return (
        message.author,
        message.time,
        topic,
        text,
        message.id,
        normalise_unicode("\n".join(names)),
    )


def _drop_reason(mail, received):
    """Return why a mail is no post of a person, None where it is one."""
    message = mail.message
    if mail.is_automatic or ROBOT_SUBJECT.match(mail.subject):
        return "bot"
    for sender in (message.address, message.name):
        if is_bot(sender) or ROBOT.search(sender):
            return "bot"
    if message.name and not message.address and mail.list_id:
        return "list_sender"
    if not (message.name or message.address) or message.date is None:
        return "broken_header"
    if message.time is None or message.time > received + MAX_AHEAD_SECONDS:
        return "bad_date"
    if mail.is_patch or not mail.is_reply and has_patch(message.body):
        return "patch"
    return mail.problem
