"""Nobody is judged whom the encoder cannot read; who is set aside is named with the reason."""

import base64
import json
import random
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
from helpers.accounts.answers import LINKED
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


@pytest.fixture(scope="module")
def posts_of_kinds(tmp_path_factory):
    """Posts of 40 invented people who write English, and of two people of each of KINDS."""
    path = tmp_path_factory.mktemp("kinds") / "posts.csv"
    write_demo_csv(path, evader="demo-0003", accounts=40, posts=1600)
    frame = pd.read_csv(path)
    parts = [frame]
    for kind, name in product(KINDS, ("first", "second")):
        written = sorted(random.Random(f"{kind}{name}").sample(list(frame.written), 20))
        about = {"nick": f"{kind}, {name}", "written": written, "room": "x"}
        parts.append(pd.DataFrame(about | {"message": person(kind, name)}))
    return pd.concat(parts, ignore_index=True)


def test_mine_judges_nobody_whom_the_encoder_cannot_read(posts_of_kinds, tmp_path):
    posts_of_kinds.to_csv(tmp_path / "posts.csv", index=False)
    assert main(["mine", str(tmp_path / "posts.csv"), "--names"]) == 0
    pairs = pd.read_csv(tmp_path / "outputs" / "mine" / "pairs.csv")
    accounts = pd.read_csv(tmp_path / "outputs" / "mine" / "accounts.csv").set_index("account")
    of_kinds = pairs[pairs.account_a.str.contains(", ") | pairs.account_b.str.contains(", ")]
    assert len(of_kinds) >= 2 * len(KINDS) and (of_kinds.state == UNJUDGED).all()
    assert of_kinds.probability.isna().all() and of_kinds.reason.notna().all()
    names = [f"{kind}, {name}" for kind in KINDS for name in ("first", "second")]
    assert accounts.problem[names].notna().all()
    assert accounts.problem.drop(names).isna().all()
    # the one pair that is one person's is still found, and nobody else
    assert set(pairs[pairs.state == "linked"].account_a) <= {"demo-0003", "newcomer"}


