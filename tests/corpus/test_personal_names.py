"""The names that a corpus knows, in its texts."""

from collections import Counter
from pathlib import Path

import duckdb
import pytest
import yaml

from helpers.corpus import personal_names
from tests.factories import posts_table

EXAMPLES = yaml.safe_load(Path(__file__).with_name("personal_names.yaml").read_text("utf-8"))


def known(tmp_path, texts, people, heard=(), parts=1):
    # three authors: what one of them alone writes in lower case may be a name for all that
    said = [(author, text) for author in "abc" for text in texts] + 20 * [("a", "Jane Doe")]
    rows = [(author, i, "t", text) for i, (author, text) in enumerate(said)]
    paths = [posts_table(tmp_path / f"{part}.parquet", rows[part::parts]) for part in range(parts)]
    with duckdb.connect() as connection:
        masked = personal_names.names_to_mask(connection, people, Counter(heard), paths)
    first_words = {words[0] for words in masked}
    return [personal_names.mask_known_names(masked, first_words, text) for text in texts]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_names_of_a_corpus_are_masked_and_words_are_not(tmp_path, kind):
    people, heard, masked = EXAMPLES[kind].values()
    for parts in (1, 3):
        assert known(tmp_path, list(masked), people, heard, parts) == list(masked.values())


def test_a_surname_that_few_write_in_lower_case_is_masked(tmp_path):
    people = ["Ulrich Obermann", "Jane Stone"]
    said = [("a", "Mr. Obermann and Mrs. Stone are right"), ("b", "as obermann said")]
    said += [(author, "ulrich obermann told me, not jane stone") for author in "abcde"]
    said += [(author, "a stone is a stone") for author in "abc"]
    table = posts_table(tmp_path / "posts.parquet", [(*row[:1], 0, "t", row[1]) for row in said])
    with duckdb.connect() as connection:
        names = personal_names.names_to_mask(connection, people, Counter(), [table])
    first_words = {words[0] for words in names}
    masked = [personal_names.mask_known_names(names, first_words, text) for _, text in said]
    assert masked[:2] == ["Mr. @user and Mrs. Stone are right", "as @user said"]
    assert masked[2:] == 5 * ["@user told me, not @user"] + 3 * ["a stone is a stone"]


def test_the_order_of_names_changes_no_nick():
    people = ["Jane Doe", "janedoe", "sunny", "★Mia★"]
    nicks = personal_names.nicks_of(people)
    assert nicks == personal_names.nicks_of(people[::-1])
    assert nicks["janedoe"] and nicks["★mia★"] and not nicks["sunny"] and not nicks["mia"]


def test_a_surname_that_is_no_plain_word_ends_the_name_and_nothing_else():
    """Such as before a path: the words behind it stay, and the end of a text is no error."""
    names = {("jane",): False, ("bob",): False, ("bob", "lee"): False}
    first_words = {words[0] for words in names}
    for text, masked in (
        ("as I told Jane Smith/x", "as I told @user/x"),
        ("I told Jane Smith@x and Bob Lee", "I told @user@x and @user"),
        ("as I told Jane Smith and Bob", "as I told @user and @user"),
    ):
        assert personal_names.mask_known_names(names, first_words, text) == masked


def test_words_of_organisations_and_months_identify_nobody():
    people = {"Mark April Doe", "School of Biological Sciences", "rust_fan", "Lone", "a@b.org"}
    words = personal_names.identifying_words(people, Counter({"Bob": 1}))
    assert words == {"mark", "doe"}
