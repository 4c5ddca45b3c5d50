"""From a configuration to every value in force."""

from __future__ import annotations

import json

import pytest

from perdure import spec
from perdure.model.messages import CodeRef
from perdure.model.policy import Retry
from perdure.model.resources import GpuNeed, Requirements, Span
from perdure.model.statuses import RetryEvent, StartupOrder, StopCriteria
from perdure.model.timing import Timing
from perdure.spec.effective import EffectiveRun, InstanceMount, Mapping, Sealed
from perdure.spec.shown import brief
from tests.spec.support import RUN_ID, SUBMITTED, mistakes, resolve, task


def test_the_defaults_are_the_documented_ones() -> None:
    run = resolve(task(""), user="ann")
    policy = run.policy
    assert (policy.run_id, policy.project, policy.name, policy.user) == (RUN_ID, "main", "hello", "ann")
    assert (policy.kind, policy.submitted_at, policy.nodes, policy.replicas) == ("task", SUBMITTED, 1, 1)
    assert (policy.startup_order, policy.stop_criteria) == (StartupOrder.ANY, StopCriteria.ALL_DONE)
    assert (policy.retry, policy.priority) == (None, 0)
    assert (policy.idle_duration, policy.stop_duration, run.max_duration) == (300, 300, None)
    assert policy.requirements == Requirements()
    assert (run.image, run.entrypoint, run.env, run.ports) == (None, None, {}, ())
    assert run.argv == ("/bin/bash", "-c", "x")


def test_everything_written_is_in_force() -> None:
    run = resolve(
        spec.load_yaml(
            """
type: task
name: hello
image: python:3.12
entrypoint: python -u
commands: [train.py, --fast]
user: 1000:50
working_dir: /app
privileged: true
nodes: 4
startup_order: workers-first
stop_criteria: master-done
priority: 50
max_duration: 2h
stop_duration: 10m
stop_grace: 30s
idle_duration: 1h
env: {A: 1}
ports: [8000, "*:9000"]
volumes: ["/mnt/data:/data", {instance_path: /x, path: /y, optional: true}]
retry: {on_events: [no-capacity, error], duration: 30m, max_attempts: 3}
tags: {team: ml}
backends: [local, ssh]
regions: [eu]
instance_types: [big]
fleets: [main/a, b]
spot_policy: auto
max_price: 2.5
creation_policy: reuse
resources:
  cpu: arm:8..16
  memory: 16GB..32GB
  disk: 200GB..
  shm_size: 512MB
  gpu: nvidia:A100,H100:40GB..:2..4
"""
        ),
        code=(CodeRef(sha256="0" * 64, size=1),),
    )
    assert run.policy.retry == Retry(on=(RetryEvent.NO_CAPACITY, RetryEvent.ERROR), duration=1800, max_attempts=3)
    assert run.policy.timing == Timing(stop_grace=30)
    assert (run.policy.idle_duration, run.policy.stop_duration, run.max_duration) == (3600, 600, 7200)
    assert (run.policy.nodes, run.policy.priority) == (4, 50)
    assert run.policy.startup_order is StartupOrder.WORKERS_FIRST
    assert run.policy.stop_criteria is StopCriteria.MASTER_DONE
    assert run.policy.requirements == Requirements(
        cpu=Span(min=8, max=16),
        cpu_arch="arm",
        memory_mib=Span(min=16384, max=32768),
        disk_mib=Span(min=204800),
        gpu=GpuNeed(vendor="nvidia", names=("A100", "H100"), count=Span(min=2, max=4), memory_mib=Span(min=40960)),
        shm_mib=512,
        max_price=2.5,
        spot=None,
        backends=("local", "remote"),
        regions=("eu",),
        instance_types=("big",),
        fleets=("a", "b"),
        reuse_only=True,
        image="python:3.12",
        firm=("cpu", "memory", "shm_size", "gpu", "disk", "idle_duration"),
    )
    assert run.argv == ("python", "-u", "train.py", "--fast")
    assert run.entrypoint == ("python", "-u")
    assert (run.user, run.working_dir, run.privileged) == ("1000:50", "/app", True)
    assert (run.shm_mib, run.cpu_limit, run.memory_limit_mib) == (512, 16, 32768)
    assert run.ports == (Mapping(container=8000, local=8000), Mapping(container=9000))
    assert run.mounts == (
        InstanceMount(instance_path="/mnt/data", path="/data"),
        InstanceMount(instance_path="/x", path="/y", optional=True),
    )
    assert run.tags == {"team": "ml"}
    assert len(run.code) == 1


def test_an_effective_run_survives_the_wire() -> None:
    document = task("env: [A=1, B]\nresources: {gpu: A100}")
    run = resolve(document, sealed={"B": "Ym94"})
    assert EffectiveRun.model_validate_json(run.model_dump_json()) == run.but(values=())
    assert json.loads(json.dumps(run.configuration)) == dict(document)


