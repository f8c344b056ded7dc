"""Words by which mail programs, news readers and lists mark what an author did not write, in several languages."""

import re

# header fields of a mail pasted by a mail program, in the languages mail programs speak
HEADER = re.compile(
    r"\W{0,3}(?:From|Von|De|Van|Da|Fra|Från|Od|Sent|Date|Gesendet|Datum|Envoy[ée]|Enviado|Verzonden|Inviato|Sendt"
    r"|Skickat|Data|Fecha|Dato|To|An|À|A|Para|Aan|Till|Til|Cc|Subject|Betreff|Objet|Asunto|Assunto|Onderwerp|Oggetto"
    r"|Emne|Ämne|Reply-To|Message-ID)\W{0,2}\s?:\s*\S",
)
VERB = (
    r"(?:wrote|writes|said|says|schrieb|schrieben|(?:es|[ée?])crit|[ée]crivait|escribi[óo?]|escribe|ha scritto"
    r"|scrisse|scritto|escreveu|schreef|skrev|skriver|napsal|napisał(?:\(a\))?|pisze|kirjoitti|написал|пишет)"
)
# before a date or a name, where somebody is quoted
OPENING = re.compile(
    r"\s*-{0,2}\s?(?:On|Am|Le|El|Il|Op|Em|Den|Dne|Dnia|At|Quoting|Citando|Zitat von|Quoth)\s"
)
QUOTING = re.compile(
    r"\s*(?:(?:Quoting|Citando|Zitat von)\s.{1,200}|\d{4}[-/]\d\d?[-/]\d\d?[\s,].{1,200}>):$"
)
# what news readers put above a message, and what stands alone below it
FIELD = re.compile(
    r"(?:From|Date|Subject|Organi[sz]ation|Lines|Newsgroups|Distribution|Keywords|Summary|Message-ID|References|Path"
    r"|Sender|Reply-To|Followup-To|Expires|Approved|N(?:NTP|ntp)-Posting-\w+|Archive-name|Last-modified|Version"
    r"|Posting-Frequency|To|Cc|X-[\w-]+|Article-I\.?D\.?):(?:\s|$)"
)
LONE_FIELD = re.compile(
    r"(?:Organi[sz]ation|Newsgroups|Message-ID|N(?:NTP|ntp)-Posting-\w+|Archive-name): \S|Lines: \d+$"
)
# of business cards and of what programs append
CONTACT = re.compile(
    r"\b(?:tel|phone|fax|mobile|cell|office|e-?mail|skype|universit\w*|dep(?:t\b|artment)|institut\w*|faculty|lab"
    r"|ph\.?\s?d|professor|school of|college|laborator\w*|p\.?o\.? box|street|avenue)\b|https?://|www\.|\S@\S+\.\w"
    r"|\w at [\w-]+\.\w"
    r"|\w\.(?:com|org|net|edu|gov|ac\.uk|de|ch|fr)\b|views expressed|\+\d[\d\s().-]{6,}|\(\d{3}\)\s?\d{3}|\d{3}-\d{4}",
    re.I,
)
JUNK = re.compile(
    r"\s*(?:\[\[alternative HTML version deleted\]\]|.{0,200}\{\{dropped:\d|Sent via "
    r"|Sent from (?:my|the \S+ mailing list) "
    r"|View this message in context|Get your (?:free|own)|Do you Yahoo|(?:Please )?consider the environment"
    r"|\[?snip\]?\s*$|<snip>|Enviado (?:de|desde) mi|Von meinem \w+ gesendet|Evite imprimir|\[cid:)",
    re.I,
)
RESERVED = re.compile(r"views expressed|disclaimer", re.I)
DISCLAIMER = re.compile(
    r"confidential|vertraulich|confidencial|recipient|destinatario|privileged|in error|por error|by mistake|unauthori"
    r"|disclos|disseminat|forbidden",
    re.I,
)
