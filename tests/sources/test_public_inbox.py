"""Mailing lists in git: what is read, what is dropped and why, and what hostile mails do."""

import base64
import subprocess
import time
from collections import Counter

import pytest

from helpers.cleaning.patch_lines import prose_lines, without_patches
from helpers.sources import COLUMNS, open_source, public_inbox
from tests.factories import read_source

PROSE = "I think that the cache is emptied too early, so every reader has to wait for it."
RECEIVED = 1_593_684_900  # Thu, 2 Jul 2020 10:15:00 +0000
PATCH = (
    "diff --git a/src/a.c b/src/a.c\nindex 62e88623d977..0a1b2c3d4 100644\n--- a/src/a.c\n"
    "+++ b/src/a.c\n@@ -1,3 +1,3 @@ int main(void)\n-\treturn f(x);\n+\treturn g(x);\n \n }\n-- \n"
    "2.30\n"
)


def mail(body=PROSE, sender="Jane Doe <Jane@Example.org>", number=1, **headers):
    """The bytes of a mail; a header whose value is None is left out."""
    fields = {
        "From": sender,
        "To": "dev@lists.example.org",
        "Subject": "Re: the cache",
        "Date": "Thu, 2 Jul 2020 12:15:00 +0200",
        "Message-ID": f"<{number}@example.org>",
    }
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\n" for name, value in fields.items() if value is not None)
    body = body if isinstance(body, bytes) else body.encode()
    return head.encode() + b"\n" + body


def inbox(folder, *changes, received=RECEIVED):
    """Write a repository of one commit per change: a mail, or a path and the mail that is there."""
    stream = b""
    for change in changes:
        path, data = ("m", change) if isinstance(change, bytes) else change
        who = f"J <j@example.org> {received} +0000"
        stream += f"commit refs/heads/master\ncommitter {who}\ndata 1\nx\ndeleteall\n".encode()
        stream += f"M 644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", folder], check=True)
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=stream, check=True)
    return folder


def path_of(folder, name):
    """The file of an object."""
    words = ["git", "-C", folder, "rev-parse", name]
    answer = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    return folder / "objects" / answer[:2] / answer[2:]


def read(folder, **options):
    rows, drops = read_source("public_inbox", folder, **options)
    return rows, drops


def texts_of(tmp_path, *mails, **options):
    rows, drops = read(inbox(tmp_path / "dev.git", *mails), **options)
    return rows["text"].tolist(), drops


def test_a_mail_is_a_post_and_the_list_its_topic(tmp_path):
    body = (
        f"On Wed, 1 Jul 2020, Jack Lee wrote:\n> theirs\n\n{PROSE}\n\n"
        "Reviewed-by: Ann Ash <ann@example.org>\n\nJane\n-- \nJane Doe\nhttps://example.org\n"
    )
    who = {"Cc": "Bob Berg <bob@example.org>"}
    rows, drops = read(inbox(tmp_path / "dev.git", mail(body, **who)))
    assert rows[COLUMNS].to_numpy().tolist() == [
        ["jane@example.org", RECEIVED, "dev", f"{PROSE}\n\n@self"]
    ]
    assert rows["id"].tolist() == ["1@example.org"] and drops == {}
    names = {"Jane Doe", "Jack Lee", "Bob Berg", "Ann Ash"}
    assert names <= {name.strip() for name in rows["names"][0].split("\n")}
    rows, _ = read(tmp_path / "dev.git", raw=True)
    assert rows["text"][0] == body.strip()


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (["dev/git/0.git", "dev/git/1.git"], ["dev/0", "dev/1"]),
        (["dev.example.org.0", "dev.example.org.1"], ["dev.example.org/0", "dev.example.org/1"]),
        (["dev.git", "users.git"], ["dev", "users"]),
    ],
)
def test_lists_and_epochs_are_named_after_folders(tmp_path, places, names):
    for number, place in enumerate(places):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        inbox(tmp_path / place, mail(number=number))
    assert [part.name for part in open_source("public_inbox", str(tmp_path))] == names
    rows, drops = read(tmp_path)
    assert rows["topic"].tolist() == [name.split("/")[0] for name in names] and drops == {}


def test_the_topic_may_be_the_list_that_a_mail_names(tmp_path):
    folder = inbox(tmp_path / "all.0", mail(List_Id="Dev <dev.example.org>"), mail(number=2))
    rows, _ = read(folder, by_list_id=True)
    assert sorted(rows["topic"]) == ["all", "dev.example.org"]


def test_a_clone_and_a_bare_repository_give_the_same(tmp_path):
    folder = inbox(tmp_path / "a/dev.git", mail(), mail(number=2))
    subprocess.run(["git", "clone", "-q", folder, tmp_path / "b/dev"], check=True)
    rows, drops = read(folder)
    clone_rows, clone_drops = read(tmp_path / "b/dev")
    assert rows.equals(clone_rows) and drops == clone_drops and len(rows) == 2