def test_match_links_nobody_whom_the_encoder_cannot_read(posts_of_kinds, tmp_path):
    is_second = posts_of_kinds.nick.str.endswith("second")
    is_odd = posts_of_kinds.groupby("nick").cumcount() % 2 == 1
    in_b = np.where(posts_of_kinds.nick.str.contains(", "), is_second, is_odd)
    posts_of_kinds[in_b == 0].to_csv(tmp_path / "a.csv", index=False)
    posts_of_kinds[in_b == 1].to_csv(tmp_path / "b.csv", index=False)
    assert main(["match", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--names"]) == 0
    pairs = pd.read_csv(tmp_path / "outputs" / "match" / "pairs.csv")
    assert not pairs.account_a.str.contains(", ").any()
    assert not pairs.account_b.str.contains(", ").any()
    linked = pairs[pairs.state == LINKED]
    assert len(linked) and (linked.account_a == linked.account_b).all()
    accounts = pd.read_csv(tmp_path / "outputs" / "match" / "accounts.csv")
    odd = accounts[accounts.account.str.contains(", ")]
    assert set(odd[odd.state == UNJUDGED].list) == {"A", "B"}
    assert set(odd.state) <= {UNJUDGED, "set aside"} and odd.nobody.isna().all()


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


COMPARED = 34  # accounts that can be compared
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


@pytest.fixture(scope="module")
def odd_accounts(tmp_path_factory):
    """A file of COMPARED invented accounts, those of REASONS, and one that is nobody."""
    path = tmp_path_factory.mktemp("odd") / "posts.csv"
    write_demo_csv(path, evader="", accounts=COMPARED, posts=1400)
    frame = pd.read_csv(path)
    own = frame[frame.nick == "demo-0003"]
    later = frame.written.max()
    build = [f"Build #{number} passed for main in {7 * number} seconds" for number in range(12)]
    unread = [f"привет, как дела сегодня? {number}" for number in range(len(own))]
    parts = [
        own.assign(nick="helpful[bot]"),
        own.assign(nick="=SUM(A1)", message="ok lol"),
        own.assign(nick="timeless", written="some day"),
        own.assign(nick="copycat", written=later),
        own.assign(nick="one text", message="Buy these watches now, they are the best of all"),
        own.head(2).assign(nick="rare", message=["this was said once", "and that was as well"]),
        own.head(12).assign(nick="<b>build", message=build),
        own.head(12).assign(nick="[deleted]"),
        own.assign(nick=UNREAD, message=unread),
    ]
    pd.concat([frame, *parts]).to_csv(path, index=False)
    return path


def test_mine_has_a_row_for_every_account_and_says_who_is_set_aside(odd_accounts, capsys):
    assert main(["mine", str(odd_accounts), "--names"]) == 0
    printed = capsys.readouterr().out
    folder = paths.Run("mine").folder
    table = pd.read_csv(folder / "accounts.csv", index_col="account")
    assert table.index.is_unique and len(table) == COMPARED + len(REASONS) + 1
    table = table.rename(index={"'=SUM(A1)": "=SUM(A1)"})
    assert set(table.index[table.state == unjudged.SET_ASIDE]) == set(REASONS)
    assert (table.state.drop(list(REASONS)) != unjudged.SET_ASIDE).all()
    assert table.posts[["copycat", "one text", "rare", "<b>build"]].tolist() == [0, 1, 2, 12]

    page = (folder / "report.html").read_text("utf-8")
    assert str(odd_accounts.parent) not in page, "no folder of the reader's"
    record = json.loads((folder / "answers.json").read_text("utf-8"))["set_aside"]
    assert len(record) == len(set(REASONS.values()))
    for group in record:
        assert group["sentence"] in printed and group["sentence"] in visible(page)
    for name, reason in REASONS.items():
        detail = " (12 of 12 posts)" if reason == unjudged.ONE_FORM else ""
        text = unjudged.REASONS[reason].removeprefix("with ")
        assert table.problem[name] == text + detail
        assert f"{name} " in visible(page) and name in printed
    assert "<b>build" not in page and "[deleted]" not in table.index

    assert main(["mine", str(odd_accounts), "--accounts", "<b>build"]) == 1
    assert "the first is <b>build, with posts that are mostly alike" in capsys.readouterr().err


def test_another_spelling_of_an_account_is_not_set_aside(odd_accounts, tmp_path, encoder):
    frame = pd.read_csv(odd_accounts)
    is_first = (frame.nick == "demo-0005") & ~frame.duplicated("nick")
    frame["nick"] = frame.nick.mask(is_first, "DEMO-0005 ")
    frame.to_csv(tmp_path / "spelled.csv", index=False)
    location = str(tmp_path / "spelled.csv")
    posts = reading.read_posts(paths.Run("spelled"), location, encoder)
    found = dict(zip(posts.set_aside.account, posts.set_aside.reason, strict=True))
    assert found == {decisions.pseudonym_of(name): REASONS[name] for name in REASONS}
    assert posts.card["accounts_with_few_posts"] == 2


def test_match_names_who_is_set_aside_of_each_list(odd_accounts, tmp_path, capsys):
    frame = pd.read_csv(odd_accounts)
    is_odd = frame.groupby("nick").cumcount() % 2
    lonely = frame.tail(1).assign(nick="lonely")
    frame[is_odd == 0].to_csv(tmp_path / "a.csv", index=False)
    pd.concat([frame[is_odd == 1], lonely]).to_csv(tmp_path / "b.csv", index=False)
    assert main(["match", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--names"]) == 0
    printed = capsys.readouterr().out
    folder = paths.Run("match").folder
    pairs = pd.read_csv(folder / "pairs.csv")
    linked = pairs[pairs.state == LINKED]
    assert len(linked) and (linked.account_a == linked.account_b).all()
    assert UNREAD not in {*pairs.account_a, *pairs.account_b}, "there is one in both lists"
    accounts = pd.read_csv(folder / "accounts.csv").set_index("account")
    assert set(accounts.state[UNREAD]) == {UNJUDGED} and accounts.nobody[UNREAD].isna().all()
    page = visible((folder / "report.html").read_text("utf-8"))
    for name in REASONS:
        assert name in page and name in printed
    sentences = [line for line in printed.splitlines() if "set aside" in line]
    lonely = [line for line in sentences if "lonely" in line]
    assert len(lonely) == 1 and " of list B " in lonely[0]
