"""Seals what only a worker may read: environment values, registry passwords and secrets on their way through
history; and opens what a worker sealed for this client alone."""

from __future__ import annotations

from base64 import b64decode, b64encode

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from perdure.model.errors import CannotOpen


def seal(public_key: str, value: str) -> str:
    """``value`` for the holder of the private key alone, as base64. ``public_key``: X25519, base64, such as
    ``Hello.public_key``.

    Raises:
        ValueError: it is not one.
    """
    key = b64decode(public_key, validate=True)
    if len(key) != PublicKey.SIZE:
        raise ValueError(f"a public key of {len(key)} bytes")
    try:
        return b64encode(SealedBox(PublicKey(key)).encrypt(value.encode())).decode()
    except CryptoError:
        raise ValueError("not a point of the curve that keeps anything secret") from None


class Recipient:
    """A key pair for one answer. It is never stored: what was sealed for it can be read by nobody else, and later
    by nobody at all."""

    def __init__(self) -> None:
        self._key = PrivateKey.generate()
        self.public_key = b64encode(bytes(self._key.public_key)).decode()

    def opened(self, sealed: str) -> str:
        """
        Raises:
            CannotOpen: it was not sealed for this recipient.
        """
        try:
            return SealedBox(self._key).decrypt(b64decode(sealed, validate=True)).decode()
        except (CryptoError, ValueError):
            raise CannotOpen("the worker's answer cannot be opened: it was sealed for somebody else") from None
