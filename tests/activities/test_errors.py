"""Expected errors cross Temporal as one kind of failure, and come back as what they were."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError

from activities.errors import translated
from perdure.model.api import Problem
from perdure.model.errors import FieldError, InvalidConfiguration, NotFound, PerdureError, ProviderThrottled
from perdure.model.problems import error_of


async def crossed(error: Exception) -> ApplicationError:
    @translated
    async def step() -> None:
        raise error

    with pytest.raises(ApplicationError) as caught:
        await step()
    return caught.value


async def test_an_error_keeps_its_code_words_and_hint() -> None:
    failure = await crossed(NotFound("no such run", hint="see perdure ps"))
    (problem,) = failure.details
    back = error_of(Problem.model_validate(problem))
    assert (type(back), back.message, back.hint) == (NotFound, "no such run", "see perdure ps")
    assert (failure.type, failure.non_retryable) == ("not-found", True)


async def test_only_what_may_pass_is_retried() -> None:
    assert not (await crossed(ProviderThrottled("slow down"))).non_retryable


async def test_every_field_error_crosses() -> None:
    errors = [FieldError(path="nodes", message="must be at least 1", line=3), FieldError(path="", message="empty")]
    (problem,) = (await crossed(InvalidConfiguration(errors))).details
    back = error_of(Problem.model_validate(problem))
    assert isinstance(back, InvalidConfiguration)
    assert back.errors == errors


def test_a_code_of_a_newer_worker_is_still_an_error() -> None:
    back = error_of(Problem(code="brand-new", message="something else"))
    assert (type(back), back.message) == (PerdureError, "something else")


async def test_a_bug_is_no_expected_error() -> None:
    @translated
    async def step() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        await step()
