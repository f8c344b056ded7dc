"""Own files: columns of any name, ten shapes of data, and clear words for what is wrong."""

import numpy as np
import pandas as pd
import pytest

from helpers.accounts import decisions, habits, reading, validation
from helpers.accounts.gallery import HABIT_MARGIN, NOBODY, AccountGallery
from helpers.accounts.page import read_record, sentences
from helpers.accounts.samples import spread_posts
from helpers.core.paths import Run
from helpers.corpus.collection import parts_folder
from tests.factories import write_lines, write_table


def written(path, authors=6, posts=12):
    rng = np.random.default_rng(0)
    words = "the a tea coffee maybe never always ok well then so but green red two want".split()
    rows = []
    for author, post in np.ndindex(authors, posts):
        date = f"2024-01-{1 + post:02d}T0{author % 9}:00:00Z"
        rows.append((f"person {author}", date, "all", " ".join(rng.choice(words, 12))))
    frame = pd.DataFrame(rows, columns=["user", "date", "room", "message"])
    write_table(path, frame)
    return frame


def guessed(path, **given):
    return reading.column_types(str(path), given)


def test_columns_are_guessed_or_given(tmp_path):
    frame = written(tmp_path / "a.csv")
    types = {"author": "user", "text": "message", "time": "date", "topic": "room"}
    assert guessed(tmp_path / "a.csv") == types
    assert guessed(tmp_path / "a.csv", time="none")["time"] is None
    write_table(tmp_path / "b.csv", frame.rename(columns={"user": "wer", "date": "none"}))
    with pytest.raises(ValueError, match="which column is the author.*'wer', 'none'.*say --author"):
        guessed(tmp_path / "b.csv")
    assert guessed(tmp_path / "b.csv", author="wer")["time"] is None
    assert guessed(tmp_path / "b.csv", author="wer", time="none")["time"] == "none"
    with pytest.raises(ValueError, match="no column 'x'"):
        guessed(tmp_path / "b.csv", author="x")
    with pytest.raises(ValueError, match="CSV .* add a first line with the names of the columns"):
        guessed(tmp_path / "b.csv")
    write_lines(tmp_path / "pairs.jsonl", [{"id": "1", "pair": ["a text", "another"]}])
    with pytest.raises(ValueError, match="'id', 'pair'.*JSON lines needs a key for the author"):
        guessed(tmp_path / "pairs.jsonl")


def test_a_name_of_several_accounts_is_not_guessed_to_be_one(tmp_path):
    frame = written(tmp_path / "a.csv").assign(user_id=lambda posts: posts.user)
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert guessed(tmp_path / "a.csv")["author"] == "user"
    names = frame.user.unique()
    renamed = frame.user.mask(frame.index % 2 == 0, "Pat").where(frame.user == names[0])
    shared = frame.user.replace(names[1], names[2])  # two people, and one with two names
    frame.assign(user=renamed.fillna(shared)).to_csv(tmp_path / "a.csv", index=False)
    message = f"1 of the names in the column user .*'{names[2]}' has 2.*--author user_id"
    with pytest.raises(ValueError, match=message):
        guessed(tmp_path / "a.csv")
    assert guessed(tmp_path / "a.csv", author="user")["author"] == "user"


def test_accounts_have_pseudonyms(tmp_path, encoder, capsys):
    path = tmp_path / "posts.parquet"
    frame = written(tmp_path / "posts.csv")
    mine = reading.read_posts(Run("any"), str(write_table(path, frame)), encoder)
    assert mine.card["accounts"] == 6 and mine.store.meta["topics"] == ["all"]
    assert mine.hours is True and reading.NO_HOURS not in capsys.readouterr().out
    assert all(name.startswith("u") and len(name) == 17 for name in mine.names)
    assert set(mine.names) == {decisions.pseudonym_of(name) for name in frame.user}
    pseudonym = decisions.pseudonym_of("person 3")
    assert decisions.choose_queries(mine, ["person 3", pseudonym]) == [pseudonym]


def test_few_posts_are_counted_and_too_few_are_an_error(tmp_path, encoder):
    frame = written(tmp_path / "a.csv")
    frame.iloc[:3].assign(user="rare").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match="the file has one account: with nobody else"):
        reading.read_posts(Run("few"), str(tmp_path / "b.csv"), encoder)
    said = ["only this was said here", "and then this as well"]
    rare = frame.iloc[:2].assign(user="rare", message=said)
    pd.concat([frame, rare]).to_csv(tmp_path / "c.csv", index=False)
    mine = reading.read_posts(Run("some"), str(tmp_path / "c.csv"), encoder)
    assert mine.card["accounts_with_few_posts"] == 1 and len(mine.names) == 6


