"""Private keys as blocks of lines: whole, cut off at either end, or written as one JSON text.

A key that was pasted in two halves is still a key, so each half is found by the marker it has. The second half is
looked for in the text read backwards: forwards, every line of base64 would have to be tried as a beginning.
"""

import re
from collections.abc import Iterator

HINT = "PRIVATE KEY"
KIND = "private key"

_MARKED = r"(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_HEADER = r"[A-Z][A-Za-z-]{2,30}: ?[^\n\\]{1,100}+"
_GAP = r"(?:\\[nr]|[\s>|\"'+,])*+"
_BEGIN = re.compile(
    rf"-----BEGIN {_MARKED}(?:{_GAP}{_HEADER})*+(?:{_GAP}[A-Za-z0-9+/=]{{16,}}+)++"
    rf"(?:{_GAP}[A-Za-z0-9+/=]{{1,15}}+(?=\s|\\|-|$))?+(?:{_GAP}-----END {_MARKED})?"
)
_GAP_BACKWARDS = r"(?:[nr]\\|[\s>|\"'+,])*+"
_END_BACKWARDS = re.compile(
    r"-----(?:KCOLB )?YEK ETAVIRP(?: [A-Z0-9]{1,20}){0,3} DNE-----"
    rf"(?:{_GAP_BACKWARDS}[A-Za-z0-9+/=]{{1,31}}+)?+(?:{_GAP_BACKWARDS}[A-Za-z0-9+/=]{{32,}}+)++"
)


def find(text: str) -> Iterator[tuple[int, int]]:
    """Yield where private keys, or what is left of them, begin and end."""
    for match in _BEGIN.finditer(text):
        yield match.span()
    if "-----END " in text:
        for match in _END_BACKWARDS.finditer(text[::-1]):
            yield len(text) - match.end(), len(text) - match.start()
