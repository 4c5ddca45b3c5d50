"""Secrets on their way in, at rest, on their way out, and into jobs."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from nacl.public import PrivateKey
from sqlalchemy import text
from temporalio.exceptions import ApplicationError

from activities.doctor import Doctor
from activities.opening import opened
from activities.plan import Planning
from activities.runs import Runs
from activities.seal import public_key
from activities.secrets import Secrets
from perdure.client.seal import Recipient, seal
from perdure.model import api
from perdure.model.messages import ResolveRun
from perdure.model.statuses import JobReason
from perdure.spec.effective import RegistryAuth, Sealed, SecretRef
from tests.activities.bench import Bench

VALUE = "hunter2-\u00fc\n-----END KEY-----"


async def put(bench: Bench, name: str, value: str, project: str = "main") -> api.SecretRow:
    sealed = seal(public_key(bench.world.private_key), value)
    wish = api.SetSecret(project=project, name=name, sealed=sealed, user="ann")
    return await bench.call(Secrets(bench.world).set_secret, wish)


async def got(bench: Bench, name: str, project: str = "main") -> str:
    recipient = Recipient()
    question = api.GetSecret(project=project, name=name, recipient=recipient.public_key)
    return recipient.opened((await bench.call(Secrets(bench.world).get_secret, question)).sealed)


async def delete(bench: Bench, name: str) -> None:
    await bench.call(Secrets(bench.world).delete_secret, api.DeleteSecret(project="main", name=name))


async def test_a_value_comes_back_as_it_was_set_and_is_listed_without(bench: Bench):
    await put(bench, "key", "before")
    await put(bench, "key", VALUE)
    assert await got(bench, "key") == VALUE
    listed = await bench.call(Secrets(bench.world).list_secrets, api.SecretQuery(project="main"))
    assert [(row.name, row.updated_by) for row in listed.secrets] == [("key", "ann")]
    assert VALUE not in listed.model_dump_json()
    for _ in range(2):
        await delete(bench, "key")
    with pytest.raises(ApplicationError, match="there is no secret key in project main"):
        await got(bench, "key")


async def test_the_database_holds_no_value_and_the_key_is_not_in_it(bench: Bench):
    await put(bench, "key", VALUE)
    async with bench.world.database.transaction() as tx:
        row = (await tx.execute(text("SELECT * FROM secrets"))).one()
    assert VALUE.encode() not in row.box
    assert bench.world.private_key not in row.box
    assert bench.world.private_key.hex() not in str(row)


async def test_a_row_cannot_be_passed_off_as_another(bench: Bench):
    for name, project in (("mine", "main"), ("theirs", "main"), ("mine", "other")):
        await put(bench, name, f"{name} of {project}", project)
    await bench.execute("UPDATE secrets SET box = (SELECT box FROM secrets WHERE name = 'theirs')")
    for project in ("main", "other"):
        with pytest.raises(ApplicationError, match="the secret mine is damaged in the database") as caught:
            await got(bench, "mine", project)
        assert "theirs of main" not in str(caught.value)


async def test_a_worker_with_another_key_says_so(bench: Bench):
    await put(bench, "key", VALUE)
    assert [check.ok for check in await Doctor(bench.world)._secrets()] == [True]
    bench.world = replace(bench.world, private_key=bytes(PrivateKey.generate()))
    with pytest.raises(ApplicationError, match="set under another key") as caught:
        await got(bench, "key")
    (closed,) = await Doctor(bench.world)._secrets()
    assert [finding.split(" than ")[0] for finding in closed.findings] == [
        "project main: the secret key was set under another key"
    ]
    assert "PERDURE_KEY_FILE" in caught.value.details[0].hint


@pytest.mark.parametrize("sealed", ["", "no base64!", "ü", b64encode(b"x" * 80).decode()])
async def test_what_was_not_sealed_for_us_is_refused(bench: Bench, sealed: str):
    wish = api.SetSecret(project="main", name="key", sealed=sealed)
    with pytest.raises(ApplicationError, match="the value of the secret key cannot be opened") as caught:
        await bench.call(Secrets(bench.world).set_secret, wish)
    assert caught.value.non_retryable


@pytest.mark.parametrize(
    "recipient", ["", "no base64!", "ü", b64encode(b"short").decode(), b64encode(b"\0" * 32).decode()]
)
async def test_no_value_leaves_for_what_is_no_key(bench: Bench, recipient: str):
    await put(bench, "key", VALUE)
    question = api.GetSecret(project="main", name="key", recipient=recipient)
    with pytest.raises(ApplicationError, match="not an X25519 public key") as caught:
        await bench.call(Secrets(bench.world).get_secret, question)
    assert caught.value.non_retryable


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a b", "x", "'a b' is not the name of a secret"),
        ("x" * 201, "x", "is not the name of a secret"),
        ("key", "", "the value of the secret key is empty"),
        ("key", "ä" * 5001, "has 5001 characters, and 5000 are the most"),
        ("key", "a\0b", "has a NUL"),
    ],
)
async def test_a_raw_client_is_held_to_the_same_rules(bench: Bench, name: str, value: str, message: str):
    with pytest.raises(ApplicationError, match=message):
        await put(bench, name, value)


async def test_the_longest_value_and_name_are_kept(bench: Bench):
    await put(bench, "x" * 200, "ä" * 5000)
    assert await got(bench, "x" * 200) == "ä" * 5000


async def test_a_job_is_given_its_secrets_and_nothing_else_is(bench: Bench):
    await put(bench, "hf-token", "s3cret")
    await put(bench, "2nd", "third")
    env = {"URL": ("https://u:", SecretRef(secret="hf-token"), "@", SecretRef(secret="2nd")), "PLAIN": "x"}
    step = await bench.running(await bench.instance(), 'echo "$URL $PLAIN"', env=env)
    assert "s3cret" not in (await bench.row(step)).effective.model_dump_json()
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == b"https://u:s3cret@third x\n"


async def test_a_registry_login_may_refer_to_secrets(bench: Bench):
    await put(bench, "password", "s3cret")
    auth = RegistryAuth(
        username=Sealed(sealed=seal(public_key(bench.world.private_key), "me")),
        password=(SecretRef(secret="password"), "!"),
    )
    step = await bench.job(await bench.instance(), "true", registry_auth=auth)
    values = await opened(bench.world, (await bench.row(step)).effective)
    assert (values.registry_username, values.registry_password) == ("me", "s3cret!")
    assert "s3cret" not in repr(values)


async def test_a_run_is_refused_where_it_refers_to_what_its_project_does_not_have(bench: Bench):
    await put(bench, "hf-token", "s3cret")
    await put(bench, "elsewhere", "s3cret", "other")
    configuration = {
        "type": "task",
        "commands": ["true"],
        "env": ["GOOD=${{ secrets.hf-token }}", "BAD=x${{ secrets.hf-tokn }}"],
        "image": "busybox",
        "registry_auth": {"username": "me", "password": "${{ secrets.elsewhere }}"},
    }
    plan = await bench.call(
        Planning(bench.world).plan, api.PlanRequest(project="main", configuration=configuration)
    )
    wanted = ResolveRun(
        workflow_id="run/main/raw",
        run_id=uuid4(),
        request={"configuration": configuration},
        submitted_at=datetime.now(UTC),
    )
    resolved = await bench.call(Runs(bench.world).resolve_run, wanted)
    assert resolved.policy is None
    for errors in (plan.errors, resolved.errors):
        assert sorted((one.path, one.message, one.hint) for one in errors) == [
            (
                "env[1]",
                "refers to secrets.hf-tokn, which project main does not have",
                "did you mean secrets.hf-token?",
            ),
            (
                "registry_auth.password",
                "refers to secrets.elsewhere, which project main does not have",
                "set it with `perdure secret set elsewhere`",
            ),
        ]


async def test_a_missing_secret_ends_the_job_before_its_host_hears_of_it(bench: Bench):
    await put(bench, "there", "s3cret")
    env = {name: (SecretRef(secret=name),) for name in ("there", "GONE", "gone-too")}
    instance = await bench.instance()
    step = await bench.job(instance, "true", env=env)
    outcome = await bench.submit(step)
    assert outcome.reason is JobReason.TERMINATED_BY_SERVER
    assert outcome.message == "it needs the secrets GONE, gone-too, which project main does not have (any more)"
    assert await bench.tasks(instance) == []


@pytest.mark.parametrize(
    ("value", "times", "message"),
    [
        ("x" * 5000, 27, "the value of A in env is larger than 128 KiB with its secrets in it"),
        ("a\0b", 1, "the value of A in env has a NUL character, which no process can be given"),
    ],
)
async def test_what_no_process_can_be_given_ends_the_job_with_the_reason(
    bench: Bench, value: str, times: int, message: str
):
    await put(bench, "key", "x" * 5000)
    sealed = Sealed(sealed=seal(public_key(bench.world.private_key), value))
    secret = SecretRef(secret="key")
    env = {"A": tuple(secret if "x" in value else sealed for _ in range(times))}
    outcome = await bench.submit(await bench.job(await bench.instance(), "true", env=env))
    assert (outcome.reason, outcome.message) == (JobReason.TERMINATED_BY_SERVER, message)


async def test_a_secret_deleted_while_its_job_waits_for_the_host_ends_the_job(bench: Bench):
    await put(bench, "key", "s3cret")
    step = await bench.job(await bench.instance(), "true", env={"KEY": (SecretRef(secret="key"),)})
    assert (await bench.submit(step)).reason is None
    await delete(bench, "key")
    outcome = await bench.start(step)
    assert outcome.reason is JobReason.TERMINATED_BY_SERVER
    assert "the secret key, which project main does not have" in outcome.message
    assert not (await bench.remove(step)).unreachable


async def test_a_job_that_starts_later_gets_the_later_value(bench: Bench):
    instance = await bench.instance()
    for value in ("before", "after"):
        await put(bench, "key", value)
        step = await bench.running(instance, 'echo "$KEY"', env={"KEY": (SecretRef(secret="key"),)})
        assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
        assert await bench.log(step) == f"{value}\n".encode()
        await bench.remove(step)
        await bench.execute("DELETE FROM holdings")