def test_each_account_is_judged_by_a_fit_without_it(mine, encoder, monkeypatch):
    for module in ("validation", "encoder", "gallery"):
        monkeypatch.setattr(f"helpers.accounts.{module}.ENOUGH", 5)
    fits = []
    original = type(encoder).calibrated_by

    def watched(self, scores, first, last, rows, *about):
        fits.append(set(rows))
        return original(self, scores, first, last, rows, *about)

    monkeypatch.setattr(type(encoder), "calibrated_by", watched)
    choice = validation.choose_calibration(mine)
    table = choice.metrics
    count = len(choice.older)
    everybody = set(range(count))
    assert fits[0] | fits[1] == everybody == fits[2] and not fits[0] & fits[1]
    assert set(table) == set(choice.ratios) == {"shipped", "own"}
    assert len(choice.gallery) == count == table.loc["accounts", "own"] == choice.fitted
    assert (table.loc["Cllr"] >= table.loc["minCllr"]).all()
    # the rows of the accounts that the second fit saw are those of the first fit
    gallery = choice.gallery
    scores = gallery.scores(choice.older)
    fitted = np.array(sorted(fits[0]))
    own = encoder.calibrated_by(scores[0], choice.older, gallery.targets, fitted, mine.hours)
    judged = np.array(sorted(fits[1]))
    use = own.uses[encoder.use(True, mine.hours)]
    posts = (choice.older.count[judged][:, None], gallery.targets.count)
    lowest, highest = use.bounds(count)
    missing = habits.FEW_POSTS / np.minimum(*posts)  # what few posts support is less
    highest = highest - np.log(np.maximum(missing, 1))
    written, plain = (use.log_ratio(of_version[judged], *posts, count) for of_version in scores)
    ratios = np.minimum(written, plain + HABIT_MARGIN).clip(max=highest)
    added = habits.likeness_term(gallery, choice.older)[judged]
    expected = (ratios + added).clip(lowest, highest)
    assert 0 < (added < -1).mean() < 1 and (missing > 1).any()
    np.testing.assert_allclose(choice.ratios["own"][judged], expected, rtol=1e-5)


def test_who_cannot_be_read_takes_no_part_in_the_calibration(mine, choice, monkeypatch):
    before = choice
    problems = np.full(len(before.older), "", object)
    problems[:3] = "40% of the text is letters or signs that the encoder does not know"
    problems[3] = "writes Spanish, for which no probability was checked"
    monkeypatch.setattr(AccountGallery, "problems", problems)
    after = validation.choose_calibration(mine)
    assert len(after.older) == len(before.older) - 3
    assert after.older.authors.tolist() == before.older.authors[3:].tolist()


def test_who_is_asked(mine, monkeypatch):
    assert decisions.choose_queries(mine, ["newcomer"]) == ["newcomer"]
    assert len(decisions.choose_queries(mine, [])) == len(mine.names)
    assert NOBODY not in decisions.choose_queries(mine, [])
    monkeypatch.setattr(decisions, "QUERIES", 5)
    assert len(decisions.choose_queries(mine, [])) == 5


@pytest.fixture
def many(monkeypatch):
    """As if forty accounts were too many to be compared in full."""
    sizes = {"FULL_GALLERY": 10, "NEAREST_OF_ALL": 12, "NEAREST_OF_QUERY": 12}
    for name, count in (sizes | {"COHORT_ACCOUNTS": 30}).items():
        monkeypatch.setattr(reading, name, count)


def test_of_many_accounts_those_that_matter_are_compared(mine, encoder, gallery, many, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_ACCOUNTS", 7)
    part = mine.gallery_for(["newcomer"])
    assert len(part) + part.beyond == 41 > len(part) >= 30 and part.drawn.sum() == 30
    vectors = encoder.vectors(spread_posts(mine.store), True)
    nearest = mine.names[np.argsort(-(vectors @ vectors[list(mine.names).index("newcomer")]))[:12]]
    assert {"newcomer", "demo-0003", *nearest} <= set(part.names)
    partial = part.rank(part.accounts(["newcomer"]), ["newcomer"], 5)
    whole = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"], 5)
    assert partial.target[0] == whole.target[0] == "demo-0003"
    # normalised by a draw of 30; by the twelve most alike it is below 0
    assert partial.score[0] > whole.score[0] / 2
    part_of_eight = mine.gallery_for(list(mine.names[:8]))
    assert set(mine.names[:8]) <= set(part_of_eight.names)


def test_chance_is_shared_with_accounts_that_were_not_compared(mine, encoder, many):
    part = mine.gallery_for(["newcomer"])
    ranking = part.rank(part.accounts(["newcomer"]), ["newcomer"], len(part))
    weighed = 0.05 / 40 * np.exp(ranking.llr[:-1].astype(float))
    np.testing.assert_allclose(
        ranking.probability[:-1].astype(float), weighed / (0.95 + weighed.sum()), rtol=1e-9
    )


def test_letters_that_cannot_be_read_are_said(tmp_path, encoder):
    frame = written(tmp_path / "a.csv")
    texts = [f"привет как дела сегодня хорошо {number}" for number in range(len(frame))]
    frame.assign(message=texts).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match="letters or signs that the encoder does not know"):
        reading.read_posts(Run("cyrillic"), str(tmp_path / "b.csv"), encoder)


