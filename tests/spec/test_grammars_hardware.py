"""CPUs, GPUs and disks: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from perdure.spec.grammar import hardware
from tests.spec.support import refused


@pytest.mark.parametrize(
    ("written", "arch", "low", "high"),
    [
        (4, None, 4, 4),
        ("4..8", None, 4, 8),
        ("x86:16", "x86", 16, 16),
        ("arm:8..", "arm", 8, None),
        ("8:arm", "arm", 8, 8),
        ("ARM", "arm", 2, None),
        (0, None, 0, 0),
        ({"min": 1, "max": 2}, None, 1, 2),
        ({"arch": "arm", "count": "2.."}, "arm", 2, None),
    ],
)
def test_cpus(written: object, arch: str | None, low: int, high: int | None) -> None:
    found = hardware.ResourcesSpec.model_validate({"cpu": written}).cpu
    assert (found.arch, found.count.min, found.count.max) == (arch, low, high)


@pytest.mark.parametrize(
    "written", ["x86_64:4", "amd64", "..", "8..4", "4:8", None, -1, 1.5, "", "arm:arm", True, "arm:"]
)
def test_what_is_no_cpu(written: object) -> None:
    assert refused(hardware.ResourcesSpec, {"cpu": written})


GPU = {"vendor": None, "name": None, "memory": None, "total_memory": None, "compute_capability": None}
MANY = {"min": 1, "max": None}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, {"count": {"min": 1, "max": 1}}),
        ("0..8", {"count": {"min": 0, "max": 8}}),
        ("A100", {"name": ("A100",)}),
        ("A100:2", {"name": ("A100",), "count": {"min": 2, "max": 2}}),
        ("2:A100", {"name": ("A100",), "count": {"min": 2, "max": 2}}),
        (
            "A100:2:40GB",
            {"name": ("A100",), "count": {"min": 2, "max": 2}, "memory": {"min": 40, "max": 40}},
        ),
        ("24GB..", {"memory": {"min": 24, "max": None}}),
        ("..24GB", {"memory": {"min": None, "max": 24}}),
        ("24GB..80GB:2", {"memory": {"min": 24, "max": 80}, "count": {"min": 2, "max": 2}}),
        ("A10G,A100:1..2", {"name": ("A10G", "A100"), "count": {"min": 1, "max": 2}}),
        ("NVIDIA:A100", {"vendor": "nvidia", "name": ("A100",)}),
        ("tpu:v2-8", {"vendor": "google", "name": ("v2-8",)}),
        ("tt", {"vendor": "tenstorrent"}),
        ("tt-galaxy-wh:32", {"name": ("tt-galaxy-wh",), "count": {"min": 32, "max": 32}}),
        ("tpu-v3-8", {"name": ("v3-8",)}),
        ({"name": "A100,H100"}, {"name": ("A100", "H100")}),
        ({"compute_capability": [7, 5]}, {"compute_capability": (7, 5)}),
        ({"compute_capability": 8.9}, {"compute_capability": (8, 9)}),
        ({"compute_capability": "8.0"}, {"compute_capability": (8, 0)}),
        ({"vendor": "AMD", "total_memory": "80GB.."}, {"vendor": "amd", "total_memory": {"min": 80, "max": None}}),
    ],
)
def test_gpus(written: object, meant: dict[str, object]) -> None:
    found = hardware.ResourcesSpec.model_validate({"gpu": written}).gpu
    assert found is not None
    assert found.model_dump() == GPU | {"count": MANY} | meant


@pytest.mark.parametrize(
    "written",
    [
        "A100:A10",
        "nvidia:amd",
        "24GB:48GB",
        "1:2",
        "H100:8.5",
        1.5,
        "",
        ":",
        "A100:",
        "A100,:2",
        True,
        [],
        {"vendor": "foo"},
        {"compute_capability": 8},
        {"count": 1, "foo": 1},
        "64GB..16GB",
        "A100:-1",
    ],
)
def test_what_is_no_gpu(written: object) -> None:
    assert refused(hardware.ResourcesSpec, {"gpu": written})


def test_no_gpu_and_no_disk_can_be_said() -> None:
    found = hardware.ResourcesSpec.model_validate({"gpu": None, "disk": None})
    assert found.gpu is None
    assert found.disk is None


@pytest.mark.parametrize("written", ["100GB..200GB", {"size": "100GB..200GB"}, {"min": "100GB", "max": 200}])
def test_disks(written: object) -> None:
    found = hardware.ResourcesSpec.model_validate({"disk": written}).disk
    assert found is not None
    assert (found.size.min, found.size.max) == (100, 200)