@pytest.mark.parametrize(
    ("text", "retry"),
    [
        ("retry: true", Retry(on=(RetryEvent.NO_CAPACITY, RetryEvent.INTERRUPTION, RetryEvent.ERROR))),
        ("retry: {}", Retry(on=(RetryEvent.NO_CAPACITY, RetryEvent.INTERRUPTION, RetryEvent.ERROR))),
        ("retry: {on_events: [error, error]}", Retry(on=(RetryEvent.ERROR,))),
        ("retry: {on_events: [error], duration: 0}", Retry(on=(RetryEvent.ERROR,), duration=0)),
        ("retry: false", None),
        ("retry: no", None),
        ("retry:", None),
    ],
)
def test_retry(text: str, retry: Retry | None) -> None:
    assert resolve(task(text)).policy.retry == retry


@pytest.mark.parametrize(
    ("text", "idle", "stop", "longest"),
    [
        ("idle_duration: off\nstop_duration: off\nmax_duration: off", None, None, None),
        ("idle_duration: -1", None, 300, None),
        ("idle_duration: 0\nstop_duration: 0\nmax_duration: 0", 0, 0, 0),
        ("idle_duration: true\nstop_duration: true\nmax_duration: true", 300, 300, None),
        ("idle_duration:\nstop_duration:\nmax_duration:", 300, 300, None),
    ],
)
def test_durations_are_unset_off_or_a_value(
    text: str, idle: float | None, stop: float | None, longest: float | None
) -> None:
    run = resolve(task(text))
    assert (run.policy.idle_duration, run.policy.stop_duration, run.max_duration) == (idle, stop, longest)


def test_the_default_bound_of_a_stop_is_that_of_the_installation() -> None:
    assert resolve(task(""), timing=Timing(stop_duration=7)).policy.stop_duration == 7


def test_only_what_was_written_is_firm() -> None:
    assert resolve(task("")).policy.requirements.firm == ()
    assert resolve(task("resources: {gpu: 1}")).policy.requirements.firm == ("gpu",)


def test_values_from_the_users_machine_stay_sealed() -> None:
    run = resolve(task("env: [A=1, B, C=2]"), sealed={"B": "Qg==", "C": "Qw==", "D": "RA=="})
    assert run.env == {"A": "1", "B": Sealed(sealed="Qg=="), "C": Sealed(sealed="Qw=="), "D": Sealed(sealed="RA==")}
    assert "Qg==" not in str(run.values)


def test_a_variable_may_take_its_value_from_one_of_another_name() -> None:
    assert resolve(task("env: {A: {key: B}}"), sealed={"B": "Qg=="}).env == {"A": Sealed(sealed="Qg==")}


def test_what_no_process_can_be_given_is_refused() -> None:
    big, huge = "x" * 200_000, {f"A{n}": "x" * 100_000 for n in range(30)}
    assert [error.path for error in mistakes({"type": "task", "commands": ["x"], "env": [f"A={big}"]})] == [
        "env[0]"
    ]
    assert [error.path for error in mistakes({"type": "task", "commands": ["x"], "env": huge})] == ["env"]
    assert [error.path for error in mistakes({"type": "task", "commands": [f"echo {big}"]})] == ["commands"]
    (sealed,) = mistakes({"type": "task", "commands": ["x"], "env": ["A"]}, sealed={"A": "x" * 300_000})
    assert sealed.path == "env[0]"
    (argument,) = mistakes({"type": "task", "commands": ["x ${{ run.args }}"]}, arguments=("a\0",))
    assert argument.path == "commands"


def test_the_plan_shows_every_value_in_order() -> None:
    rows = {
        one.label: one.value
        for one in brief(
            resolve(task("retry: true\nmax_duration: 2h\nresources: {gpu: A100:40GB:2}"), user="ann").values
        )
    }
    assert list(rows)[:12] == [
        "project",
        "submitted by",
        "type",
        "resources",
        "spot policy",
        "max price",
        "retry policy",
        "creation policy",
        "idle duration",
        "max duration",
        "stop duration",
        "stop grace",
    ]
    assert rows["resources"] == "cpu=2.. mem=8GB.. disk=100GB.. gpu=nvidia:A100:40GB:2"
    assert rows["retry policy"] == "no-capacity, interruption, error for 1h"
    assert (rows["max duration"], rows["idle duration"], rows["stop grace"]) == ("2h", "5m", "10s")


def test_offers_are_asked_for_in_the_same_words() -> None:
    found = spec.offer_requirements({"resources": {"gpu": "A100"}, "spot_policy": "auto", "max_price": "2"})
    assert found.gpu is not None
    assert (found.gpu.names, found.spot, found.max_price, found.firm) == (("A100",), None, 2, ("gpu",))
    assert spec.offer_requirements({}) == Requirements()


def test_a_fleet_of_this_machine() -> None:
    fleet = spec.parse_fleet(
        spec.load_yaml(
            "type: fleet\nname: local\nnodes: 0..4\nplacement: cluster\nbackends: [local]\nidle_duration: off"
        )
    )
    assert fleet.nodes is not None
    assert (fleet.nodes.min, fleet.nodes.max, fleet.placement, fleet.idle_duration) == (0, 4, "cluster", "off")
    assert spec.fleet_requirements(fleet).backends == ("local",)
