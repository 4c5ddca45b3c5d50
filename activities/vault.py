"""How secrets lie in the database: encrypted with a key made from the installation's own, which is a file of the
workers' (``PERDURE_KEY_FILE``). Who has the database, or a backup of it, has no value."""

from __future__ import annotations

from hashlib import blake2b

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey
from nacl.secret import Aead

from perdure.model.errors import CannotOpen
from perdure.store.secrets import Box


class Vault:
    """Encrypts and opens values (XChaCha20-Poly1305). A box opens only under the project and name it was made for,
    so that rows cannot be passed off as one another."""

    def __init__(self, private_key: bytes):
        self._aead = Aead(blake2b(key=private_key, digest_size=32, person=b"perdure secrets").digest())
        public = bytes(PrivateKey(private_key).public_key)
        self.fingerprint = blake2b(public, digest_size=8).hexdigest()
        """Of the key: a box that another one made is told from a damaged one."""

    def lock(self, project: str, name: str, value: str) -> Box:
        return Box(bytes(self._aead.encrypt(value.encode(), _label(project, name))), self.fingerprint)

    def unlock(self, project: str, name: str, box: Box) -> str:
        """
        Raises:
            CannotOpen: another key made the box, or it is damaged.
        """
        again = f"`perdure secret set {name}` gives it a value again"
        if box.key != self.fingerprint:
            raise CannotOpen(
                f"the secret {name} was set under another key than the one in this worker's key file",
                hint=f"bring that file back (PERDURE_KEY_FILE); or {again}",
            )
        try:
            return self._aead.decrypt(box.content, _label(project, name)).decode()
        except (CryptoError, ValueError):
            raise CannotOpen(f"the secret {name} is damaged in the database", hint=again) from None


def _label(project: str, name: str) -> bytes:
    return f"{project}/{name}".encode()