def test_folders_of_the_first_layout(tmp_path):
    hashes = [f"{number:02x}" + "/" + f"{number:038x}" for number in range(3)]
    first = mail(number=0)
    changes = [(path, mail(number=number)) for number, path in enumerate(hashes)]
    folder = inbox(tmp_path / "dev.git", *changes)
    rows, drops = read(folder)
    # each commit of `inbox` removes the file of the one before
    assert rows["id"].tolist() == ["2@example.org"] and drops == {"deleted": 2}
    assert first


def test_deleted_mails_stay_out(tmp_path):
    gone = mail("nobody is to read this, whoever asks", number=7)
    texts, drops = texts_of(tmp_path, mail(), gone, ("d", gone), mail(number=2))
    assert texts == [PROSE] * 2 and drops == {"deleted": 1}


def test_a_message_id_counts_once_over_epochs_and_lists(tmp_path):
    copy = mail(List_Post="<mailto:users@lists.example.org>")
    for name, mails in {"dev.0": [mail(), copy], "dev.1": [copy], "users.0": [copy]}.items():
        inbox(tmp_path / name, *mails, mail(number=name))
    rows, drops = read(tmp_path)
    assert sorted(rows["id"]) == sorted(
        f"{n}@example.org" for n in ["1", "dev.0", "dev.1", "users.0"]
    )
    assert drops == {"duplicate": 3}


def test_a_part_is_read_again_when_a_repository_before_it_grows(tmp_path):
    for name in ("a.git", "b.git"):
        inbox(tmp_path / name, mail(number=name))
    stamps = {part.name: part.stamp for part in open_source("public_inbox", str(tmp_path))}
    inbox(tmp_path / "c.git", mail(number=3))
    again = {part.name: part.stamp for part in open_source("public_inbox", str(tmp_path))}
    assert again | stamps == again
    subprocess.run(["rm", "-r", tmp_path / "a.git"], check=True)
    inbox(tmp_path / "a.git", mail(number=4))
    again = {part.name: part.stamp for part in open_source("public_inbox", str(tmp_path))}
    assert not set(again.values()) & set(stamps.values())


def test_every_mail_is_kept_or_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(public_inbox, "MAX_MESSAGE_BYTES", 100_000)
    dropped = {
        "bot": [
            mail(sender="kernel test robot <lkp@intel.example>"),
            mail(sender="syzbot <syzbot+1@example.org>"),
            mail(sender="patchwork-bot+dev@example.org"),
            mail(Auto_Submitted="auto-generated"),
            mail(Subject='FAILED: patch "x" failed to apply to 5.4-stable tree'),
        ],
        "patch": [
            mail(f"{PROSE}\n---\n{PATCH}", Subject="[PATCH v2 1/3] cache: wait"),
            mail(f"{PROSE}\n\n{PATCH}", Subject="cache: wait"),
            mail(Subject="[dev] [GIT PULL] changes"),
        ],
        "broken_header": [mail(sender=None), mail(Date=None)],
        "bad_date": [
            mail(Date="Sun, 7 Feb 2106 06:28:16 +0000"),
            mail(Date="Fri, 3 Jul 2020 12:15:00 +0000"),
            mail(Date="yesterday"),
            mail(Date="Thu, 1 Jan 1970 00:00:00 +0000"),
        ],
        "list_sender": [
            mail(
                sender="Jane Doe via dev <dev@example.org>",
                List_Post="<mailto:dev@example.org>",
                List_Id="<dev.example.org>",
            )
        ],
        "no_text": [mail(b"\x00", MIME_Version="1.0", Content_Type="image/png")],
        "too_many_tags": [mail("<b>" * 9999, MIME_Version="1.0", Content_Type="text/html")],
        "too_large": [mail("long " * 50_000)],
        "empty": [mail("> all of it is quoted"), mail("")],
    }
    mails = [mail()] + [data for group in dropped.values() for data in group]
    mails = [data.replace(b"<1@", b"<%d@" % n, 1) for n, data in enumerate(mails)]
    texts, drops = texts_of(tmp_path, *mails)
    assert texts == [PROSE]
    assert drops == {reason: len(group) for reason, group in dropped.items()}


def test_first_names_that_are_everyday_words_are_masked_where_they_are_names(tmp_path):
    body = f"{PROSE}\n\nDJ, did you see it?\nRob, will you?\nRob\n\nDean,\nthis is not for you."
    data = mail(body, "Rob Roe <rob@example.org>", To="DJ Doe <dj@example.org>, Rob Berg <b@x.org>")
    lines = ["@user, did you see it?", "@user, will you?", "@self", "", "Dean,"]
    lines += ["this is not for you."]
    assert texts_of(tmp_path, data)[0] == ["\n".join([PROSE, "", *lines])]


