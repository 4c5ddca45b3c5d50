"""What a run takes along: local files, packed byte for byte and named by the hash of the archive.

::

    parts = find(configuration, folder)      # what would go: files, bytes, what is left out
    check_limit(parts, hello.code_limit)
    with pack(part) as archive:              # a tar, its hash
        await upload(archive, hello)
"""

from __future__ import annotations

from perdure.client.code.archive import PackedCode, pack
from perdure.client.code.finding import Part, check_limit, find
from perdure.client.code.uploading import upload

__all__ = ["PackedCode", "Part", "check_limit", "find", "pack", "upload"]
