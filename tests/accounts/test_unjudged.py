"""Nobody is judged whom the encoder cannot read; who is set aside is named with the reason."""

import base64
import contextlib
import io
import json
import random
import re
import string
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from helpers.accounts import decisions, reading, unjudged
from helpers.accounts import gallery as gallery_module
from helpers.accounts.__main__ import main
from helpers.accounts.answers import LINKED, PAIR_COLUMNS
from helpers.accounts.commands import CARE
from helpers.accounts.decisions import pseudonym_of
from helpers.accounts.gallery import UNJUDGED, AccountGallery
from helpers.accounts.samples import halves, samples_of, texts_of
from helpers.accounts.scoring import OWN_POSTS
from helpers.core import paths
from tests.accounts.shared import visible
from tests.factories import write_demo_csv

WRITERS = yaml.safe_load(Path(__file__).with_name("writers.yaml").read_text("utf-8"))
ALPHABETS, WORDS = WRITERS.values()


def person(kind, name, posts=20):
    """Return the posts of a person: another name has other words, lengths and marks."""
    draw = random.Random(f"{kind} {name}")
    if kind in ("base64", "letters"):
        return [noise(kind, draw) for _ in range(posts)]
    pool = WORDS[kind].split() if kind in WORDS else alphabet_words(kind)
    own_words = draw.sample(pool, 16)
    length = {"first": 8, "second": 17}[name]
    mark = {"first": ".", "second": "!"}[name]
    texts = []
    for _ in range(posts):
        texts.append(" ".join(draw.choices(own_words, k=length + draw.randint(-3, 5))) + mark)
    return texts


def noise(kind, draw):
    if kind == "base64":
        return base64.b64encode(draw.randbytes(60)).decode()
    return "".join(draw.choices(string.ascii_lowercase, k=60))


def alphabet_words(kind):
    first, last = ALPHABETS[kind]
    draw = random.Random(kind)
    return [
        "".join(chr(draw.randint(ord(first), ord(last))) for _ in range(draw.randint(2, 7)))
        for _ in range(40)
    ]


KINDS = [*ALPHABETS, *WORDS, "base64", "letters"]


def test_of_accounts_that_cannot_be_judged_nobody_is_told_a_probability(encoder, gallery):
    odd = [person("Greek", "first"), person("Greek", "second")]
    odd_times = [list(range(10**9, 10**9 + 20))] * 2
    queries = gallery.queries(odd, odd_times)
    ranking = gallery.rank(queries, ["a", "b"], 3)
    assert ranking.probability.isna().all() and not ranking.linked.any()
    assert (gallery.link(queries, ["a", "b"]).answer == UNJUDGED).all()
    store = gallery.targets.store
    numbers = [
        np.arange(first, first + count)
        for first, count in zip(gallery.targets.first, gallery.targets.count)
    ]
    texts = [texts_of(store, of_account, encoder.tokenizer) for of_account in numbers]
    times = [store.time[of_account].tolist() for of_account in numbers]
    names = [*gallery.names, "a", "b"]
    larger = AccountGallery.of(encoder, texts + odd, names, times + odd_times)
    everybody = larger.rank(larger.targets, list(larger.names), 60)
    others = everybody[~everybody["query"].isin(["a", "b"])]
    assert not others.target.isin(["a", "b"]).any() and others.probability.notna().all()
    before = gallery.estimate_prior(gallery.targets, list(gallery.names))
    after = larger.estimate_prior(larger.targets, list(larger.names))
    assert after == pytest.approx(before, abs=0.05)


def test_a_language_counts_where_calibration_has_seen_accounts_enough(encoder, mine, monkeypatch):
    monkeypatch.setattr(
        gallery_module, "languages_of", lambda samples, _: ["Polish"] * len(samples)
    )
    shipped = mine.gallery()
    assert set(shipped.problems) == {f"writes Polish, {unjudged.UNCHECKED}"}
    first, last = halves(mine.store, *OWN_POSTS)
    fit = (encoder.model(True, mine.hours).score_matrix(first, last, 128), first, last)
    languages = ["Polish"] * 30 + [unjudged.UNSURE] * (len(first) - 30)
    own = encoder.calibrated_by(*fit, np.arange(len(first)), mine.hours, languages)
    assert set(replace(mine, encoder=own).gallery().problems) == {""}
    languages = ["Polish"] * 29 + [unjudged.UNSURE] * (len(first) - 29)
    own = encoder.calibrated_by(*fit, np.arange(len(first)), mine.hours, languages)
    assert "" not in set(replace(mine, encoder=own).gallery().problems)