def test_accounts_of_shared_passages_are_counted(tmp_path, encoder):
    frame = written(tmp_path / "a.csv")
    form = "this form is always filled in with the number {} and with nothing else at all, since "
    form += "whoever reads it later on wants to find the same words in the same place"
    ends = (
        "cats like warm old chairs|rain fell over our hills|bread costs more every year|"
        "music helps people think better|ships sail far from home|winter comes early up north"
    ).split("|")
    filled_in = [f"{form.format(n * 37)} {end}" for n, end in enumerate(ends)]
    forms = frame.iloc[:6].assign(user="clerk", message=filled_in)
    own_words = [" ".join(end.split()[::-1]) for end in ends]
    filled_in_too = [f"{form.format(n * 91)} {words}" for n, words in enumerate(own_words[:4], 1)]
    sorted_words = [" ".join(sorted(end.split())) for end in ends]
    part = frame.iloc[:10].assign(user="part", message=filled_in_too + sorted_words)
    pd.concat([frame, forms, part]).to_csv(tmp_path / "b.csv", index=False)
    mine = reading.read_posts(Run("forms"), str(tmp_path / "b.csv"), encoder)
    assert mine.card["accounts"] == 7 and mine.card["accounts_of_shared_passages"] == 1
    assert mine.partly_read[["posts", "left_out"]].to_numpy().tolist() == [[6, 4]]
    (sentence,) = sentences("passages", read_record(mine))[-1:]
    assert "(6 of 10 posts are compared)" in sentence
    with pytest.raises(ValueError, match="1 of the accounts asked about"):
        decisions.choose_queries(mine, ["clerk"])
    assert not parts_folder(Run("forms")).exists(), "parts list authors by name"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("id type date date_unixtime from from_id text", "from_id text date_unixtime None"),
        ("AuthorID Author Date Content Attachments Reactions", "Author Content Date None"),
    ],
)
def test_columns_of_exports_are_guessed(tmp_path, names, expected):
    (tmp_path / "a.csv").write_text(names.replace(" ", ",") + "\n")
    types = guessed(tmp_path / "a.csv")
    assert [str(types[kind]) for kind in ("author", "text", "time", "topic")] == expected.split()


DATES = pd.Series([f"2024-01-{day:02d}" for day in range(1, 13)] * 6)
SECONDS = pd.to_datetime(DATES).astype("datetime64[s]").astype("int64") + 12_345
WITHOUT_HOURS = {
    "no date": None,
    "days": DATES,
    "one hour": DATES + "T12:30:00Z",
    "midnight elsewhere": DATES + "T00:00:00+02:00",
    "one time": "2024-01-01T15:00:00Z",
    "rounded": SECONDS // 10_000 * 10_000,
}


@pytest.mark.parametrize("dates", WITHOUT_HOURS)
def test_dates_without_hours_are_no_hours(tmp_path, encoder, capsys, dates):
    frame = written(tmp_path / "a.csv").drop(columns=["date", "room"])
    if WITHOUT_HOURS[dates] is not None:
        frame["date"] = WITHOUT_HOURS[dates]
    frame.to_csv(tmp_path / "a.csv", index=False)
    mine = reading.read_posts(Run("any"), str(tmp_path / "a.csv"), encoder)
    assert mine.hours is False and mine.card["accounts"] == 6
    assert (reading.NO_HOURS in capsys.readouterr().out) == ("date" in frame)


def test_guests_of_a_forum_are_said(tmp_path, capsys):
    frame = pd.DataFrame({"userid": [0, 0, 7], "username": ["Ann", "Bob", "Cy"], "text": "t"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    guessed(tmp_path / "a.csv", author="userid")
    assert "2 names in the column username have the userid 0" in capsys.readouterr().out
    frame.assign(username="Ann").to_csv(tmp_path / "a.csv", index=False)
    guessed(tmp_path / "a.csv", author="userid")
    assert not capsys.readouterr().out
