"""Opens what clients sealed. Called only where a value is about to be handed to an agent."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from perdure.model.errors import UserError
from perdure.spec.effective import Sealed


def public_key(private_key: bytes) -> str:
    """The half that clients seal with, as base64."""
    return b64encode(bytes(PrivateKey(private_key).public_key)).decode()


def opened(private_key: bytes, value: str | Sealed, what: str) -> str:
    """The plain value; ``what`` names it in the error, which never holds the value itself.

    Raises:
        UserError: it was sealed for another installation, or damaged.
    """
    if isinstance(value, str):
        return value
    try:
        return SealedBox(PrivateKey(private_key)).decrypt(b64decode(value.sealed, validate=True)).decode()
    except (CryptoError, NotBase64, UnicodeDecodeError):
        raise UserError(
            f"{what} cannot be opened: it was sealed for another installation",
            hint="submit the run again with this installation's perdure",
        ) from None