def test_letters_that_others_use_as_rarely_are_no_reason(encoder):
    """In a file in which everybody writes 10% of unknown letters, so may one more."""
    draw = random.Random(0)
    english = (
        "the of and to in is that it for was on are as with this be at have from or by not".split()
    )
    posts = []
    for share in [0.1] * 12 + [0.5]:
        texts = []
        for _ in range(20):
            words = [draw.choice(english) for _ in range(30)]
            texts.append(" ".join("ж" if draw.random() < share else word for word in words))
        posts.append(texts)
    gallery = AccountGallery.of(encoder, posts, [str(number) for number in range(13)])
    is_unreadable = np.array([unjudged.UNREADABLE in problem for problem in gallery.problems])
    assert not is_unreadable[:12].any() and is_unreadable[12]


def test_capitals_stand_for_a_language():
    text = "WHOEVER WRITES LIKE THIS LOOKS LIKE ANYBODY ELSE WHO DOES. " * 5
    assert unjudged.language_of(text) == unjudged.CAPITALS
    assert unjudged.language_of(text.lower()) == unjudged.ENGLISH
    assert unjudged.language_of("ok") == unjudged.UNSURE


SPANISH = (
    "No creo que eso sea verdad, pero vamos a verlo mañana en la reunión de la tarde.",
    "La semana que viene tendremos que hablar otra vez de los cambios que han pedido.",
)
ENGLISH = (
    "I do not think that is true, but let us look at it tomorrow in the meeting we have.",
    "Next week we shall have to talk about the changes again that they have asked for.",
)


@pytest.mark.parametrize(("spanish", "language"), [(0, "English"), (3, "English and Spanish")])
def test_a_second_language_is_named(encoder, spanish, language):
    posts = [ENGLISH[number % 2] for number in range(10 - spanish)]
    posts += [SPANISH[number % 2] for number in range(spanish)]
    samples = samples_of([posts, posts[::-1]], encoder.tokenizer)
    assert unjudged.languages_of(samples, encoder.tokenizer) == [language] * 2
    problems = unjudged.reading_problems(
        AccountGallery(encoder, samples, ["a", "b"]), samples, [language] * 2
    )
    assert (problems[0] == "") == (spanish == 0)


@pytest.mark.parametrize("form", ["<{}> {}", "[{}] {}", "**{}**: {}", "{}: {}"])
def test_bridges_are_told(encoder, form):
    people = ["pixel", "moth", "dora", "quark"]
    relayed = [form.format(people[number % 4], ENGLISH[number % 2]) for number in range(12)]
    of_one = [form.format("pixel", text) for text in ENGLISH * 6]
    answers = [*relayed[:7], *ENGLISH, *ENGLISH, *ENGLISH]  # to some people in some posts
    store = samples_of([relayed, of_one, answers], encoder.tokenizer).store
    assert unjudged.are_bridges(store, encoder.tokenizer).tolist() == [True, False, False]


def test_who_holds_few_of_the_usual_words_is_not_judged(encoder):
    posts = pd.read_parquet(paths.PARAMS / "commits" / "messages.parquet")
    names = posts.author.value_counts().index[:32]
    lists = [posts.text[posts.author == name].tolist()[:24] for name in names]
    lists[0] = [
        " ".join(word for word in text.split() if word.lower() not in ENGLISH_STOP_WORDS)
        for text in lists[0]
    ]
    gallery = AccountGallery.of(encoder, lists, list(names))
    problems = unjudged.reading_problems(gallery, gallery.targets, ["English"] * 32)
    assert problems[0] == unjudged.STRANGE_WORDS
    assert unjudged.STRANGE_WORDS not in set(problems[1:])


UNREAD = "кто"  # writes in letters that the encoder does not know
REASONS = {
    "helpful[bot]": unjudged.BOTS,
    "=SUM(A1)": unjudged.UNUSABLE,
    "timeless": unjudged.UNUSABLE,
    "copycat": unjudged.COPIES,
    "one text": unjudged.FEW,
    "rare": unjudged.FEW,
    "<b>build": unjudged.ONE_FORM,
}
OF_KINDS = [f"{kind}, {name}" for kind, name in product(KINDS, ("first", "second"))]


