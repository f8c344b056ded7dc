"""The names that a corpus knows, in its texts."""

from collections import Counter

import duckdb

from helpers.corpus import personal_names
from tests.factories import posts_table


def known(tmp_path, texts, people, heard=(), parts=1):
    # three authors: what one of them alone writes in lower case may be a name for all that
    said = [(author, text) for author in "abc" for text in texts] + 20 * [("a", "Jane Doe")]
    rows = [(author, i, "t", text) for i, (author, text) in enumerate(said)]
    paths = [posts_table(tmp_path / f"{part}.parquet", rows[part::parts]) for part in range(parts)]
    with duckdb.connect() as connection:
        masked = personal_names.names_to_mask(connection, people, Counter(heard), paths)
    first_words = {words[0] for words in masked}
    return [personal_names.mask_known_names(masked, first_words, text) for text in texts]


def test_names_of_a_corpus_are_masked_and_words_are_not(tmp_path):
    people = "Jane Doe|Will Hope|Mark Lean|Ann B. Lee|rust_fan|q@doe.example|Python Fan".split("|")
    pairs = {
        "I asked Jane, and JANE DOE told me": "I asked @user, and @user told me",
        "as jane doe wrote, Doe's idea": "as @user wrote, @user's idea",
        "will it work? I hope. Will it? They will hope": (
            "will it work? I hope. Will it? They will hope"
        ),
        "ask Will Hope to mark it, Mark the lean one": "ask @user to mark it, Mark the lean one",
        "python is no Python, a fan of rust": "python is no Python, a fan of rust",
        "Ann Lee and Ann B. Lee and doe@x and a/Doe and Doe.x": (
            "@user and @user and doe@x and a/Doe and Doe.x"
        ),
        "ask rust_fan or Rust Fan, python": "ask rust_fan or @user, python",
        "so said Bob, and Tim": "so said @user, and Tim",
        "the Kenward-Jane test, Jane-like, Jane--no": "the Kenward-Jane test, Jane-like, @user--no",
        "as Jane Smith wrote, see Jane B. Smith's idea": "as @user wrote, see @user's idea",
        "as you told Jane But no, thanks Jane Smith": (
            "as you told @user But no, thanks @user Smith"
        ),
        "It works. Jane Doe": "It works. @self",
        "It works for all -Jane Doe and more": "It works for all -@self and more",
        "It works for Jane Doe": "It works for @user",
        "It works. Cheers, Jane P.S. Thanks, Jane": "It works. Cheers, @self P.S. Thanks, @user",
    }
    heard = ["Bob"] * 3 + ["Tim"]
    for parts in (1, 3):
        assert known(tmp_path, list(pairs), people, heard, parts) == list(pairs.values())


def test_a_full_name_that_others_write_in_lower_case_is_masked(tmp_path):
    texts = ["as neil gandler said", "ask neil b. gandler", "will hope is no person"]
    masked = ["as @user said", "ask @user", "will hope is no person"]
    assert known(tmp_path, texts, ["NEIL B. GANDLER", "Will Hope"]) == masked


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


def test_a_surname_behind_mentions_is_masked_and_a_common_word_there_is_not(tmp_path):
    pairs = {
        "ask @user Roe": "ask @user @user",
        "as Roe said": "as @user said",
        "@user Python is slow": "@user Python is slow",
        "it is Python, and Python is it": "it is Python, and Python is it",
        "@user Thanks for it": "@user Thanks for it",
        "many thanks": "many thanks",
    }
    assert known(tmp_path, list(pairs), []) == list(pairs.values())


def test_the_order_of_names_changes_no_nick():
    people = ["Jane Doe", "janedoe", "sunny", "★Mia★"]
    nicks = personal_names.nicks_of(people)
    assert nicks == personal_names.nicks_of(people[::-1])
    assert nicks["janedoe"] and nicks["★mia★"] and not nicks["sunny"] and not nicks["mia"]


def test_a_first_name_that_is_a_word_is_masked_where_it_stands_as_a_name(tmp_path):
    pairs = {
        "as Mark said, and Mark's point": "as @user said, and @user's point",
        "But Mark did. Thanks, Mark": "But @user did. Thanks, @user",
        "mark it. Mark the line, the Mark, please MARK it": (
            "mark it. Mark the line, the Mark, please MARK it"
        ),
        "see Mark II, use Mark.txt, in Mark": "see Mark II, use Mark.txt, in Mark",
        "as Hope goes, so said Grant": "as Hope goes, so said Grant",
        "I don't, as Don said": "I don't, as @user said",
        "don't, Don't, won\u2019t": "don't, Don't, won\u2019t",
    }
    people = ["Mark Doe", "Mark Moser", "Will Hope", "Ulysses Grant", "Don Doe", "Ben Won"]
    assert known(tmp_path, list(pairs), people, ["Don"]) == list(pairs.values())


def test_the_rest_of_a_damaged_name_is_no_name(tmp_path):
    masked = known(tmp_path, ["ask Bert about Sar and ter"], ["Bert Sar?ter"])
    assert masked == ["ask @user about Sar and ter"]


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


def test_a_path_says_nothing_about_a_name(tmp_path):
    masked = known(tmp_path, ["/bob x/bob $bob, ask Bob"], [], ["Bob"] * 3)
    assert masked == ["/bob x/bob $bob, ask @user"]


def test_words_of_organisations_and_months_identify_nobody():
    people = {"Mark April Doe", "School of Biological Sciences", "rust_fan", "Lone", "a@b.org"}
    words = personal_names.identifying_words(people, Counter({"Bob": 1}))
    assert words == {"mark", "doe"}
