"""Posts that a file holds encoded, or as markup."""

import base64
import html
import json
import quopri

import pytest

from helpers.cleaning.markup import plain_text
from helpers.cleaning.text import clean_post
from tests.cleaning.examples import EXAMPLES

POST = (
    "I don’t think it’s right.\u00a0 The function (a = b) returns 3 & more, so what do you mean?"
    " Well – look at “the second file” again, café\u00a0or not, and tell me what you see there."
)
WORD = '<html xmlns:o="urn:x"><head><style><!-- p.MsoNormal {margin:0cm} --></style></head><body>'
WORD += "<!--[if gte mso 9]><xml><o:x>96</o:x></xml><![endif]-->"
WORD += "<div class=WordSection1><p class=MsoNormal>%s<o:p></o:p></p></div></body></html>"
FIRST, REST = POST.split(" ", 1)


def quoted_printable(text, encoding="utf-8"):
    """Return a text as mails carry it, in lines of 76 characters."""
    return quopri.encodestring(text.encode(encoding)).decode()


ENCODED = {
    "quoted-printable": quoted_printable(POST),
    "quoted-printable, lines joined": quoted_printable(POST).replace("=\n", "= "),
    "quoted-printable, HTML": quoted_printable(f'<div class="x">{html.escape(POST)}</div>'),
    "JSON": json.dumps(POST)[1:-1],
    "JSON of HTML": json.dumps(f"<p>{html.escape(POST)}</p>\n")[1:-1],
    "mojibake": POST.encode().decode("cp1252", "replace"),
    "mojibake twice": POST.encode().decode("latin-1").encode().decode("latin-1"),
    "editor": f'<div class="ql-editor"><p style="margin:0cm">{html.escape(POST)}</p></div>',
    "Word": WORD % html.escape(POST),
    "Teams, an answer": f"<attachment id='17'></attachment>\n<div>{html.escape(POST)}</div>",
    "Discourse": '<aside class="quote" data-username="Jane Doe"><div class="title">Jane:</div>'
    f"<blockquote><p>hers</p></blockquote></aside><p>{html.escape(POST)}</p>",
    "escaped twice": html.escape(html.escape(f"<p>{POST}</p>")),
    "entities": html.escape(POST).replace("\u00a0", "&nbsp;"),
    "bold": f"<b>{FIRST}</b> {REST}",
    "quote": f"<blockquote>his <b>own</b> <p>words</p></blockquote>{POST}<br>",
    "BBCode with numbers": f'[quote="Jane":1a2b3c4d]hers[/quote:1a2b3c4d][b:1a2b3c4d]{FIRST}'
    f"[/b:1a2b3c4d] {REST}",
    "phpBB's XML": '<r><QUOTE author="Jane"><s>[quote=Jane]</s>hers<e>[/quote]</e></QUOTE>'
    f"<B><s>[b]</s>{FIRST}<e>[/b]</e></B> {REST}</r>",
    "BBCode": f'[quote="Jane"]her [quote]and his[/quote] words[/quote][b]{FIRST}[/b] {REST}',
}


@pytest.mark.parametrize("kind", ENCODED)
def test_a_post_is_read_as_its_readers_saw_it(kind):
    assert clean_post(ENCODED[kind]) == clean_post(POST)


@pytest.mark.parametrize(("text", "expected"), EXAMPLES["remnants_of_an_export"])
def test_remnants_of_an_export(text, expected):
    assert clean_post(text) == expected


@pytest.mark.parametrize("text", EXAMPLES["prose_and_code"])
def test_prose_and_code_stay(text):
    assert plain_text(text) == text


def test_what_cannot_be_decoded_stays():
    encoded = base64.encodebytes(POST.encode()).decode()
    assert plain_text(encoded) == encoded.rstrip()


@pytest.mark.parametrize("forum", EXAMPLES["quotes_of_forums"])
def test_quotes_in_the_plain_text_of_forums_are_left_out(forum):
    own = "She said: it is so.\n\nA quote from the manual:\ndo it."
    quote = EXAMPLES["quotes_of_forums"][forum]
    assert plain_text(f"Well.\n{quote}{own}") == f"Well.\n{own}"


def test_of_a_quote_without_an_end_all_is_left_out():
    assert plain_text("I do not.\nOriginally Posted by Jane\nher words\nwhose?") == "I do not."


def test_mentions_of_teams_are_masked():
    assert plain_text('<p>Hi <at id="0">Jane Doe</at>, look</p>').strip() == "Hi @user, look"
