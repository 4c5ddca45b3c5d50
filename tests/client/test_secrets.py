"""What the client does with secrets, against activities as a worker has them, without Temporal."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.client.seal import Recipient, seal
from perdure.client.secrets import Secrets
from perdure.model import api
from perdure.model.errors import CannotOpen, NotFound, UserError
from tests.cli.conftest import a_secret


class Worker:
    """Answers calls, and keeps all that went over the wire."""

    def __init__(self) -> None:
        self.key = Recipient()
        self.values: dict[str, str] = {}
        self.wire: list[str] = []

    async def hello(self) -> api.Hello:
        return api.Hello.model_construct(public_key=self.key.public_key)

    async def __call__(self, call: Any, request: Any) -> Any:
        answer = self._answer(request)
        self.wire += [request.model_dump_json(), answer.model_dump_json() if answer else ""]
        return answer

    def _answer(self, request: Any) -> Any:
        match request:
            case api.SetSecret():
                self.values[request.name] = self.key.opened(request.sealed)
                return a_secret(request.name)
            case api.GetSecret():
                return api.SecretValue(sealed=seal(request.recipient, self.values[request.name]))
            case api.SecretQuery():
                return api.SecretRows(secrets=tuple(map(a_secret, self.values)))
            case _:
                return self.values.pop(request.name, None) and None


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def secrets(worker: Worker) -> Secrets:
    return Secrets(worker, worker.hello)  # type: ignore[arg-type]


async def test_a_value_travels_sealed_both_ways(worker: Worker, secrets: Secrets):
    await secrets.set("main", "key", "hunter2-ü")
    assert worker.values == {"key": "hunter2-ü"}
    assert await secrets.get("main", "key") == "hunter2-ü"
    assert "hunter2" not in "".join(worker.wire)


async def test_every_question_has_a_key_of_its_own(worker: Worker, secrets: Secrets):
    await secrets.set("main", "key", "x")
    worker.wire.clear()
    for _ in range(2):
        await secrets.get("main", "key")
    assert len(set(worker.wire)) == 4


async def test_an_answer_for_somebody_else_is_refused(worker: Worker, secrets: Secrets):
    await secrets.set("main", "key", "x")
    with pytest.raises(CannotOpen, match="sealed for somebody else"):
        Recipient().opened(seal(worker.key.public_key, "x"))


async def test_what_cannot_be_a_secret_never_leaves(worker: Worker, secrets: Secrets):
    for name, value in (("a b", "x"), ("key", ""), ("key", "x" * 5001), ("key", "\udcff"), ("key\n", "x")):
        with pytest.raises(UserError):
            await secrets.set("main", name, value)
    assert worker.wire == []


async def test_deleting_what_is_not_there_is_an_error(worker: Worker, secrets: Secrets):
    await secrets.set("main", "key", "x")
    await secrets.delete("main", "key")
    with pytest.raises(NotFound, match="there is no secret key in project main"):
        await secrets.delete("main", "key")
