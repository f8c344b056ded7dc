"""Every account of a file is compared or named as set aside, with the reason."""

import json

import pandas as pd
import pytest

from helpers.accounts import decisions, reading, unjudged
from helpers.accounts.__main__ import main
from helpers.accounts.answers import LINKED
from helpers.accounts.gallery import UNJUDGED
from helpers.core import paths
from tests.accounts.shared import visible
from tests.factories import write_demo_csv

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
