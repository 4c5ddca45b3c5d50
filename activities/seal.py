"""Opens what clients sealed. Called only where a value is about to be kept, encrypted, or handed to an agent."""

from __future__ import annotations

from base64 import b64decode, b64encode

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from perdure.model.errors import CannotOpen


def public_key(private_key: bytes) -> str:
    """The half that clients seal with, as base64."""
    return b64encode(bytes(PrivateKey(private_key).public_key)).decode()


def unsealed(private_key: bytes, sealed: str, what: str) -> str:
    """The plain value; ``what`` names it in the error, which never holds the value itself.

    Raises:
        CannotOpen: it was sealed for another installation, or damaged.
    """
    try:
        return SealedBox(PrivateKey(private_key)).decrypt(b64decode(sealed, validate=True)).decode()
    except (CryptoError, ValueError):
        raise CannotOpen(
            f"{what} cannot be opened: it was sealed for another installation, or is damaged",
            hint="seal it with the public key that this installation's `hello` gives, as its perdure does",
        ) from None
