"""Opens what clients sealed. Called only where a value is about to be handed to an agent."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from perdure.model.errors import UserError
from perdure.spec.effective import SecretRef, Value


def public_key(private_key: bytes) -> str:
    """The half that clients seal with, as base64."""
    return b64encode(bytes(PrivateKey(private_key).public_key)).decode()


def opened(private_key: bytes, value: Value | SecretRef, what: str) -> str:
    """The plain value; ``what`` names it in the error, which never holds the value itself.

    Raises:
        UserError: it was sealed for another installation, or damaged; or there is no such secret.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "".join(opened(private_key, piece, what) for piece in value)
    if isinstance(value, SecretRef):
        raise UserError(f"{what} needs the secret {value.secret}, which there is not")
    try:
        return SealedBox(PrivateKey(private_key)).decrypt(b64decode(value.sealed, validate=True)).decode()
    except (CryptoError, NotBase64, UnicodeDecodeError):
        raise UserError(
            f"{what} cannot be opened: it was sealed for another installation",
            hint="submit the run again with this installation's perdure",
        ) from None
