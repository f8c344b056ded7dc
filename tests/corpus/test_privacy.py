"""No name or address of an author gets into the outputs, whatever the source; see SOURCES."""

import gzip
import io
import itertools
import json
import pkgutil
import stat
import subprocess
import unicodedata
import urllib.parse
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from backports import zstd

from helpers.core import paths
from helpers.corpus.collection import CollectConfig, collect, parts_folder
from helpers.corpus.posts_table import Selection, select_posts
from helpers.sources import INVENTED, SOURCES
from helpers.splits.assignment import make_split
from helpers.splits.by_author import AuthorSplit
from helpers.tokens.store import build_store, list_topics
from helpers.tokens.tokenizer import prepare_text
from tests.factories import write_lines

EXAMPLES = yaml.safe_load(Path(__file__).with_name("privacy.yaml").read_text("utf-8"))
# authors, and how people write of each other and of themselves
NAMES, LETTERS = EXAMPLES.pop("names"), EXAMPLES.pop("letters")
TIME = 1_577_836_800
POSTS = 10  # of each author
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi zo".split()
WORDS = ["".join(word) for word in itertools.product(SYLLABLES, repeat=3)]


def address_of(name):
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return ".".join(plain.lower().replace(".", "").split()) + "@vellum-works.org"


def letters():
    """Yield the number, the author's name, the name of somebody else and the text of each post."""
    for number in range(POSTS * len(NAMES)):
        name = NAMES[number % len(NAMES)]
        friend = NAMES[(number * 5 + 1) % len(NAMES)]
        if friend == name:
            friend = NAMES[(number + 1) % len(NAMES)]
        words = " ".join(WORDS[(number * 997 * k + k * k) % 6859] for k in range(1, 15))
        template = LETTERS[number // len(NAMES) % len(LETTERS)]
        text = template.format(
            words=f"number {number} of {words}",
            name=friend,
            first=friend.split()[0],
            shouted=friend.upper(),
            address=address_of(friend),
            at_address=address_of(friend).replace("@", " at "),
            own=name,
            own_first=name.split()[0],
            own_address=address_of(name),
            own_at_address=address_of(name).replace("@", " at "),
        )
        yield number, name, friend, text


def lines_of(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def table(folder):
    columns = ("author", "time", "topic", "text")
    rows = [(name, TIME + number, "xy"[number % 2], text) for number, name, _, text in letters()]
    write_lines(folder / "posts.jsonl", [dict(zip(columns, row)) for row in rows])


def zulip(folder):
    messages = []
    for number, name, friend, text in letters():
        html = text.replace("<", "&lt;").replace(friend, "").replace("\n", "<br>\n")
        mention = f'<span class="user-mention" data-user-id="1">@{friend}</span>'
        content = f"<p>{html} {mention} and @**{friend}**</p>"
        about = {"id": number, "timestamp": TIME + number, "sender_email": address_of(name)}
        messages.append(about | {"sender_full_name": name, "content": content})
    path = folder / "zulip_json" / "1-general" / "chat.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(messages), "utf-8")


def mail(number, name, friend, text):
    sender = f'"{name}" <{address_of(name)}>'
    quote = f"On Mon, 2 Jul 2007, {friend} <{address_of(friend)}> wrote:\n> the quoted words\n\n"
    return (
        f"From: {sender}\nDate: Mon, 2 Jul 2007 10:{number % 60:02d}:00 +0000\nSubject: Re: a\n"
        f"Message-ID: <{number}.{address_of(name)}>\n\n{quote}{text}\n\n"
    )


def pipermail(folder):
    path = folder / "list" / "2007-July.txt"
    path.parent.mkdir()
    mails = []
    for number, name, friend, text in letters():
        sender = address_of(name).replace("@", " at ")
        mails.append(f"From {sender}  Mon Jul  2 08:07:46 2007\n{mail(number, name, friend, text)}")
    path.write_text("".join(mails), "utf-8")


def pushshift(folder):
    records = []
    for number, name, friend, text in letters():
        page = f"u_{handle_of(friend)}" if number % 4 == 0 else "books"
        about = {"created_utc": TIME + number, "subreddit": page, "id": f"c{number}"}
        body = f"{text} and thanks u/{handle_of(friend)}, /u/{handle_of(name)} here"
        records.append(about | {"author": handle_of(name), "body": body})
    data = lines_of(records).encode()
    (folder / "RC_2020-01.zst").write_bytes(zstd.compress(data))


def handle_of(name):
    return address_of(name).partition("@")[0].replace(".", "_").title()


def mud(folder):
    records = {}
    for number, name, _, text in letters():
        empty = {"author_id": name, "syms": [], "day": [], "hour": [], "minute": []}
        record = records.setdefault(name, empty | {"action_type": []})
        record["syms"].append(["▁" + word for word in text.split()])
        record["day"].append(number % 7)
        for field in ("hour", "minute", "action_type"):
            record[field].append(number % 24)
    write_lines(folder / "mud.jsonl", records.values())


def pan(folder):
    pairs = []
    truths = []
    rows = list(letters())
    for (number, name, _, text), (_, name_b, _, text_b) in zip(rows[::2], rows[1::2], strict=True):
        pairs.append({"id": number, "fandoms": ["F", "G"], "pair": [text, text_b]})
        truths.append({"id": number, "same": name == name_b, "authors": [name, name_b]})
    write_lines(folder / "pairs.jsonl", pairs)
    write_lines(folder / "truth.jsonl", truths)


def amazon(folder):
    records = [
        {"reviewerID": name, "reviewerName": name, "reviewText": text, "unixReviewTime": TIME}
        for _, name, _, text in letters()
    ]
    write_lines(folder / "Books.json", records)


def git(folder):
    commits = []
    for number, name, friend, text in letters():
        who = f"{name} <{address_of(name)}> {TIME + number} +0000"
        message = f"a subject\n\n{text}\n\nSigned-off-by: {friend} <{address_of(friend)}>\n"
        commits += [f"commit refs/heads/main\nauthor {who}\ncommitter {who}"]
        commits += [f"data {len(message.encode())}\n{message}"]
        commits += [f"M 644 inline src/a.txt\ndata {len(str(number))}\n{number}"]
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    stream = "\n".join(commits).encode() + b"\n"
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=stream, check=True)


ARCHIVES = [table, zulip, pipermail, pushshift, mud, pan, amazon, git]
each_archive = pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.__name__)


