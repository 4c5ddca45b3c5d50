"""The public Python API. Needs no worker's code: it may live in any environment.

``PerdureClient`` connects and calls; ``code`` packs what a run takes along; ``seal`` hides values; ``inputs``
collects both for a configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.client.client import PerdureClient as PerdureClient

__all__ = ["PerdureClient"]


def __getattr__(name: str) -> Any:
    """``PerdureClient`` on first use: importing Temporal takes a quarter of a second."""
    if name == "PerdureClient":
        from perdure.client.client import PerdureClient

        return PerdureClient
    raise AttributeError(name)