def test_a_list_that_rewrites_senders_names_the_author_elsewhere(tmp_path):
    headers = {"List_Post": "<mailto:dev@example.org>", "Reply_To": "dev@example.org, Jane@x.org"}
    rows, _ = read(
        inbox(tmp_path / "dev.git", mail(sender="Jane via dev <dev@example.org>", **headers))
    )
    assert rows["author"].tolist() == ["jane@x.org"]


def mime(body, kind="text/plain", charset="utf-8", encoding="8bit", number=1):
    kind = f'{kind}; charset="{charset}"' if charset else kind
    headers = {"Content_Type": kind, "Content_Transfer_Encoding": encoding}
    return mail(body, number=number, MIME_Version="1.0", **headers)


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (mime("Das Menü wird zu früh geleert.".encode()), {}),
        (mime("Das Menü wird zu früh geleert.".encode("cp1252"), charset="iso-8859-1"), {}),
        (mime("Das Menü wird zu früh geleert.".encode(), charset="nonsense"), {}),
        (mime("Das Menü wird zu früh geleert.".encode(), charset="punycode"), {}),
        (mime("Das Menü wird zu früh geleert.".encode("cp1252")), {"note_cp1252": 1}),
        (mime(b"Das Men=C3=BC wird zu fr=C3=\n=BCh geleert.", encoding="quoted-printable"), {}),
        (mime(base64.b64encode("Das Menü wird zu früh geleert.".encode()), encoding="base64"), {}),
        (mime("<p>Das Men&uuml; wird<o:p> zu früh</o:p> geleert.", "text/html"), {}),
    ],
)  # fmt: skip
def test_encodings(tmp_path, data, notes):
    assert texts_of(tmp_path, data) == (["Das Menü wird zu früh geleert."], notes)


def test_bytes_that_mean_nothing_are_counted(tmp_path):
    texts, drops = texts_of(tmp_path, mime(b"Das Men\x81 wird zu fr\xfch geleert."))
    assert texts == ["Das Men\ufffd wird zu früh geleert."] and drops == {"note_undecodable": 1}


@pytest.mark.parametrize("kind", ["mixed", "alternative", "signed"])
def test_the_first_plain_part_is_the_text(tmp_path, kind):
    page = "--x\nContent-Type: text/html\n\n<p>a page</p>\n"
    attached = "--x\nContent-Type: text/plain\nContent-Disposition: attachment\n\nattached\n"
    plain = f"--x\nContent-Type: text/plain\n\n{PROSE}\n"
    body = f"{page}{attached}{plain}--x--\n"
    data = mail(body, MIME_Version="1.0", Content_Type=f'multipart/{kind}; boundary="x"')
    assert texts_of(tmp_path, data)[0] == [PROSE]