def unpacked(name, data):
    """Yield the content of a file as bytes: as it is, and what is packed in it."""
    yield name.encode()
    yield data
    if data[:4] == b"PAR1":
        file = pq.ParquetFile(io.BytesIO(data))
        yield str(file.metadata.metadata).encode()
        rows = file.read().to_pylist()
        yield "\n".join(str(value) for row in rows for value in row.values()).encode()
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        yield from unpacked("", zstd.decompress(data))
    elif data[:2] == b"\x1f\x8b":
        yield from unpacked("", gzip.decompress(data))
    elif data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for member in packed.namelist():
                yield from unpacked(member, packed.read(member))


def forms_of(name):
    """A name as files may hold it: in cases, Unicode forms, and encodings."""
    forms = [name, urllib.parse.quote(name), urllib.parse.quote_plus(name), json.dumps(name)[1:-1]]
    forms += [unicodedata.normalize(form, name) for form in ("NFC", "NFD", "NFKD")]
    for form in set(forms):
        for text in (form.lower(), form.upper(), form):
            for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "cp1252"):
                yield text.encode(encoding, "ignore").lower()


def found_in(folder, names, but=()):
    """Return which names the files in a folder hold, and where; each file is unpacked."""
    wanted = {form: name for name in names for form in forms_of(name)}
    places = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(but):
            for content in unpacked(name, path.read_bytes()):
                content = content.lower()
                places += [(name, wanted[form]) for form in wanted if form in content]
    return sorted(set(places))


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    folder = tmp_path / "outputs"
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(folder))
    monkeypatch.delenv("AUTHORBOOK_PSEUDONYM_KEY", raising=False)
    return folder


