"""Whose a GPU is, by its name: enough to say which image it needs, and no list of what can be had."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAMES: dict[str, re.Pattern[str]] = {
    vendor: re.compile(names, re.IGNORECASE | re.VERBOSE)
    for vendor, names in {
        "nvidia": r"""
            (GTX|RTX|Quadro|Titan|Tesla)[ -]?.+
            | A(2|10|10G|16|30|40|100|800) | A(2000|4000|4500|5000|5500|6000)
            | G?[BH](20|100|200|300)(NVL|PCIE|SXM)? | GB10 | H800
            | L(4|20|40|40S) | T(4|4G) | V100(S)? | P(4|6|40|100) | K(20|40|80) | M(4|40|60)
            """,
        "amd": r"(Instinct[ -]?)? MI[0-9]{1,3}[A-Z]? | Radeon.+ | RX[ -]?[0-9]+.* | W[67][0-9]00X?",
        "google": r"v[0-9]+[a-z]* -[0-9]+ | v[0-9]+(p|e|litepod)?",
        "intel": r"Gaudi[ ]?[0-9]? | (Max|Flex)[ -]?[0-9]+ | Arc.+",
        "tenstorrent": r"n(150|300)[ads]? | p(100|150|300)[abc] | tt-.+ | (Wormhole|Blackhole|Grayskull).*",
    }.items()
}


def vendor_of(names: Iterable[str]) -> str | None:
    """The vendor of those that are known here; None if none is, or they have several."""
    found = {_vendor(name) for name in names} - {None}
    return found.pop() if len(found) == 1 else None


def _vendor(name: str) -> str | None:
    return next((vendor for vendor, known in _NAMES.items() if known.fullmatch(name)), None)
