"""Random characters for made-up secrets."""

import random
import string


def drawn(chance: random.Random, alphabet: str, length: int) -> str:
    """Return a text of random characters of an alphabet."""
    return "".join(chance.choices(alphabet, k=length))


def card_number(chance: random.Random, prefix: str = "4", length: int = 16, separator: str = "") -> str:
    """Return a number with a Luhn check digit, in groups of four if there is a separator."""
    body = prefix + drawn(chance, string.digits, length - len(prefix) - 1)
    total = sum(
        int(digit) if place % 2 else sum(divmod(2 * int(digit), 10)) for place, digit in enumerate(reversed(body))
    )
    number = f"{body}{-total % 10}"
    return separator.join(number[at : at + 4] for at in range(0, length, 4)) if separator else number
