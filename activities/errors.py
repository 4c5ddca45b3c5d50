"""Expected errors, translated at the edge: inside an activity the one tree, outside an ``ApplicationError``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.model.errors import PerdureError
from perdure.model.problems import problem_of

LONGEST = 1000
"""Characters of an unexpected error: of one that is over 4 KiB with its traceback, Temporal keeps nothing."""

P = ParamSpec("P")
T = TypeVar("T")


def application_error(error: PerdureError) -> ApplicationError:
    """Of type ``error.code``, with a ``Problem`` as its details; retried only if trying again may help."""
    return ApplicationError(error.message, problem_of(error), type=error.code, non_retryable=not error.retryable)


def translated(step: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """An activity whose expected errors leave it as ``ApplicationError``. Others leave as they are, or cut short
    where Temporal would say nothing of them but their size: it retries them, and a mended worker picks the step up.
    """

    @wraps(step)
    async def outside(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await step(*args, **kwargs)
        except PerdureError as error:
            raise application_error(error) from error
        except Exception as error:
            if len(words := str(error)) <= LONGEST:
                raise
            activity.logger.exception("%s failed", step.__name__)
            raise RuntimeError(f"{type(error).__name__}: {words[:LONGEST]} …") from None

    return outside
