"""What remains of a mail."""

import pytest

from helpers.cleaning.email import own_paragraphs, without_appended

MAIL = """Hi all,

On Mon, Jul 2, 2007 at 11:14 AM, Some One <some.one at example.org>
wrote:
> quoted words
> > deeper words

my answer stands here
and goes on over two lines.

Le 13/03/2012 11:03, Quelqu'un a écrit :
> cité

x <- lm(y ~ z, data = d)
[1] 1 2 3

Best,
J

--\x20
Jane Doe, Department of Silly Walks
+44 20 7946 0000
_______________________________________________
R-help mailing list
R-help at example.org
https://example.org/mailman/listinfo/r-help
"""


def test_own_words_of_a_mail():
    assert (
        own_paragraphs(MAIL)
        == "Hi all,\n\nmy answer stands here\nand goes on over two lines.\n\nBest,\nJ"
    )


@pytest.mark.parametrize(
    "appended",
    [
        "-----Original Message-----\nFrom: X [mailto:x at example.org]\nSent: Monday\n"
        "To: Y\n\ntheir words",
        "-------------- next part --------------\nA non-text attachment was scrubbed...\n"
        "Name: a.pdf",
        "Some One <some at ...> writes:\n\n> their words",
        "Am 08.03.2012 15:48, schrieb X:\n> ihre Worte",
        "Quoting X <x at example.org>:\n\n> their words",
        "2012/3/7 Some One <some.one at example.org>:\n> their words",
        "XY> their words",
        "\t[[alternative HTML version deleted]]",
        "An HTML attachment was scrubbed...\nURL: <https://example.org/attachment.html>",
        "-- \nYou received this message because you are subscribed to the Google Groups group.",
        "_______________________________________________\nUsers mailing list -- users@x.org\nTo "
        "unsubscribe send an email to users-leave@x.org",
        "This email and any files are confide...{{dropped:9}}",
        "This e-mail is confidential. If you are not the intended\n"
        "recipient, any disclosure is forbidden.",
        "El 16 de mar? de 2012 20:34, X <x at example.org> ha escrit:\n> their words",
        "Jane Doe FAA\n"
        "University of Nowhere, Department of Silly Walks and of very long names of departments",
        "A plural is no singular, as they always say.\n~ Jane Doe",
        "-- \nDr. Jane Doe\n" + "A book of mine, and one more.\n" * 16 + "Tel: 020 7946 0000",
        "Jane Doe\nUniversity of Nowhere\n\nx <- c(1, 2)\ny <- c(3, 4)",
        "Jane Doe\nCalle Mayor 7\njane@example.org\n\n"
        "Este correo contiene informaci?n confidencial para"
        " su destinatario. En el caso\nde haberlo recibido por error.\n\n"
        "Evite imprimir este mensaje.",
        'Jane Doe\nMarine Lab\n\n"Without a motto, you are just\nanother person."',
        "#compare the two of them with each other and see what they say\n"
        "y$z[y$a == 1] <- y$z[y$a == 1] * 2\n"
        "drv <- (a - b) #the difference between what there is and what there was\n"
        "m=lm(a ~ b,\n  data=d)",
        "Fehler in solve.default(a, b) :\n  System ist singul?r",
        "Jane Doe\nInstitute of Silly Walks\njd@example.org\nexample.org\nhttp://example.org/jane",
        "-----\nJane Doe\n\nACME\nwww.example.org",
        "-----BEGIN PGP SIGNATURE-----\nVersion: 1\n\niQEcBAEB\n-----END PGP SIGNATURE-----",
    ],
)
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


