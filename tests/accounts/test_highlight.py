"""Posts become HTML in which words are marked, and whatever they hold is escaped."""

import re

from helpers.accounts.gallery import AccountGallery
from helpers.accounts.signs import contributions, highlight


def test_words_of_the_topic_are_underlined_and_escaped(encoder):
    posts = [["the kiln & <x>kilns</x>, kiln"], ["a kiln then"]]
    gallery = AccountGallery.of(encoder, posts, ["a", "b"])
    query = gallery.accounts(["a"])
    parts = contributions(gallery, query, "b", "a")
    html = highlight(parts, query, encoder.tokenizer, 5, ["kiln"])
    marked = re.findall(r"<span style=\"[^\"]*underline dotted\">([^<]*)</span>", html)
    assert "".join(marked).replace(" ", "") == "kilnkiln"
    assert re.sub("<[^>]*>", "", html).strip() == "the kiln &amp; &lt;x&gt;kilns&lt;/x&gt;, kiln"


def test_posts_are_escaped(encoder):
    posts = [["<img src=x onerror=alert(1)> tea & tea"], ["<b>tea</b> then"]]
    hostile = AccountGallery.of(encoder, posts, ["a", "b"])
    query = hostile.queries([["<img src=y> tea & coffee"]])
    html = highlight(contributions(hostile, query, "a"), query, encoder.tokenizer)
    assert "<img" not in html and "&lt;" in html and html.count("<p>") == 1