def config_of(archive, folder):
    folder.mkdir()
    archive(folder)
    return CollectConfig(source=archive.__name__, location=str(folder))


def build(run):
    posts = run.folder / "posts.parquet"
    select_posts(posts, run.folder / "selected.parquet", Selection(min_posts=1, max_posts=0))
    make_split(posts, run.posts, AuthorSplit(test=0.3, dev=0.3))
    tokenizer = prepare_text(run.tokenizer, "sentencepiece", 300, posts, 500, 0)
    topics = list_topics(posts)
    build_store(posts, run.tokens / "all", tokenizer.encode, topics, tokenizer.fingerprint)


def secrets_of(archive):
    """The names and addresses of an archive that nothing but the table of names may hold."""
    addresses = [address_of(name) for name in NAMES]
    addresses += [address.replace("@", " at ") for address in addresses]
    handles = [handle_of(name) for name in NAMES]
    if archive is pushshift:  # whose authors have no other names
        return [*handles, *addresses]
    return [*NAMES, *addresses]


def not_in_outputs(outputs, secrets):
    places = found_in(outputs, secrets, but=(".names/", ".pseudonym_key"))
    assert places == []


def test_every_source_has_an_archive():
    assert {archive.__name__ for archive in ARCHIVES} | set(INVENTED) == set(SOURCES)


