"""What remains of a mail."""

import pytest

from helpers.cleaning.email import own_paragraphs, without_appended
from tests.cleaning.examples import EXAMPLES


def test_own_words_of_a_mail():
    assert own_paragraphs(EXAMPLES["mail"]) == EXAMPLES["own_words"]


@pytest.mark.parametrize("appended", EXAMPLES["appended_to_a_mail"])
def test_what_others_wrote_or_programs_appended_goes(appended):
    assert own_paragraphs(f"My own words are these.\n\n{appended}\n") == "My own words are these."


def test_prose_among_code_stays():
    prose = "See here:\nx <- lm(y)\n(as it was said).\n\nTake a look at\nwww.example.org."
    assert own_paragraphs(prose) == prose.replace("x <- lm(y)\n", "")
    prose = (
        "I tried\nx <- 3\ny <- 4\nand I got\n[1] 3\n\nSo I write R:     it is good.\n1.      Yes"
    )
    assert (
        own_paragraphs(prose) == "I tried\nand I got\n\nSo I write R:     it is good.\n1.      Yes"
    )


ANSWER = "I do not think so.\nThe moon is no cheese."


@pytest.mark.parametrize("body", EXAMPLES["quoted_before_an_answer"])
def test_an_answer_of_a_news_reader_is_all_that_stays(body):
    assert own_paragraphs(body.replace("ANSWER", ANSWER)) == ANSWER


def test_an_answer_that_looks_like_a_quote_stays():
    for text in EXAMPLES["answers_like_quotes"]:
        assert own_paragraphs(text).split()[-2:] == text.split()[-2:], text
    assert own_paragraphs("Mine.\n\n: one smile only").count("smile") == 1


def test_quotes_and_a_signature_alone_leave_nothing():
    for body in EXAMPLES["mails_of_nothing_own"]:
        assert own_paragraphs(body) == ""


def test_an_answer_below_the_quoted_head_of_a_mail_stays():
    head = (
        "> -----Original Message-----\n> From: Jane Doe [mailto:jd@example.org]\n"
        "> Sent: Monday\n> To: list\n> \n"
    )
    assert own_paragraphs(f"{head}> theirs\n\n{ANSWER}") == ANSWER


@pytest.mark.parametrize("appended", EXAMPLES["appended_to_a_post"])
def test_what_is_appended_to_a_post_of_a_table_goes(appended):
    own = "The driver starts too late.\n\nThe port is not bound then."
    assert without_appended(f"{own}\n\n{appended}") == own
    if "wrote" not in appended and "schrieb" not in appended:  # mails mark what they quote
        assert without_appended(own_paragraphs(f"{own}\n\n{appended}")) == own


@pytest.mark.parametrize("delimiter", ["-- ", "--"])
def test_a_short_signature_goes_from_a_post_of_a_table(delimiter):
    own = "The driver starts too late."
    signature = "Ann Jones\nSenior Engineer, Northgate Holdings plc\n14 Harbour Road, Leeds LS1 4AP"
    assert without_appended(f"{own}\n\n{delimiter}\n{signature}\n\n") == own
    for below in ("A long line of text. " * 5, "line\n" * 9):
        post = f"{own}\n\n{delimiter}\n{below}".rstrip()
        assert without_appended(post) == post


def test_the_mark_of_a_changed_message_goes():
    assert without_appended("See you then <This message was edited>") == "See you then"
    assert without_appended("Bis dann! <Diese Nachricht wurde bearbeitet.>") == "Bis dann!"
    about = "<This message was edited> is what it writes"
    assert without_appended(about) == about


def test_what_stands_below_a_marked_quote_is_the_author_s():
    post = "No.\n\nOn Mon, May 3, 2016 Bob wrote:\n> Is it?\n\nIt is not."
    assert without_appended(post) == "No.\n\n> Is it?\n\nIt is not."


def test_posts_that_are_no_mails_stay():
    for post in EXAMPLES["posts_that_are_no_mails"]:
        assert without_appended(post) == post


def test_own_prose_stays():
    prose = (
        "From what I read, he wrote a book in 2004.\n\n"
        "The paper (see above) says: it depends, e.g. on lm() and its data.\n"
        "I would call summary(fit) first; then look again.\n\n"
        "-- \nwould be a delimiter, but so much follows that this is a drawn line.\n"
        + "Another line of text.\n"
        * 20
    ).strip()
    assert own_paragraphs(prose).split() == prose.split()
    campus = "Two lines:\n\nOne thing at the University I like is that\npeople talk to each other."
    assert own_paragraphs(campus) == campus
    assert own_paragraphs("so.\n\n>From here on it is mine.\n\nend").split()[1] == "From"


@pytest.mark.parametrize("line", ["Jane Doe wrote:", "jd schrieb:", "jd_80 writes:"])
def test_who_is_quoted_in_any_post_is_not_its_author(line):
    assert without_appended(f"{line}\n> Is it?\n\nIt is not.") == "> Is it?\n\nIt is not."
    assert without_appended(f"{line}\nIt is not.") == f"{line}\nIt is not."