@pytest.fixture(scope="module")
def odd_accounts(tmp_path_factory):
    """A file of 41 invented accounts, those of OF_KINDS and REASONS, and two that are nobody's."""
    path = tmp_path_factory.mktemp("odd") / "posts.csv"
    write_demo_csv(path, evader="demo-0003", accounts=40, posts=1600)
    frame = pd.read_csv(path)
    own = frame[frame.nick == "demo-0005"]
    later = frame.written.max()
    build = [f"Build #{number} passed for main in {7 * number} seconds" for number in range(24)]
    unread = [f"привет, как дела сегодня? {number}" for number in range(len(own))]
    parts = [
        own.assign(nick="helpful[bot]"),
        own.assign(nick="=SUM(A1)", message="ok lol"),
        own.assign(nick="timeless", written="some day"),
        own.assign(nick="copycat", written=later),
        own.assign(nick="one text", message="Buy these watches now, they are the best of all"),
        own.head(2).assign(nick="rare", message=["this was said once", "and that was as well"]),
        own.head(24).assign(nick="<b>build", message=build),
        own.head(12).assign(nick="[deleted]"),
        own.assign(nick=UNREAD, message=unread),
    ]
    for name in OF_KINDS:
        written = sorted(random.Random(name).sample(list(frame.written), 20))
        about = {"nick": name, "written": written, "room": "x"}
        parts.append(pd.DataFrame(about | {"message": person(*name.split(", "))}))
    pd.concat([frame, *parts]).to_csv(path, index=False)
    return path


def test_mine_judges_nobody_whom_it_cannot_read_and_says_who_is_set_aside(odd_accounts, capsys):
    assert main(["mine", str(odd_accounts), "--names"]) == 0
    printed = capsys.readouterr().out
    folder = paths.Run("mine").folder
    table = pd.read_csv(folder / "accounts.csv", index_col="account")
    assert table.index.is_unique and len(table) == 41 + len(OF_KINDS) + len(REASONS) + 1
    table = table.rename(index={"'=SUM(A1)": "=SUM(A1)"})
    assert set(table.index[table.state == unjudged.SET_ASIDE]) - set(OF_KINDS) == set(REASONS)
    assert table.posts[["copycat", "one text", "rare", "<b>build"]].tolist() == [0, 1, 2, 24]
    assert table.problem[[*OF_KINDS, UNREAD]].notna().all()
    assert table.problem.drop([*OF_KINDS, UNREAD, *REASONS]).isna().all()

    pairs = pd.read_csv(folder / "pairs.csv")
    of_kinds = pairs[pairs.account_a.isin(OF_KINDS) | pairs.account_b.isin(OF_KINDS)]
    assert len(of_kinds) >= len(OF_KINDS) and (of_kinds.state == UNJUDGED).all()
    assert of_kinds.probability.isna().all() and of_kinds.reason.notna().all()
    # the one pair that is one person's is still found, and nobody else
    assert set(pairs[pairs.state == LINKED].account_a) <= {"demo-0003", "newcomer"}

    page = (folder / "report.html").read_text("utf-8")
    assert str(odd_accounts.parent) not in page, "no folder of the reader's"
    record = json.loads((folder / "answers.json").read_text("utf-8"))["set_aside"]
    assert len(record) == len(set(REASONS.values()))
    for group in record:
        assert group["sentence"] in printed and group["sentence"] in visible(page)
    for name, reason in REASONS.items():
        detail = " (24 of 24 posts)" if reason == unjudged.ONE_FORM else ""
        text = unjudged.REASONS[reason].removeprefix("with ")
        assert table.problem[name] == text + detail
        assert name in visible(page) and name in printed
    assert "<b>build" not in page and "[deleted]" not in table.index

    assert main(["mine", str(odd_accounts), "--accounts", "<b>build"]) == 1
    assert "the first is <b>build, with posts that are mostly alike" in capsys.readouterr().err


def test_another_spelling_of_an_account_is_not_set_aside(odd_accounts, tmp_path, encoder):
    frame = pd.read_csv(odd_accounts)
    is_first = (frame.nick == "demo-0005") & ~frame.duplicated("nick")
    frame["nick"] = frame.nick.mask(is_first, "DEMO-0005 ")
    frame[~frame.nick.isin(OF_KINDS)].to_csv(tmp_path / "spelled.csv", index=False)
    location = str(tmp_path / "spelled.csv")
    posts = reading.read_posts(paths.Run("spelled"), location, encoder)
    found = dict(zip(posts.set_aside.account, posts.set_aside.reason, strict=True))
    assert found == {decisions.pseudonym_of(name): REASONS[name] for name in REASONS}
    assert posts.card["accounts_with_few_posts"] == 2