@each_archive
def test_no_name_or_address_is_in_the_outputs(archive, tmp_path, outputs):
    run = paths.Run("shared")
    config = config_of(archive, tmp_path / "in")
    secrets = secrets_of(archive)
    (outputs / ".names").mkdir(0o755, parents=True)
    card = collect(run, config)
    assert card["posts"] > 20
    assert stat.S_IMODE((outputs / ".names").stat().st_mode) == 0o700
    if archive is table:  # what is made of a posts table does not know the source
        build(run)
    not_in_outputs(outputs, secrets)
    found = {name for _, name in found_in(parts_folder(run), secrets)}
    assert len(found) >= len(NAMES), "the search finds what is there"
    for path in filter(Path.is_dir, (outputs / ".names").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert not list(parts_folder(run).glob("*.words")), "they are counted again in no time"


def test_no_name_is_in_the_folder_of_the_run_while_it_is_made(tmp_path, outputs, monkeypatch):
    """Whoever is killed leaves what is there at that moment."""
    searches = []

    def search_after(name):
        function = pkgutil.resolve_name(f"helpers.corpus.{name}")

        def searched(*args, **options):
            result = function(*args, **options)
            not_in_outputs(outputs, NAMES)
            searches.append(name)
            return result

        monkeypatch.setattr(f"helpers.corpus.{name}", searched)

    places = ["personal_names.names_to_mask", "merge.run_step"]
    for place in places:
        search_after(place)
    config = config_of(pipermail, tmp_path / "in")
    config = config.model_copy(update={"near_duplicate": 0, "strip_signatures": False})
    collect(paths.Run("shared"), config, workers=1)
    assert set(searches) == set(places)


def collected(folder, rows, **settings):
    names = ["author", "topic", "text"]
    records = [dict(zip(names, row)) | {"time": TIME} for row in rows]
    return collected_records(folder, records, **settings)


def collected_records(folder, records, **settings):
    path = write_lines(folder / "a.jsonl", records)
    config = CollectConfig(source="table", location=str(path), **settings)
    run = paths.Run("made")
    collect(run, config)
    return pq.read_table(run.folder / "posts.parquet").to_pandas()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_forms_of_names_are_masked(tmp_path, outputs, kind):
    names, masked = EXAMPLES[kind].values()
    rows = [(name, "tea", f"this is what I think, {number}") for number, name in enumerate(names)]
    rows += [("ann", "tea", text) for text in masked]
    held = set(collected(tmp_path, rows).text)
    assert {text for text in held if not text.startswith("this is")} == set(masked.values())


def test_who_was_repeated_keeps_the_post(tmp_path, outputs):
    repeated = "something longer that others repeat, with the name of who said it first before it"
    said = [
        ("jane_x", "this is what I think"),
        ("sunny", repeated),
        ("bridge", f"<sunny> {repeated}"),
    ]
    rows = [(author, "DM with jane_x", text) for author, text in said]
    posts = collected(tmp_path, rows)
    assert set(posts.topic) == {"DM with @user"}
    assert (posts.text == repeated).any() and len(posts) == len(rows) - 1
    assert set(collected(tmp_path, rows, pseudonymise=False).topic) == {"DM with jane_x"}


def test_names_beside_ids_are_masked(tmp_path, outputs):
    names = ["Zoë Öttinger", "sunny7", "Karl Brumm"]
    mention = [{"type": "mention_name", "text": "Jane Roe"}, ", what do you say of it?"]
    texts = ["so @Zoë Öttinger says", "I think sunny7 is right", "look, Karl Brumm said it"]
    records = [
        {"AuthorID": 900 + number % 3, "Author": names[number % 3], "Content": text}
        for number, text in enumerate([*texts, mention])
    ]
    columns = {"author": "AuthorID", "text": "Content", "topic": None, "time": None}
    posts = collected_records(tmp_path, records, columns=columns)
    assert sorted(posts.text) == [
        "@user , what do you say of it?",
        "I think @user is right",
        "look, @user said it",
        "so @user @user says",
    ]


def test_topics_hold_no_names_with_pseudonyms(tmp_path, outputs):
    topics = ["DM: Zoë Öttinger", "dm-jane_roe42", "#KarlHeinzBrumm", "mail to z.o@example.org"]
    topics += ["tea"]
    names = ["Zoë Öttinger", "Jane_Roe42", "KarlHeinzBrumm", "Ann", "Bob"]
    texts = [f"something that karlheinzbrumm says to {number}" for number in range(5)]
    posts = collected(tmp_path, zip(names, topics, texts))
    assert set(posts.topic) == {"DM: @user", "dm-@user", "#@user", "mail to @email", "tea"}
    assert posts.text.str.startswith("something that @user says").all()


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("Cunigunde Wombacher <cw@example.org>", "Cunigunde Wombacher"),
        ('"Wombacher, Cunigunde" <cw@example.org>', "Wombacher"),
        ("@GundulaTschirnhaus", "GundulaTschirnhaus"),
        ("Isolde Rumpelmayr (she/her)", "Isolde Rumpelmayr"),
        ("Rumpelmayr#1234", "Rumpelmayr#1234"),
    ],
)
def test_names_within_other_words_of_an_author_are_masked(tmp_path, outputs, author, name):
    texts = [f"I think {name} explained this well, number {number}" for number in range(4)]
    rows = [("ann", f"DM with {name}", text) for text in texts]
    posts = collected(tmp_path, [*rows, (author, "tea", "so I said this much")])
    held = [*posts.text, *posts.topic]
    assert not any(word in text for text in held for word in name.split())


def test_parts_that_are_gone_leave_no_names(tmp_path, outputs):
    run = paths.Run("shared")
    config = config_of(table, tmp_path / "in")
    more = tmp_path / "in" / "z.jsonl"
    write_lines(more, [{"author": "Zoe Gone", "time": TIME, "topic": "x", "text": "a" * 20}])
    collect(run, config)
    assert found_in(parts_folder(run), ["Zoe Gone"])
    more.unlink()
    collect(run, config)
    assert not found_in(outputs, ["Zoe Gone"])
