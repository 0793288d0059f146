"""Splits prose into sentences. Code, tables, quoted lines and recalled memories are omitted.

The extractive analyst quotes these sentences, so their words are never changed. Only white space may change.
"""

import re

SIDE_MAX_CHARS = 20_000
SENTENCES_MAX = 200

# A code block; an unclosed one ends at the end of the text.
_FENCE = re.compile(r"(`{3}|~{3}).*?(?:\1|\Z)", re.DOTALL)
_RECALLED = re.compile(r"<(memory|memories)\b[^<>]{0,200}>.*?(?:</\1\s{0,9}>|\Z)", re.DOTALL | re.IGNORECASE)
_QUOTED_OR_TABLE = re.compile(r"^\s*(?:>|\||[-=+|: ]{4,}$)|\|.*\|")
_LIST_MARK = re.compile(r"^\s*(?:[-*+•–]|#{1,6}|\(?\d{1,3}[.)]|\[[ x]?\])\s+")
_CODE_LINE = re.compile(
    r"[{};]\s*$|^\s*(?:def|class|import|from \S+ import|return|const|let|var|function|public"
    r"|SELECT|#include|@\w+)\b.*[(){}=;:*]"
    r"|^\s*\S+\s*[=:]{1,2}=?\s*[\[{(\"']|=>|->\s*\S+\s*\{|</\w+>"
)
_ENDS_SENTENCE = re.compile(r"[.!?:;…。！？：；]['\"”’)\]]*$")
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_SPACE = re.compile(r"\s+")
# Words at the end of chat sentences that sentencex mistakes for abbreviations, such as "me." (Maine).
_NO_ABBREVIATION = re.compile(r"(?:(?<=\bme\.)|(?<=\bok\.)|(?<=\bOK\.)|(?<=\bart\.)|(?<=\bHR\.)) (?=[A-Z])")
# In "am 12. April" and "im 3. Stock", the full stop marks an ordinal and does not end a sentence.
_NUMBER_AT_END = re.compile(r"(?:^|\s)\d{1,2}\.$")
_COUNTED_BEHIND = re.compile(
    r"(?:(?i:jan|jän|feb|mär|apr|mai|juni?|juli|aug|sep|okt|nov|dez)\w*\b|[a-zäöüß]|(?:Geburtstag|Stock|Klasse|Semester|Monat"
    r"|Woche|Lebensjahr|Jahr|Mal|Platz|Kind|Etage|Hochzeitstag|Jahrestag)\b)"
)
ELLIPSIS = "…"


def own_lines(text: str) -> list[tuple[str, bool]]:
    """Return the lines of prose in ``text``, each with a flag that is True for a heading or list item.

    Code, quoted lines, tables and recalled memories are omitted. The lines of a wrapped sentence are joined. Only the
    first ``SIDE_MAX_CHARS`` characters are used, up to the last complete line or sentence.
    """
    if len(text) > SIDE_MAX_CHARS:
        head = text[:SIDE_MAX_CHARS]
        text = head[: max(head.rfind("\n"), head.rfind(". "), head.rfind("。")) + 1] or head
    if "`" in text or "~" in text:
        text = _FENCE.sub("\n", text)
    text = without_recalled(text)
    lines: list[tuple[str, bool]] = []
    is_open = False
    for raw in text.splitlines():
        line = raw.strip()
        if not line or _QUOTED_OR_TABLE.search(line) or _CODE_LINE.search(line):
            is_open = False
            continue
        mark = _LIST_MARK.match(line)
        if mark is None and is_open and line[0].islower():
            before, is_item = lines[-1]
            lines[-1] = (f"{before} {line}", is_item)
        else:
            lines.append((line[mark.end() :] if mark else line, mark is not None))
        is_open = _ENDS_SENTENCE.search(line) is None
    return lines


def without_recalled(text: str) -> str:
    """Return ``text`` without ``<memory>`` blocks. Such blocks are recalled memories that were pasted into the text."""
    return _RECALLED.sub("\n", text) if "<" in text else text


def sentences(text: str, *, with_lists: bool) -> list[str]:
    """Return the first ``SENTENCES_MAX`` sentences of the prose in ``text``, with white space reduced to single spaces.

    If ``with_lists`` is False, headings and list items are omitted.
    """
    found: list[str] = []
    for line, is_item in own_lines(text):
        if is_item and not with_lists:
            continue
        found.extend(_split(line))
        if len(found) >= SENTENCES_MAX:
            return found[:SENTENCES_MAX]
    return found


def shorten(sentence: str, max_chars: int) -> str:
    """Return ``sentence``, cut to ``max_chars`` characters plus "…" if it is longer; cut between words if possible."""
    if len(sentence) <= max_chars:
        return sentence
    head = sentence[:max_chars]
    space = head.rfind(" ")
    return (head[:space] if space > max_chars // 2 else head).rstrip(" ,;:-–—(") + ELLIPSIS


def plain(text: str) -> str:
    """Return the text without surrounding white space, and with all other white space reduced to single spaces."""
    return _SPACE.sub(" ", text).strip()


def _split(line: str) -> list[str]:
    from sentencex import segment

    parts: list[str] = []
    for part in (plain(piece) for piece in segment(_language(line), line)):
        if parts and _NUMBER_AT_END.search(parts[-1]) and _COUNTED_BEHIND.match(part):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return [piece for part in parts for piece in _NO_ABBREVIATION.split(part) if any(char.isalnum() for char in piece)]


def _language(line: str) -> str:
    if line.isascii():
        return "en"
    if _KANA.search(line):
        return "ja"
    return "zh" if _HAN.search(line) else "en"