HOSTILE = {
    "empty": b"",
    "blanks": b"\n" * 2_000_000,
    "no head": b"\xff\x00" * 1000,
    "a line": mail("a" * 10_000_000),
    "a header": mail(Subject="Re: " + "=?utf-8?q?x?=" * 200_000),
    "people": mail(To="a <b@c>, " * 200_000),
    "folders": mail("/a/b" * 500_000),
    "brackets": mail("([{<" * 500_000),
    "lines": mail("On x wrote:\n" * 100_000),
    "marks": mail(">|" * 500_000),
    "patches": mail("@@ -1\n" * 200_000),
    "bidi": mail("a\u202eb\x00 " + PROSE, sender="J\u202e\x00 <j@x>"),
    "types": mail(MIME_Version="1.0", Content_Type="multipart/mixed; boundary=" + "x" * 100_000),
    "nested": mail(
        "".join(
            f'--{n}\nContent-Type: multipart/mixed; boundary="{n + 1}"\n\n' for n in range(3000)
        ),
        MIME_Version="1.0",
        Content_Type='multipart/mixed; boundary="0"',
    ),
    "from": mail(sender="<<>>,;:@\"'(" * 1000),
    "date": mail(Date="9" * 100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mails(tmp_path, name):
    folder = inbox(tmp_path / "dev.git", HOSTILE[name], mail(number="ok"))
    began = time.perf_counter()
    rows, drops = read(folder)
    assert time.perf_counter() - began < 20
    losses = sum(count for reason, count in drops.items() if not reason.startswith("note_"))
    assert len(rows) + losses == 2 and "ok@example.org" in set(rows["id"])
    "".join(rows[["author", "topic", "text"]].to_numpy().ravel()).encode()


def test_a_mail_that_git_has_not_is_counted(tmp_path):
    folder = inbox(tmp_path / "dev.git", mail(), mail("gone" * 99, number=2))
    path_of(folder, "HEAD:m").unlink()
    rows, drops = read(folder)
    assert len(rows) == 1 and drops == {"missing": 1}


@pytest.mark.parametrize("kind", ["no inbox", "no commit", "missing", "a file", "twice"])
def test_what_cannot_be_read_is_said(tmp_path, kind):
    inbox(tmp_path / "code.git", ("main.c", b"int main;"))
    inbox(tmp_path / "a/dev.git", mail())
    inbox(tmp_path / "b/dev.git", mail())
    inbox(tmp_path / "new.git")
    (tmp_path / "file").write_text("x")
    places = {
        "no inbox": "code.git",
        "no commit": "new.git",
        "missing": "nowhere",
        "a file": "file",
        "twice": ["a", "b"],
    }
    location = places[kind]
    if isinstance(location, list):
        location = [str(tmp_path / name) for name in location]
    else:
        location = str(tmp_path / location)
    with pytest.raises(
        ValueError, match=r"^(public_inbox|git): .*(code|new|nowhere|file|dev)"
    ) as error:
        open_source("public_inbox", location)
    assert "\n" not in str(error.value)


def test_a_damaged_history_is_said(tmp_path):
    folder = inbox(tmp_path / "dev.git", mail(), mail(number=2))
    parts = open_source("public_inbox", str(folder))
    path = path_of(folder, "HEAD~1")
    path.chmod(0o600)
    path.write_bytes(b"x" * 99)
    with pytest.raises(ValueError, match=r"^git: .*dev.git is damaged"):
        list(parts[0].read(Counter()))


def test_nothing_of_a_repository_is_executed(tmp_path):
    folder = inbox(tmp_path / "dev.git", mail())
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    program.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.askPass"):
        subprocess.run(["git", "-C", folder, "config", setting, str(program)], check=True)
    for setting, value in {"log.showRoot": "false", "diff.renames": "copies"}.items():
        subprocess.run(["git", "-C", folder, "config", setting, value], check=True)
    assert len(read(folder)[0]) == 1
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"{PROSE}\n{PATCH}", f"{PROSE}\n-- \n2.30\n"),
        (f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n{PROSE}", PROSE),
        (f" src/a.c | 10 ++--\n 1 file changed, 2 insertions(+)\n{PROSE}", PROSE),
        (f"{PROSE}\n--- a line of dashes\n- a point", f"{PROSE}\n--- a line of dashes\n- a point"),
        (f"> {PATCH}", f"> {PATCH}".replace(PATCH[PATCH.index("---") :], "-- \n2.30\n")),
    ],
)
def test_patches_are_left_out_and_replies_stay(body, text):
    assert without_patches(body).split() == text.replace("> diff", "> diff").split()


@pytest.mark.parametrize(
    "line",
    [
        "Signed-off-by: Jane Doe <jane@example.org>",
        "Cc: stable@example.org",
        "[   12.345678] BUG: unable to handle page fault",
        "Jul  2 10:15:00 host kernel: oops",
        " #0  0x00007f3 in main ()",
        "[INFO] [UHD] linux; GNU C++ version 9.4.0",
        " 2 files changed, 12 insertions(+)",
        "jane@host:~/src$ make all",
        "sudo apt install thing",
        "Jane Doe (3):",
        "systemctl restart thing",
        "f(0x0)   // succeeds where the size is known",
        "[1/2] cache: wait for it",
    ],
)
def test_records_are_no_prose(line):
    lines = without_patches(f"{PROSE}\n\n{line}\n\n{PROSE}").split("\n")
    assert "\n".join(prose_lines(lines)).split() == f"{PROSE} {PROSE}".split()


def test_the_text_ends_where_output_begins():
    output = "Creating the device with: ...\nUsing Device: Single\nRX Channel: 0\nRX DSP: 0\nDone!"
    lines = f"Hi Bob,\n{PROSE}\n\nBest regards,\nJane\n\n{output}\n\n{PROSE}".split("\n")
    assert "\n".join(prose_lines(lines)).split() == f"Hi Bob, {PROSE} Best regards, Jane".split()


@pytest.mark.parametrize(
    "text",
    [
        "Applied, thanks!",
        "I have a small doubt about this change.\nWith the change,\nthere are no warnings.",
        "Could you\nplease explain why\nthis is needed?",
        "- it runs fine with 2 hosts\n- the third one fails",
        "No. See above: the lock is held, and nobody else waits.",
    ],
)
def test_prose_stays(text):
    assert "\n".join(prose_lines(text.split("\n"))).strip() == text
