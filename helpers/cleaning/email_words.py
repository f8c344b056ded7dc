"""Expressions for what mail programs, news readers and lists add to an author's text."""

import re

# header fields of a forwarded mail, in the languages of mail programs: "From: Jane", "Betreff: x"
HEADER = re.compile(
    r"\W{0,3}(?:From|Von|De|Van|Da|Fra|Från|Od|Sent|Date|Gesendet|Datum|Envoy[ée]|Enviado|Verzonden"
    r"|Inviato|Sendt|Skickat|Data|Fecha|Dato|To|An|À|A|Para|Aan|Till|Til|Cc|Subject|Betreff|Objet"
    r"|Asunto|Assunto|Onderwerp|Oggetto|Emne|Ämne|Reply-To|Message-ID)\W{0,2}\s?:\s*\S",
)
# the verb of an attribution, such as "Jane Doe wrote:"
VERB = (
    r"(?:wrote|writes|said|says|schrieb|schrieben|(?:es|[ée?])crit|[ée]crivait|escribi[óo?]"
    r"|escribe|ha scritto|scrisse|scritto|escreveu|schreef|skrev|skriver|napsal|napisał(?:\(a\))?"
    r"|pisze|kirjoitti|написал|пишет)"
)
# the verb of a news reader's attribution, which may also be "you write:"
ARTICLE_VERB = (
    rf"(?:{VERB}|write|say|(?:ask|comment|explain|mention|post|respond)(?:s|ed)?|repl(?:y|ies|ied)"
    r"|(?:state|claim)[sd]?)\b"
)
# the first word of an attribution, before a date or a name
OPENING = re.compile(
    r"\s*-{0,2}\s?(?:On|Am|Le|El|Il|Op|Em|Den|Dne|Dnia|At|Quoting|Citando|Zitat von|Quoth)\s"
)
# attributions without a verb: "Quoting Jane Doe:" and "2012/3/7 Jane Doe <jd@example.org>:"
QUOTING = re.compile(
    r"\s*(?:(?:Quoting|Citando|Zitat von)\s.{1,200}|\d{4}[-/]\d\d?[-/]\d\d?[\s,].{1,200}>):$"
)
# header fields that news readers put above a message: "Lines: 12"
FIELD = re.compile(
    r"(?:From|Date|Subject|Organi[sz]ation|Lines|Newsgroups|Distribution|Keywords|Summary"
    r"|Message-ID|References|Path|Sender|Reply-To|Followup-To|Expires|Approved"
    r"|N(?:NTP|ntp)-Posting-\w+|Archive-name|Last-modified|Version|Posting-Frequency|To|Cc|X-[\w-]+"
    r"|Article-I\.?D\.?):(?:\s|$)"
)
# header fields that may also stand within or below a message
LONE_FIELD = re.compile(
    r"(?:Organi[sz]ation|Newsgroups|Message-ID|N(?:NTP|ntp)-Posting-\w+|Archive-name): \S"
    r"|Lines: \d+$"
)
# contact data on business cards and in lines that programs append: "Tel", "www.", "(555) 123-4567"
CONTACT = re.compile(
    r"\b(?:tel|phone|fax|mobile|cell|office|e-?mail|skype|universit\w*|dep(?:t\b|artment)"
    r"|institut\w*|faculty|lab|ph\.?\s?d|professor|school of|college|laborator\w*|p\.?o\.? box"
    r"|street|avenue)\b|https?://|www\.|\S@\S+\.\w|\w at [\w-]+\.\w"
    r"|\w\.(?:com|org|net|edu|gov|ac\.uk|de|ch|fr)\b|views expressed|\+\d[\d\s().-]{6,}"
    r"|\(\d{3}\)\s?\d{3}|\d{3}-\d{4}",
    re.I,
)
# the start of lines that mail programs, lists and phones add: "Sent from my phone"
JUNK = re.compile(
    r"\s*(?:\[\[alternative HTML version deleted\]\]|Sent via "
    r"|Sent from (?:my|the \S+ mailing list) |View this message in context|Get your (?:free|own)"
    r"|Do you Yahoo|(?:Please )?consider the environment|\[?snip\]?\s*$|<snip>"
    r"|Enviado (?:de|desde) mi|Von meinem \w+ gesendet|Evite imprimir|\[cid:)",
    re.I,
)
# the last line of a post where phones and mail programs add it, in their owner's language:
# "Get Outlook for Android", "Inviato da iPhone"
DEVICE = (
    r"(?:i(?:Phone|Pad)|Android|Samsung|Galaxy|Huawei|Xiaomi|Nokia|BlackBerry|Windows|Yahoo"
    r"|Outlook|Gmail|Mail|Proton|Tapatalk|Smartphone|Handy|mobile)"
)
PHONE_LINE = re.compile(
    r"\s*(?:Sent from my .{1,60}|Get Outlook for .{1,60}|Von meinem .{1,60} gesendet"
    r"|Gesendet von meinem .{1,60}"
    r"|Enviado (?:de|desde) mi .{1,60}|Enviado do meu .{1,60}|Envoyé de mon .{1,60}"
    r"|Inviato dal mio .{1,60}|Ver(?:stuurd|zonden) vanaf mijn .{1,60}|[发發]自我的.{1,60}"
    r"|(?:Sent (?:from|via|with)|Gesendet (?:von|mit)|Enviado (?:de|desde|con)"
    r"|Envoyé (?:de|depuis)|Inviato da|Ver(?:stuurd|zonden) (?:vanaf|met|via)|Wysłan[eo] z"
    r"|Skickat från|Sendt fra|Odesláno z|Отправлено (?:с|из)|Надіслано з)"
    rf" .{{0,20}}{DEVICE}.{{0,60}}"
    rf"|.{{0,20}}{DEVICE}.{{0,20}}(?:から送信|에서 보냄))\.?\s*",
    re.I,
)
# what a list writes in place of a part that it removed: "[[HTML version {{dropped:3}}]]"
DROPPED = re.compile(r"\s*.{0,200}\{\{dropped:\d", re.I)
# words that occur in signatures only
RESERVED = re.compile(r"views expressed|disclaimer", re.I)
# a paragraph with three different such words, one of them CONFIDENTIAL, is a disclaimer
DISCLAIMER = re.compile(
    r"confidential|vertraulich|confidencial|recipient|destinatario|privileged|in error|por error"
    r"|by mistake|unauthori|disclos|disseminat|forbidden",
    re.I,
)
CONFIDENTIAL = frozenset({"confidential", "vertraulich", "confidencial"})
