"""Histories of git: what is read, what is dropped and why, and who is one person."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from helpers.cleaning.code_lines import without_trailers
from helpers.core import paths
from helpers.sources import open_source
from tests.factories import read_source
from tests.sources.examples import EXAMPLES

sys.path.append(str(paths.PARAMS / "commits"))
from people import find_people  # noqa: E402

ENVIRONMENT = os.environ | {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_COMMITTER_NAME": "Zuul",
    "GIT_COMMITTER_EMAIL": "zuul@example.org",
}
BODY = "The cache was emptied too early, so every reader had to wait for it."


def run(root, *words, **options):
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def commit(root, message, author="Jane Doe <jane@example.org>", file="src/store/cache.py", **more):
    """Add a commit; ``more`` holds the date, and options of git."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{message} {author} {more}")
    run(root, "add", "-A")
    name, address = author.rstrip(">").split(" <")
    dates = {"GIT_AUTHOR_DATE": more.get("date", "1500000000 +0900")}
    who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": address}
    message = message if isinstance(message, bytes) else message.encode()
    environment = ENVIRONMENT | dates | who | {"GIT_COMMITTER_DATE": "1500000000 +0000"}
    words = ["commit", "-q", "--allow-empty-message", "--cleanup=verbatim", "-F", "-"]
    run(root, *more.get("settings", ()), *words, input=message, env=environment)


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "nova"
    root.mkdir()
    run(root, "init", "-q")
    return root


def read(root, **options):
    rows, drops = read_source("git", root, **options)
    return rows.to_numpy().tolist(), drops


def test_a_message_is_a_post_and_an_address_an_account(repository):
    commit(repository, f"Fix the cache\n\n{BODY}\n", "Jane Doe <Jane@Example.org>")
    rows, drops = read(repository)
    assert drops == {}
    (row,) = rows
    author, time, topic, text, *_ = row
    assert (author, time, topic) == ("jane@example.org", 1500000000, "nova/src/store")
    assert text.strip() == BODY


@pytest.mark.parametrize(("body", "text"), EXAMPLES["git_messages"])
def test_what_is_not_prose_is_left_out(body, text):
    left = without_trailers(body.replace("BODY", BODY))
    assert left.split() == text.replace("BODY", BODY).replace("62e88623d977", "@code").split()


def test_what_is_no_message_of_a_person_is_counted(repository):
    commit(repository, f"First\n\n{BODY}")
    run(repository, "branch", "side")
    commit(repository, f'Revert "First"\n\n{BODY}')
    commit(repository, f"Copy\n\n{BODY}\n\n(cherry picked from commit 62e88623d977d2)")
    commit(repository, f"Bump\n\n{BODY}", "dependabot[bot] <support@github.com>")
    commit(repository, f"Up\n\n{BODY}", "x <49+dependabot[bot]@users.noreply.github.com>")
    commit(repository, f"One\n\n{BODY}", "J. <5+janedoe@users.noreply.github.com>")
    commit(repository, f"Who\n\n{BODY}", "Jane Doe <jane>")
    commit(repository, f"When\n\n{BODY}", date="@1 +0000")
    commit(repository, "Only a subject")
    run(repository, "checkout", "-q", "side")
    commit(repository, f"Beside\n\n{BODY}", file="b.py")
    merging = ("-c", "user.name=J", "-c", "user.email=j@example.org")
    run(repository, *merging, "merge", "-q", "-m", f"Merge\n\n{BODY}", "-")
    rows, drops = read(repository)
    assert len(rows) == 3, "a private address is a person's"
    reasons = "revert copy bot no_address bad_time empty merge".split()
    assert drops == dict.fromkeys(reasons, 1) | {"bot": 2}


def test_hostile_messages(repository):
    commit(repository, b"Bytes\n\nDas Men\xfc wird zu fr\xfch geleert, \xff und zwar immer wieder.")
    latin = ("-c", "i18n.commitEncoding=ISO-8859-1")
    commit(repository, b"Latin\n\nDas Men\xfc wird zu fr\xfch geleert.", settings=latin)
    commit(repository, "Long\n\n" + "The cache is emptied. " * 200_000)
    commit(repository, f"\x1e\x1f\x01\n\n{BODY}\n<script>alert(1)</script>")
    commit(repository, "")
    commit(repository, f"File\n\n{BODY}", file="a\nb/ \x01/c")
    rows, drops = read(repository)
    assert drops == {"empty": 1} and len(rows) == 5
    texts = [row[3] for row in rows]
    assert sum("Menü" in text for text in texts) == 2


def test_what_cannot_be_read_is_said(tmp_path, repository):
    (tmp_path / "folder").mkdir()
    for name in ("folder", "nova", "missing"):
        with pytest.raises(ValueError, match=r"^git: "):
            open_source("git", str(tmp_path / name))


def test_nothing_of_a_repository_is_executed(tmp_path, repository):
    commit(repository, f"First\n\n{BODY}")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    program.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.askPass"):
        run(repository, "config", setting, str(program))
    run(repository, "config", "log.showSignature", "true")
    assert len(read(repository)[0]) == 1
    assert not (tmp_path / "executed").exists()


def test_who_is_one_person(repository):
    people = {
        "Jane Doe <jane@example.org>": 0,
        "Jane Doe <jdoe77@work.example.com>": 0,  # the same full name
        "J. D. <jdoe77@home.example.net>": 0,  # the same local part
        "J. <5+jdoe77@users.noreply.github.com>": 0,
        "Old Name <old@example.org>": 0,  # by .mailmap
        "Ann <ann@a.example.org>": 1,
        "Ann <ann@b.example.org>": 2,  # neither a full name nor a rare local part
        "John Doe <john.d@example.org>": 3,
    }
    (repository / ".mailmap").write_text("Jane Doe <jane@example.org> <old@example.org>\n")
    for author in people:
        commit(repository, f"By {author}\n\n{BODY}", author)
    table = find_people(str(repository)).set_index("author")
    person = {author: table.person[author.split("<")[1].rstrip(">")] for author in people}
    groups = Counter((person[author], number) for author, number in people.items())
    assert len(groups) == len(set(person.values())) == len(set(people.values()))
    assert table.surname["john.d@example.org"] == table.surname["jane@example.org"] == "doe"
    assert table.surname["ann@a.example.org"] == ""


def test_names_and_addresses_of_many_people_join_nobody(repository):
    people = (
        "Your Name <ann@a.example.org>|Your Name <berit@b.example.org>|"
        "Root User <cem@c.example.org>|Root User <dora@d.example.org>|"
        "David Berg <david@a.example.org>|David Clay <david@b.example.org>|"
        "Shashank Roy <shashank@a.example.org>|Shashank Iyer <shashank@b.example.org>|"
        "Gil Lund <root@localhost>|Hana Mori <root@localhost>|Hana Mori <hana@example.org>"
    ).split("|")
    for author in people:
        commit(repository, f"By {author}\n\n{BODY}", author)
    table = find_people(str(repository))
    assert table["person"].nunique() == len(table) == 10
