"""Patterns for private keys in PEM and PuTTY format. A key may be complete, incomplete, or in a JSON string.

A key may be pasted in two halves, so each half is found by its own marker. The second half is searched for in the
reversed text. A forward search would have to try every line of base64 as the beginning of that half.
"""

import re
from collections.abc import Iterator

from memoryos_mcp.text.secrets.forms import SecretPattern, Span

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
# A PuTTY file contains the public key, the number of lines of the private key, and the private key.
_PUTTY_LINES = re.compile(r"private-lines: ?([0-9]{1,3})")
_PUTTY_LINE = re.compile(r"(?:\\[nr]|[\s>|\"',])*+([A-Za-z0-9+/]{4,}+={0,2})(?![\w:-])")
_PUTTY_MAC = re.compile(r"private-(?:mac|hash): ?([0-9a-f]{40,64})")


def _find(text: str, _lower: str) -> Iterator[Span]:
    for match in _BEGIN.finditer(text):
        yield match.span()
    if "-----END " in text:
        for match in _END_BACKWARDS.finditer(text[::-1]):
            yield len(text) - match.end(), len(text) - match.start()


def _find_putty(text: str, lower: str) -> Iterator[Span]:
    for count in _PUTTY_LINES.finditer(lower):
        start, end = -1, count.end()
        for _ in range(int(count[1])):
            line = _PUTTY_LINE.match(text, end)
            if line is None:
                break
            start = line.start(1) if start < 0 else start
            end = line.end()
        if start >= 0:
            yield start, end
    for mac in _PUTTY_MAC.finditer(lower):
        yield mac.span(1)


PRIVATE_KEYS = (
    SecretPattern("private key", ("private",), _find),
    SecretPattern("private key", ("private",), _find_putty),
)
