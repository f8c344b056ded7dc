"""The page about own accounts: it says what was found, hostile text is text, it saves decisions."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from helpers.accounts import page as answer_page
from helpers.accounts.answers import LIKELY, LINKED, NOT_LINKED
from helpers.accounts.decisions import read_decisions
from helpers.accounts.gallery import UNJUDGED
from helpers.accounts.page import percent, render, sentences
from helpers.accounts.samples import texts_of
from helpers.accounts.signs import MIN_WEIGHT
from tests.accounts.shared import visible

HOSTILE = '<script>alert("x")</script>'


def test_every_number_of_a_pair_is_that_of_the_tables(answer, record):
    page = visible(render(record))
    shown = answer_page.shown_pairs(answer)
    assert len(shown) == len(record["pairs"]) >= 3
    many = answer.pairs.head(25).assign(state=LINKED)
    assert len(answer_page.shown_pairs(replace(answer, pairs=many))) == 20, "no endless page"
    for row, pair in zip(shown.itertuples(), record["pairs"], strict=True):
        assert (pair["a"], pair["b"], pair["state"]) == (row.account_a, row.account_b, row.state)
        assert (pair["posts_a"], pair["posts_b"]) == (row.posts_a, row.posts_b)
        text = percent(row.probability)
        assert f"{row.account_a} and {row.account_b} : {row.state}, probability {text}" in page
        total = sum(pair["systems"].values())
        assert total == pytest.approx(pair["score"], abs=1e-9)
    counts = answer.pairs.state.value_counts().to_dict()
    assert record["counts"] == {
        state: counts.get(state, 0) for state in (LINKED, LIKELY, NOT_LINKED, UNJUDGED)
    }
    for sentence in [*record["headline"], *record["sentences"]]:
        assert " ".join(sentence.split()) in page


def test_signs_are_in_as_many_posts_as_a_search_finds(answer, record):
    store = answer.gallery.targets.store
    texts = {}
    for name in answer.gallery.names:
        sample = answer.gallery.accounts([name])
        numbers = np.arange(sample.first[0], sample.first[0] + sample.count[0])
        texts[name] = texts_of(store, numbers, answer.gallery.encoder.tokenizer)
    page = visible(render(record))
    signs = 0
    for pair in record["pairs"]:
        listed = [sign["text"] for sign in pair["speaks_for"] + pair["speaks_against"]]
        assert len(set(listed)) == len(listed) >= 8
        weights = [abs(sign["part"]) for sign in pair["speaks_for"] + pair["speaks_against"]]
        assert min(weights) >= MIN_WEIGHT * max(weights)
        for sign in [*pair["speaks_for"], *pair["speaks_against"]]:
            for letter in "ab":
                account = pair[letter]
                if " / " in sign["text"]:
                    continue
                expected = sum(sign["text"] in f" {text} " for text in texts[account])
                assert sign[f"posts_{letter}"] == expected
                signs += 1
        strongest = next(sign for sign in pair["speaks_for"] if sign["posts_a"])
        words = f"it is in {strongest['posts_a']} of {pair['posts_a']} posts read of {pair['a']}"
        assert f"for one person is “{strongest['text']}”: {words}" in page
        for name in pair["systems"]:
            assert f"{name}: " in page and f"{name}: None" not in page
    assert signs >= 50


def test_hostile_names_and_posts_are_only_text(record):
    pairs = [
        pair | {"a": HOSTILE, "key_a": HOSTILE, "note": HOSTILE, "decision": "later"}
        for pair in record["pairs"]
    ]
    page = render(record | {"pairs": pairs, "files": [HOSTILE], "headline": [HOSTILE]})
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    assert page.count("<script>") == 1


def test_only_the_page_s_own_script_may_run(record):
    page = render(record)
    script = re.search(r"<script>(.*?)</script>", page, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in unescape(page)
    assert "default-src" in page and not re.search(r"(?:src|href)=\"(?!#)", page)


@pytest.mark.parametrize(
    "states, words",
    [
        ([LINKED], "1 pair of accounts is linked, with a probability of 97%; a link needs 91%."),
        ([LINKED, LINKED, LIKELY], "2 pairs of accounts are linked, with probabilities from 93%"),
        ([LIKELY, NOT_LINKED], "No link can be made in this file"),
        ([UNJUDGED], "No pair of accounts can be judged"),
    ],
)
def test_the_headline_is_the_user_s_answer(answer, states, words):
    chances = [0.97, 0.93, 0.5][: len(states)]
    pairs = answer.pairs.head(len(states)).assign(state=states, probability=chances)
    changed = replace(answer, pairs=pairs, highest_probability=0.99 if LINKED in states else 0.1)
    (headline,) = sentences("headline", answer_page.numbers(changed))
    assert headline.startswith(words)


def test_how_often_a_link_is_wrong_is_said_or_why_not(record):
    errors = {"accounts": 100, "right": 60, "wrong": 2, "wrong_alone": 1}
    errors |= {"wrong_share": 0.15, "most_wrong_share": 0.42}
    counts = record["counts"] | {"linked": 10}
    text = visible(render(record | {"link_errors": errors, "counts": counts}))
    assert "60 of the 100 were linked with their own half, 40 were missed" in text
    assert "about 15 in 100 such links will be wrong; it may be up to 42 in 100, since" in text
    assert "So up to 5 of these 10 links may be wrong." in text
    text = visible(render(record | {"link_errors": None}))
    assert "could not be measured. The test needs 30 accounts" in text


def test_probabilities_are_never_rounded_to_certainty():
    assert percent(0.9999) == "over 99%" and percent(0.0) == "under 1%"
    assert percent(0.851) == "85%"
    # a likely pair is not shown with the probability that a link needs
    assert percent(0.907, 10 / 11) == "just under 91%" and percent(0.91, 10 / 11) == "91%"
    assert percent(float("nan")) == "none"


def test_no_name_is_a_formula_in_a_table(answer, record, tmp_path):
    name = answer.pairs.account_a[0]
    pairs, accounts = (table.replace(name, "=SUM(A1)") for table in (answer.pairs, answer.accounts))
    answer = replace(answer, pairs=pairs, accounts=accounts)
    answer_page.write_page(answer, record, tmp_path)
    pairs = pd.read_csv(tmp_path / "pairs.csv")
    accounts = pd.read_csv(tmp_path / "accounts.csv")
    assert pairs.account_a[0] == "'=SUM(A1)" and "'=SUM(A1)" in set(accounts.account)
    assert pairs.probability.dtype == float


def test_a_pair_names_what_else_one_of_its_accounts_may_be(record):
    pairs = pd.DataFrame(
        {
            "account_a": ["a", "a", "c", "d", "b"],
            "account_b": ["b", "c", "b", "e", "f"],
            "probability": [0.9, 0.3, 0.2, 0.8, 0.01],
        }
    )
    rivals = answer_page._rivals(pairs, ["a", "b"])
    assert [tuple(rival.values()) for rival in rivals] == [("a", "c", 0.3), ("c", "b", 0.2)]
    first = record["pairs"][0] | {"rivals": rivals}
    text = visible(render(record | {"pairs": [first]}))
    assert "may also be one person with somebody else: a and c , probability 30%" in text


BROWSERS = [path for path in map(shutil.which, ("chromium", "google-chrome")) if path]
NOTE = 'not he, "she";\u00a0=1+1'
# what a person does; the file that the browser would save stands in the page instead
DECIDE = """
const pairs = document.querySelectorAll(".pair");
const save = () => document.getElementById("save").click();
const said = () => document.getElementById("saved").textContent;
save();
const nothing = said();
pairs[0].querySelector("input[value=same]").click();
pairs[2].querySelector("input[value=different]").click();
pairs[2].querySelector(".note input").value = %s;
document.getElementById("who").value = "me, you";
URL.createObjectURL = (blob) => {
  blob.text().then((file) => {
    document.body.textContent = JSON.stringify([nothing, said(), file]);
  });
  return "#";
};
save();
"""


@pytest.mark.skipif(not BROWSERS, reason="there is no Chromium")
def test_the_page_saves_what_was_decided(record, tmp_path):
    script = DECIDE % json.dumps(NOTE)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = unescape(render(record)).replace("script-src ", f"script-src 'sha256-{digest}' ")
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'x'}"]
    options += ["--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run(
        [BROWSERS[0], *options, path.as_uri()], capture_output=True, text=True, timeout=60
    )
    shown = unescape(done.stdout.split("<body>")[1].split("</body>")[0])
    nothing, decided, file = json.loads(shown)
    assert (nothing, decided) == ("Nothing is decided yet.", "2 decided.")
    saved = tmp_path / "decisions.csv"
    saved.write_text(file, "utf-8", newline="")
    rows = read_decisions(saved)
    keys = [(record["pairs"][row]["key_a"], record["pairs"][row]["key_b"]) for row in (0, 2)]
    assert list(zip(rows.account_a, rows.account_b, strict=True)) == keys
    assert list(rows.decision) == ["same", "different"]
    assert set(rows.who) == {"me, you"}
    assert list(rows.note) == ["", NOTE]
