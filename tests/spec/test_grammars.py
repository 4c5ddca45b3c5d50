"""Each grammar as a table: what is written, and what it means; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from perdure.model.durations import in_words
from perdure.spec.grammar import base, cron, durations, env, fleets, hardware, mounts, names, ports, ranges
from perdure.spec.models import fleet


def value(kind: Any, written: object) -> Any:
    return TypeAdapter(kind).dump_python(TypeAdapter(kind).validate_python(written))


def refused(kind: Any, written: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(written)
    except ValidationError:
        return True
    return False


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1 h", 3600),
        ("1d", 86400),
        ("1w", 604800),
        (0, 0),
        (1.5, 1),
        ("1_000", 1000),
        ("0123", 123),
        ("+5", 5),
    ],
)
def test_durations(written: object, seconds: int) -> None:
    assert durations.seconds(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "2H",
        "1h30m",
        "5min",
        "1.5h",
        "1.5",
        " 5m",
        "5 ",
        "1_0m",
        "٣",
        "",
        "x",
        "off",
        True,
        None,
        -1,
        "-5s",
        [],
        {},
        10**15,
        "9" * 12,
    ],
)
def test_what_is_no_duration(written: object) -> None:
    with pytest.raises(PydanticCustomError):
        durations.seconds(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [(None, None), (True, None), ("on", None), (False, "off"), ("off", "off"), ("no", "off"), ("2h", 7200), (0, 0)],
)
def test_a_duration_with_a_switch_is_unset_off_or_a_value(written: object, meant: object) -> None:
    assert durations.offable(written) == meant
    assert durations.offable_below_zero(written) == meant


def test_only_idle_durations_take_a_negative_number_for_off() -> None:
    assert durations.offable_below_zero(-1) == "off"
    assert durations.offable_below_zero("-1") == "off"
    with pytest.raises(PydanticCustomError):
        durations.offable(-1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "off"), (0, "0s"), (90, "1m30s"), (3600, "1h"), (0.5, "0.5s"), (259200, "3d"), (604800, "1w")],
)
def test_durations_in_words(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        (8, 8, 8),
        ("8", 8, 8),
        ("2..8", 2, 8),
        ("2..", 2, None),
        ("..8", None, 8),
        ("2 .. 8", 2, 8),
        ({"min": 2}, 2, None),
        ({"min": "2", "max": 4}, 2, 4),
        ("1_000", 1000, 1000),
        ("0123", 123, 123),
    ],
)
def test_ranges(written: object, low: int | None, high: int | None) -> None:
    assert value(ranges.Count, written) == {"min": low, "max": high}


@pytest.mark.parametrize(
    "written", ["..", "8..4", -1, "-1", 1.5, "", "a", True, None, {}, {"mix": 1}, [1], "1..2..3", "1...2"]
)
def test_what_is_no_range(written: object) -> None:
    assert refused(ranges.Count, written)


@pytest.mark.parametrize(
    ("written", "gigabytes"),
    [
        ("16GB", 16),
        ("16gb", 16),
        ("16 GB", 16),
        (16, 16),
        (0.5, 0.5),
        ("512MB", 0.5),
        ("1.5TB", 1536),
        ("16", 16),
        (".5", 0.5),
        ("1_024MB", 1),
    ],
)
def test_memory(written: object, gigabytes: float) -> None:
    assert ranges.gigabytes(written) == gigabytes


@pytest.mark.parametrize("written", ["16G", "16GiB", "", "GB", -1, "-1GB", None, True, "8GB..16GB", "1e3GB", []])
def test_what_is_no_memory(written: object) -> None:
    with pytest.raises(PydanticCustomError):
        ranges.gigabytes(written)


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


@pytest.mark.parametrize(
    ("written", "local", "container"),
    [
        (8000, 8000, 8000),
        ("8000", 8000, 8000),
        ("80:8000", 80, 8000),
        ("*:8000", None, 8000),
        ({"container_port": 80}, None, 80),
        ({"local_port": 1, "container_port": 80}, 1, 80),
        ("8_000", 8000, 8000),
        ("080:0443", 80, 443),
    ],
)
def test_ports(written: object, local: int | None, container: int) -> None:
    assert value(ports.Port, written) == {"container_port": container, "local_port": local}


@pytest.mark.parametrize("written", [0, 65536, "80:", ":80", "80:0", "a", "", 1.5, True, None, "1:2:3", "٣", {}])
def test_what_is_no_port(written: object) -> None:
    assert refused(ports.Port, written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["A=1"], {"A": "1"}),
        (["A=b=c"], {"A": "b=c"}),
        (["A="], {"A": ""}),
        (["A"], {"A": {"key": "A"}}),
        ({"A": 1}, {"A": "1"}),
        ({"A": 1.5}, {"A": "1.5"}),
        ({"A-B": "x"}, {"A-B": "x"}),
        ({"A": {"key": "B"}}, {"A": {"key": "B"}}),
        ([], {}),
    ],
)
def test_environments(written: object, meant: dict[str, object]) -> None:
    assert value(env.Env, written) == meant


@pytest.mark.parametrize(
    "written",
    [
        ["A=1", "A=2"],
        ["1A=2"],
        ["A-B=1"],
        [1],
        [None],
        [{}],
        "A=1",
        None,
        {"A": None},
        {"A": True},
        {"": "x"},
        ["A=\0"],
    ],
)
def test_what_is_no_environment(written: object) -> None:
    assert refused(env.Env, written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("v:/p", {"name": "v", "path": "/p"}),
        ("v:/", {"name": "v", "path": "/"}),
        ("v:/p//q/", {"name": "v", "path": "/p/q"}),
        ({"name": ["a", "b"], "path": "/p"}, {"name": ("a", "b"), "path": "/p"}),
        ("/h:/p", {"instance_path": "/h", "path": "/p", "optional": False}),
        (
            {"instance_path": "/h", "path": "/p", "optional": True},
            {"instance_path": "/h", "path": "/p", "optional": True},
        ),
    ],
)
def test_mounts(written: object, meant: dict[str, object]) -> None:
    assert value(mounts.Mount, written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "v",
        "v:p",
        "v:/p:ro",
        ":/p",
        "v:",
        "./h:/p",
        "/h/../x:/p",
        {"name": "v", "path": "p"},
        {"name": "v", "path": "/p", "optional": True},
        {"instance_path": "rel", "path": "/p"},
        {"name": [], "path": "/p"},
        1,
        None,
        {},
    ],
)
def test_what_is_no_mount(written: object) -> None:
    assert refused(mounts.Mount, written)


@pytest.mark.parametrize(
    ("written", "local", "path"),
    [
        (".", ".", "."),
        (".:examples", ".", "examples"),
        ("~/.ssh/id", "~/.ssh/id", "~/.ssh/id"),
        ("C:/data:/data", "C:/data", "/data"),
        ("C:\\data:data", "C:\\data", "data"),
    ],
)
def test_files(written: str, local: str, path: str) -> None:
    assert value(mounts.FileItem, written) == {"local_path": local, "path": path}


@pytest.mark.parametrize(
    "written",
    [
        "a:b:c",
        "a:C:/y",
        "C:\\data",
        "",
        ":x",
        "a:",
        {"local_path": "a"},
        {"local_path": "", "path": "b"},
        {"local_path": "a", "path": ""},
        {"local_path": "a", "path": "C:/y"},
        1,
    ],
)
def test_what_is_no_file(written: object) -> None:
    assert refused(mounts.FileItem, written)


@pytest.mark.parametrize(
    ("written", "local", "url", "path"),
    [
        ("..", "..", None, "."),
        ("..:/my-repo", "..", None, "/my-repo"),
        ("a:~/x", "a", None, "~/x"),
        ("https://github.com/a/b", None, "https://github.com/a/b", "."),
        ("https://github.com/a/b:/x", None, "https://github.com/a/b", "/x"),
        ("https://h:8443/a/b", None, "https://h:8443/a/b", "."),
        ("https://h:8443/a/b:/x", None, "https://h:8443/a/b", "/x"),
        ("ssh://git@h:22/a", None, "ssh://git@h:22/a", "."),
        ("git@github.com:a/b.git", None, "git@github.com:a/b.git", "."),
        ("git@github.com:a/b.git:data/repo", None, "git@github.com:a/b.git", "data/repo"),
        ("git@h:22/a:x", None, "git@h:22/a", "x"),
        ("git@h:~me/r.git:~/x", None, "git@h:~me/r.git", "~/x"),
        ("git@[::1]:a/b:/x", None, "git@[::1]:a/b", "/x"),
        ("https://user:token@host/a", None, "https://user:token@host/a", "."),
        ("https://user:token@host:8443/a:/x", None, "https://user:token@host:8443/a", "/x"),
        ("https://user:to:k@en@host/a", None, "https://user:to:k@en@host/a", "."),
        ("https://user:1234@host/a", None, "https://user:1234@host/a", "."),
        ("https://[fe80::1]:8443/a:x", None, "https://[fe80::1]:8443/a", "x"),
        ("ssh://git@h:22/a:/x", None, "ssh://git@h:22/a", "/x"),
        ("https://h/a@b:/x", None, "https://h/a@b", "/x"),
        ("file:///srv/a.git:/x", None, "file:///srv/a.git", "/x"),
        ("C:/code:/x", "C:/code", None, "/x"),
        (".:data@v1.0/x", ".", None, "data@v1.0/x"),
    ],
)
def test_repositories(written: str, local: str | None, url: str | None, path: str) -> None:
    found = value(mounts.Repo, written)
    assert (found["local_path"], found["url"], found["path"]) == (local, url, path)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "a:",
        "a:~user/x",
        "a:b:c",
        "https://h:8443x/a/b:c",
        "https://h/a:",
        "user:token@host.com/a",
        {"local_path": "a", "path": "~user/r"},
        {"url": "u", "if_exists": "replace"},
    ],
)
def test_what_is_no_repository(written: object) -> None:
    assert refused(mounts.Repo, written)


@pytest.mark.parametrize(
    ("grammar", "written", "meant"),
    [
        (names.unix_user, "ubuntu", "ubuntu"),
        (names.unix_user, 1000, "1000"),
        (names.unix_user, "1000:50", "1000:50"),
        (names.shell, "bash", "bash"),
        (names.shell, "/usr/bin/zsh", "/usr/bin/zsh"),
        (names.python, "3.10", "3.10"),
        (names.python, 3.1, "3.10"),
        (names.python, 3.12, "3.12"),
        (names.working_dir, "~/w", "~/w"),
        (names.backend, "ssh", "remote"),
        (cron.cron_list, "15 23 * * *", ("15 23 * * *",)),
        (cron.cron_list, ["0 8 * JAN MON", "0 8 * * 7"], ("0 8 * JAN MON", "0 8 * * 7")),
        (cron.cron_list, " 0  8 * jul * ", ("0 8 * jul *",)),
    ],
)
def test_words(grammar: Callable[[object], object], written: object, meant: object) -> None:
    assert grammar(written) == meant


@pytest.mark.parametrize(
    ("grammar", "written"),
    [
        (names.unix_user, "1000:"),
        (names.unix_user, "a:b:c"),
        (names.unix_user, -1),
        (names.unix_user, ""),
        (names.shell, "zsh"),
        (names.shell, "usr/bin/zsh"),
        (names.python, 3),
        (names.python, "3.8"),
        (names.python, 3.15),
        (names.python, "3.1"),
        (names.working_dir, "."),
        (names.working_dir, ""),
        (names.backend, "foo"),
        (names.resource_name, "My_Run"),
        (names.resource_name, "-a"),
        (names.resource_name, "hello\n"),
        (names.resource_name, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"),
        (cron.cron_list, []),
        (cron.cron_list, "0 8 * *"),
        (cron.cron_list, "0 8 * * * *"),
        (cron.cron_list, "61 * * * *"),
        (cron.cron_list, "@daily"),
        (cron.cron_list, "0 0 L * *"),
        (cron.cron_list, "0 0 LW * *"),
        (cron.cron_list, "0 0 * * 5L"),
        (cron.cron_list, "0 0 * * fri#2"),
        (cron.cron_list, "0 0 2nd fri * *"),
        (cron.cron_list, "0 0 last * *"),
        (cron.cron_list, "0 0 30 2 *"),
        (cron.cron_list, ["0 0 * * *"] * 101),
        (cron.cron_list, 5),
        (fleets.private_address, "8.8.8.8"),
        (fleets.private_address, "foo"),
        (fleets.private_network, "8.8.8.0/24"),
        (fleets.read_blocks, 0),
        (fleets.read_blocks, "foo"),
    ],
)
def test_wrong_words(grammar: Callable[[Any], object], written: object) -> None:
    with pytest.raises(PydanticCustomError):
        grammar(written)


@pytest.mark.parametrize("tags", [{"a b": "c"}, {"a": "x!"}, {"a": ["x"]}, {"a": None}, [], {"": "x"}])
def test_what_are_no_tags(tags: object) -> None:
    assert refused(names.Tags, tags)


def test_references_name_a_project_or_do_not() -> None:
    assert value(names.Ref, "p/a") == {"name": "a", "project": "p"}
    assert value(names.Ref, "a") == {"name": "a", "project": None}
    for written in ("", "a/b/c", "/a", "a/", 1, None, {"name": "a/b"}, {"name": ""}, {"name": "a", "project": ""}):
        assert refused(names.Ref, written)


@pytest.mark.parametrize(
    ("written", "low", "target", "high"),
    [
        (2, 2, None, 2),
        ("0..2", 0, None, 2),
        ("2..", 2, None, None),
        ("..2", 0, None, 2),
        ({}, 0, None, None),
        ({"min": 1, "target": 2, "max": 3}, 1, 2, 3),
        ({"min": 0, "target": 2}, 0, 2, None),
    ],
)
def test_nodes_of_a_fleet(written: object, low: int, target: int | None, high: int | None) -> None:
    found = fleet.FleetConfiguration.model_validate({"type": "fleet", "nodes": written}).nodes
    assert found is not None
    assert (found.min, found.target, found.max) == (low, target, high)


@pytest.mark.parametrize(
    "written",
    [
        {"min": 3, "max": 2},
        {"min": 2, "target": 1},
        {"max": 1, "target": 2},
        {"max": 0, "target": 1},
        "..",
        -1,
        "x",
    ],
)
def test_what_are_no_nodes_of_a_fleet(written: object) -> None:
    assert refused(fleet.FleetConfiguration, {"type": "fleet", "nodes": written})


@pytest.mark.parametrize(
    ("grammar", "written", "meant"),
    [
        (base.number, ".5", 0.5),
        (base.number, "5.", 5),
        (base.number, "1_000", 1000),
        (base.number, "1e3", 1000),
        (base.number, "+2.5", 2.5),
        (base.number, 2, 2),
        (base.whole, "2", 2),
        (base.whole, "-2", -2),
        (base.whole, 2.0, 2),
        (base.text, 1.5, "1.5"),
        (base.text, 12, "12"),
        (base.switch, "yes", True),
        (base.switch, "OFF", False),
        (base.switch, "1", True),
        (base.switch, 0, False),
    ],
)
def test_the_simplest_values(grammar: Callable[[object], object], written: object, meant: object) -> None:
    assert grammar(written) == meant


@pytest.mark.parametrize(
    ("grammar", "written"),
    [
        (base.number, "."),
        (base.number, "1e99"),
        (base.number, "inf"),
        (base.number, float("nan")),
        (base.number, float("inf")),
        (base.number, True),
        (base.number, 10**400),
        (base.whole, 2.5),
        (base.whole, "2.0"),
        (base.whole, True),
        (base.whole, float("inf")),
        (base.whole, 10**4000),
        (base.text, True),
        (base.text, None),
        (base.text, 10**4000),
        (base.text, "\ud800"),
        (base.switch, "maybe"),
        (base.switch, 2),
        (base.switch, None),
    ],
)
def test_what_is_not_the_simplest_value(grammar: Callable[[object], object], written: object) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        grammar(written)
    assert len(str(refused.value)) < 200
