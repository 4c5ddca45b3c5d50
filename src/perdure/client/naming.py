"""Names for runs whose writer gave none."""

from __future__ import annotations

import secrets

_WHAT = ("brave", "calm", "clever", "eager", "fair", "gentle", "happy", "keen", "kind", "lively", "lucky", "quick")
_WHO = ("badger", "crane", "eagle", "falcon", "hare", "heron", "ibex", "lynx", "marten", "otter", "panda", "raven")


def random_name() -> str:
    """``swift-otter-417``: easy to say, and unlikely to be taken."""
    return f"{secrets.choice(_WHAT)}-{secrets.choice(_WHO)}-{secrets.randbelow(900) + 100}"
