from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack import Stack, fresh


@pytest.fixture
def stack() -> Iterator[Stack]:
    """An embedded stack that has not been started; nothing of it may be left at the end."""
    with fresh() as one:
        yield one