@pytest.mark.parametrize(
    "body",
    [
        "In article <1@x> jd@cs.example.edu (Jane Doe) writes:\n|> theirs\n|>\n|> more\n\nANSWER",
        "From article <1@x>, by jd@cs.example.edu (Jane Doe):\n+ theirs\n+ more\n\nANSWER",
        "In article <1@x>, Jane Doe <jd@cs.example.edu> writes:\nANSWER",
        "In article <1@x> jd@cs.example.edu writes:\n> theirs\n\n--\nANSWER",
    ],
)
def test_an_answer_of_a_news_reader_is_all_that_stays(body):
    assert own_paragraphs(body.replace("ANSWER", ANSWER)) == ANSWER


def test_an_answer_that_looks_like_a_quote_stays():
    for text in (
        "In article <1@x> jd@cs.example.edu writes:\n> theirs\n\n        Indented, but mine.",
        "Three points:\n* one\n* two\n* three",
        ":-) That was a joke.",
        "In article 5 of the law it says something else.",
        "I think Jane Doe writes:\nwell.",
        "--\nSee www.example.org for it",
    ):
        assert own_paragraphs(text).split()[-2:] == text.split()[-2:], text
    assert own_paragraphs("Mine.\n\n: one smile only").count("smile") == 1


@pytest.mark.parametrize(
    "body",
    [
        "--\nJane Doe\nUniversity of Nowhere\njd@example.edu",
        "In article <1@x> jd@example.edu writes:\n> theirs\n\n-- \nJane Doe\nUniversity of Nowhere",
        "On Tue, 6 Apr 1993, Jane Doe wrote:\n> theirs\n> more\n",
    ],
)
def test_quotes_and_a_signature_alone_leave_nothing(body):
    assert own_paragraphs(body) == ""


def test_an_answer_below_the_quoted_head_of_a_mail_stays():
    head = (
        "> -----Original Message-----\n> From: Jane Doe [mailto:jd@example.org]\n"
        "> Sent: Monday\n> To: list\n> \n"
    )
    assert own_paragraphs(f"{head}> theirs\n\n{ANSWER}") == ANSWER


HEADER = (
    "From: Bob <b@x.org>\nSent: Monday, May 3, 2016 10:12 AM\nTo: List\nSubject: RE: Q\n\nI am Bob"
)
GERMAN = "Von: Bob <b@x.org>\nGesendet: Montag, 3. Mai 2016 10:12\nAn: Liste\nBetreff: AW: F\n\nich"
APPENDED = [
    f"-----Original Message-----\n{HEADER}",
    f"-----Ursprüngliche Nachricht-----\r\n{GERMAN}",
    f"---------- Forwarded message ---------\n{HEADER}",
    "On Mon, May 3, 2016 at 10:12 AM Bob <b@x.org>\nwrote:\n\nHello, I am Bob.",
    "Am Mo., 3. Mai 2016 um 10:12 Uhr schrieb Bob <b@x.org>:\n\nIch bin Bob.",
    "-----BEGIN PGP MESSAGE-----\n\nhQEMA8x=\n=ab3d\n-----END PGP MESSAGE-----",
    "Sent from my iPhone",
    "Get Outlook for Android<https://aka.ms/AAb9ysg>",
    "Von meinem Samsung Galaxy Smartphone gesendet.",
    "Enviado desde mi Huawei",
    "Enviado do meu iPhone",
    "Отправлено с iPhone",
    "iPhoneから送信",
    "发自我的 iPhone",
    "Sent from my iPhone\n\nOn Mon, May 3, 2016 at 10:12 AM Bob <b@x.org> wrote:\n> I am Bob.",
]


@pytest.mark.parametrize("appended", APPENDED)
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


@pytest.mark.parametrize(
    "post",
    [
        "On Monday he wrote: it works.\nThat was in 2016.",
        "On the page he wrote about:\nnothing of it is new.",
        "Sent from my iPhone\nit looks odd.",
        "What does this mean?\n-----Error-----\nFailed",
        "From: Berlin\nTo: Paris\nDate: Monday\n\nWho comes along?",
        "It is stuck.\nGet Windows to update, then the mail comes",
    ],
)
def test_posts_that_are_no_mails_stay(post):
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