class Matched:
    """What `match` said of two lists, each account of one name being in both but for OF_KINDS."""

    def __init__(self, odd_accounts, folder):
        frame = pd.read_csv(odd_accounts)
        is_odd = frame.groupby("nick").cumcount() % 2 == 1
        in_b = np.where(frame.nick.isin(OF_KINDS), frame.nick.str.endswith("second"), is_odd)
        lonely = frame[frame.nick == UNREAD].tail(1).assign(nick="lonely")
        frame[in_b == 0].to_csv(folder / "a.csv", index=False)
        pd.concat([frame[in_b == 1], lonely]).to_csv(folder / "b.csv", index=False)
        decisions = ["demo-0001,demo-0004,same", "demo-0005,demo-0005,different", "x,y,later"]
        path = folder / "decisions.csv"
        path.write_text("\n".join(["account_b,account_a,decision", *decisions]))
        more = ["--decisions", str(path), "--overlap", "0.9", "--accounts", "demo-0007"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert main(["match", str(folder / "a.csv"), str(folder / "b.csv"), *more]) == 0
        self.printed = printed.getvalue()
        self.outputs = paths.outputs()
        self.html = (self.outputs / "match" / "report.html").read_text("utf-8")
        self.pairs = pd.read_csv(self.outputs / "match" / "pairs.csv")
        self.accounts = pd.read_csv(self.outputs / "match" / "accounts.csv")


@pytest.fixture(scope="module")
def matched(odd_accounts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("matched")
    with pytest.MonkeyPatch.context() as patch:
        # lists are drawn for the fit in the order of pseudonyms: what is found depends on the key
        patch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "0" * 64)
        patch.setenv("AUTHORBOOK_OUTPUTS", str(folder / "outputs"))
        yield Matched(odd_accounts, folder)


def test_match_links_nobody_whom_it_cannot_read_and_says_who_is_set_aside(matched):
    odd = [pseudonym_of(name) for name in (UNREAD, *OF_KINDS)]
    assert not {*odd} & {*matched.pairs.account_a, *matched.pairs.account_b}
    of_odd = matched.accounts[matched.accounts.account.isin(odd)]
    assert set(of_odd[of_odd.state == UNJUDGED].list) == {"A", "B"}
    assert set(of_odd.state) <= {UNJUDGED, unjudged.SET_ASIDE} and of_odd.nobody.isna().all()
    assert (of_odd.state[of_odd.account == odd[0]] == UNJUDGED).tolist() == [True, True]
    for name in map(pseudonym_of, REASONS):
        assert name in visible(matched.html) and name in matched.printed
    sentences = [line for line in matched.printed.splitlines() if "set aside" in line]
    lonely = [line for line in sentences if pseudonym_of("lonely") in line]
    assert len(lonely) == 1 and " of list B " in lonely[0]


def test_match_heeds_decisions_and_names_nobody_unasked(matched):
    printed, pairs = matched.printed, matched.pairs
    rows = [line for line in printed.splitlines() if re.fullmatch(r"u\w{16} +u\w{16} .*", line)]
    assert rows and all(pseudonym_of("demo-0007") in row for row in rows)
    assert "We assume that 90% of the accounts of the shorter list" in printed
    assert CARE in printed and "not used: y, x." in printed
    assert "<title>Two lists: a.csv and b.csv" in matched.html
    assert "demo-" not in printed + matched.html
    first = f'<summary><b>1</b> <span class="name">{pairs.account_a[0]}</span>'
    assert first in matched.html and list(pairs.columns) == PAIR_COLUMNS
    linked = pairs[pairs.state == LINKED]
    # a link needs 10/11, so one may be wrong
    assert len(linked) > 5 and (linked.account_a != linked.account_b).sum() <= 1
    assert pseudonym_of("demo-0004") not in set(pairs.account_a)
    assert pseudonym_of("demo-0001") not in set(pairs.account_b)
    apart = pseudonym_of("demo-0005")
    assert not ((pairs.account_a == apart) & (pairs.account_b == apart)).any()


def test_what_match_writes_is_for_its_owner_alone(matched):
    folders = [matched.outputs, *filter(Path.is_dir, matched.outputs.rglob("*"))]
    assert len(folders) > 1 and not [path for path in folders if path.stat().st_mode & 0o077]
    tables = {path.name for path in matched.outputs.rglob("*.csv")}
    assert tables == {"pairs.csv", "accounts.csv", "same_texts.csv"}
    assert not list((matched.outputs / ".names").rglob("*.parquet"))
