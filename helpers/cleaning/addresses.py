"""Masking of mail addresses, web addresses and telephone numbers in a post."""

import re

BARE_TLD = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|tv|eu|uk|us|ca|au|nz|de|at|ch|fr|it|es|pt|nl|be|lu"
    "|dk|se|no|fi|pl|cz|sk|hu|ro|bg|gr|tr|ru|ua|il|za|br|ar|cl|co|mx|jp|cn|tw|hk|kr|sg|th|ie|si|hr"
    "|rs|ee|lv|lt|ir"
)
# endings that are also parts of other names (R.app, Std.Dev, as.is): they need a path to count
TLD = BARE_TLD + "|dev|app|me|in|my|id|is"
# "https://example.org/x", "www.example.org", "<URL: http://...>", "example.org/x", "example.org"
URL = re.compile(
    r"<?(?:URL:\s?)?\b(?:(?:https?|ftp|file|git|ssh)://|www\.(?=[\w-]))[^\s<>\"]++>?"
    r"|(?<![\w.@/-])(?:[A-Za-z0-9-]{1,63}\.){1,4}"
    rf"(?:(?:{TLD})/[^\s<>\"]*+|(?:{BARE_TLD})(?![\w.-]*\w))",
    re.I,
)
# "mail.example.org"
DOMAIN = rf"(?:[\w-]{{1,63}}\.){{1,5}}(?:{TLD})(?![\w-])"
# "jd@example.org", "jd at example.org", "jd [at] example.org", "jd at example dot org", "jd at ..."
EMAIL = re.compile(
    rf"(?<![\w.+%-])(?:mailto:\s?)?[\w.+%-]++(?:@(?:[\w-]{{1,63}}\.){{1,5}}[A-Za-z]{{2,24}}"
    rf"|(?:\s{{1,3}}at\s{{1,3}}(?!www\.)|\s?[(\[<{{]\s?(?:at|AT|@)\s?[)\]>}}]\s?){DOMAIN}"
    r"|\s{1,3}(?:at|AT|@)\s{1,3}[\w-]{1,63}(?:\s(?:dot|DOT)\s[\w-]{1,63}){1,5}|\sat\s\.\.\.)"
)
# "uunet!mcvax!jane", "{ucbvax,decwrl}!sun!jane", "...!uunet!jane", also before "@example.org": a
# path of hosts to a user, as mail had it before there were domains; no "no!no!no" or "done!thanks"
UUCP = re.compile(
    r"(?<![\w!.}/:=@-])(?!([a-z\d.-]{1,64})!\1!)"
    r"(?:(?:\{[\w,.-]{1,99}\}|\.{2,3})!|[a-z\d][a-z\d.-]{0,64}+![a-z\d.-]{1,64}+!)"
    r"(?:[a-z\d.-]{1,64}+!){0,9}[\w%-]++(?:[.+@%-]\w++){0,9}"
)
# a telephone number with a country's code ("+44 20 7946 0958"), grouped as in North America
# ("(555) 123-4567"), or after a word such as "phone:"; no date, version, IP address or row of
# numbers. A number is matched whole or not at all
PHONE = re.compile(
    r"(?=[(+\dTtPpFfMmCcHh])(?:(?<![\w+/.-])(?=\+(?:[^\d\n]{0,3}\d){8})\+\d{1,3}[ ./-]?"
    r"(?:\(\d{1,5}\) ?\d{0,8}|\d{1,4})(?:-\d(?!\d))?(?:[ ./-]{1,2}\d{2,8}){1,5}+"
    r"(?![\w.]*\d|[/-]\d| \d\d)"
    r"|(?<![\w+/.-])\+(?:\d{10,14}|\d{1,3} ?\(\d{1,5}\) ?\d{6,12}|\d{2,3}[ .-]\d{7,12})"
    r"(?![\w.]*\d|[/-]\d| \d\d)"
    r"|(?<![\w+/.,-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?!(?!x\d)[\w-]|[.,]\d)"
    r"|(?<!\w)(?i:tel|telephone|phone|fax|mobile|cell|handy)(?:[.:]\s?|[.:]?\s)"
    r"\(?[\d+](?:[ ()./-]{0,5}\d){5,19}+(?!(?!x\d|[Ee]xt)\w|[ ()./-]{1,5}\d\d))"
    r"(?:,?\s?(?:x|[Ee]xt\.?)\s?\d{1,6}(?!\w))?"
)
# a user of Telegram, by number or name, also where it is a link's target: "tg://user?id=12345"
TELEGRAM_USER = re.compile(
    r"\[[^\[\]\n]{1,300}\]\(tg://\w{1,20}\?[\w=&-]{1,200}+\)|tg://\w{1,20}\?[\w=&-]{1,200}+"
)
# what an EMAIL, a URL and a PHONE hold, and few texts do: the others need not be tried
EMAIL_LIKE = re.compile(r"@(?<=[\w.+%-]@)|[\s(\[<{](?:at|AT|@)[\s)\]>}]")
URL_LIKE = re.compile(rf"://|www\.|\.(?:{TLD})(?!\w)", re.I)
PHONE_LIKE = re.compile(r"\d(?:[^\d\n]{0,5}\d){4}")


def mask_addresses(text: str) -> str:
    """Return a text with placeholders for mail addresses, web addresses and telephone numbers.

    The time is linear in the length of the text.

    Parameters
    ----------
    text : str
        A post. Each placeholder gets a mark on both sides, see :data:`helpers.cleaning.text.EDGE`.
    """
    if "!" in text:
        text = UUCP.sub("\0@email\0", text)
    if EMAIL_LIKE.search(text):
        text = EMAIL.sub("\0@email\0", text)
    if "tg://" in text:
        text = TELEGRAM_USER.sub("\0@user\0", text)
    if URL_LIKE.search(text):
        text = URL.sub(_url_placeholder, text)
    if PHONE_LIKE.search(text):
        text = PHONE.sub("\0@user\0", text)
    return text


def _url_placeholder(match):
    """Return a placeholder for a web address, then the punctuation that is the sentence's."""
    address = match[0].rstrip(">)]}.,;:!?'*_")
    tail = match[0][len(address) :]
    if match[0].startswith("<") and tail.endswith(">"):
        return "\0@url\0"
    if tail.startswith(")") and "(" in address:
        tail = tail[1:]
    return "\0@url\0" + tail
