"""Seals what only a worker may read: environment values and registry passwords on their way through history."""

from __future__ import annotations

from base64 import b64decode, b64encode

from nacl.public import PublicKey, SealedBox


def seal(public_key: str, value: str) -> str:
    """``value`` for the holder of the private key alone, as base64. ``public_key`` is ``Hello.public_key``."""
    box = SealedBox(PublicKey(b64decode(public_key)))
    return b64encode(box.encrypt(value.encode())).decode()
