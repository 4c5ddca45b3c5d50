"""Values that are almost right: what a tired hand writes. Each must be refused, with a sentence."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Misses = st.SearchStrategy[Any]
"""Written values."""

_N = st.integers(1, 999)
_NAME = st.from_regex(r"[a-z][a-z0-9]{1,6}", fullmatch=True)


def _in(values: Misses, *patterns: str) -> Misses:
    """The values in one of these frames."""
    return st.builds(lambda value, frame: frame.format(value), values, st.sampled_from(patterns))


_ODD: list[Any] = [[], {}, [1], {"a": 1}, None]
_STRUCTURES = st.sampled_from(_ODD)

wholes = _in(_N, "{}.0", "{}.5", "1e{}", "0x{}", "{} ", "{}%", "--{}") | st.sampled_from([True, 2.5, "", *_ODD])
numbers = _in(_N, "{}$", "{}%", "1,{}", "{}e", "1e5{}", "0x{}") | st.sampled_from(
    [True, "inf", ".nan", ".", "", *_ODD]
)
switches = st.sampled_from(["maybe", "ye", "", "10", 2, -1, 0.5, *_ODD])
texts = st.sampled_from([True, False, "a\0b", "\ud800", 10**50, *_ODD])
durations = (
    _in(
        _N, "{}H", "{}min", "{}ms", "{}h30m", "{}.5h", " {}s", "{}s ", "{} ", "-{}s", "{}y", "s{}", "1e{}s", "{},5s"
    )
    | _N.map(lambda n: -n)
    | st.sampled_from([-0.5, -1e-9])
    | st.booleans()
    | _STRUCTURES
)
offable = _in(_N, "{}H", "{}h30m", " {}s", "-{}", "-{}m") | st.sampled_from(["none", "never", "", "offf", [], {}])
memory = (
    _in(_N, "{}G", "{}GiB", "{}KB", "{}B", "-{}GB", "{}GB..", " {}GB", "{}GBs", "{},5GB", "GB{}", "{}e3GB")
    | _STRUCTURES
)
counts = _in(
    _N, "{}...", "...{}", "{0}..{0}..{0}", "-{}", "{}-9999", "{}..x", "..-{}", "{}:9999", "{}.5"
) | st.sampled_from(
    ["..", " .. ", "", True, 1.5, [], {}, {"min": 2, "max": 1}, {"least": 1}, {"min": None, "max": None}]
)
spans = memory.filter(lambda value: not str(value).endswith("..")) | st.sampled_from(
    ["16GB..8GB", "..", "1...5GB", {"min": 2, "max": 1}]
)
cpus = _in(
    _N, "amd64:{}", "x86_64", "x86:{0}:{0}", "arm:", ":{}", "{}:9999", "{}.5", "x86:arm", "{}GB", "x86-{}"
) | st.sampled_from([None, 1.5, True, -1, "", "8..4", {"arch": "mips"}, {"count": None}, {"cores": 4}])
gpus = _in(
    _N,
    "A100:A10:{}",
    "nvidia:amd:{}",
    "{}GB:48GB",
    "{}:9999",
    "A100:-{}",
    "A100:{}:",
    ":{}",
    "A100,:{}",
    "A100::{}",
    "{}.5",
) | (
    st.sampled_from(
        [1.5, True, -1, "", ":", {"vendor": "matrox"}, {"compute_capability": 8}, {"number": 1}, "64GB..16GB", [1]]
    )
)
disks = _in(_N, "{}G", "{}GiB", "-{}GB") | st.sampled_from(["", True, {"sizes": 1}, {}, "2TB..1TB", []])
resources = (
    cpus.map(lambda value: {"cpu": value})
    | gpus.map(lambda value: {"gpu": value})
    | disks.map(lambda value: {"disk": value})
    | st.sampled_from([None, [], "1", {"ram": "1GB"}, {"shm_size": "1GB.."}])
)
ports = _in(
    _N, "{}:", ":{}", "{}:0", "{}:65536", "{}:8:8", "{}-9999", "http:{}", "*", "*{}", "{}/tcp", "{}.0", " {}"
) | (st.sampled_from([0, 65536, -1, 1.5, True, None, "", [], {}, {"container_port": 0}, {"local_port": 1}]))
mounts = _in(
    _NAME, "{}", "{}:data", "{}:/data:ro", ":/{}", "{}:", "./{}:/data", "/{}/../x:/data", "/a:/{}/.."
) | st.sampled_from(
    [
        1,
        None,
        [],
        {},
        {"name": "v"},
        {"name": [], "path": "/p"},
        {"name": "v", "path": "p"},
        {"name": "v", "path": "/p", "optional": True},
    ]
)
files = _in(_NAME, "{}:b:c", "{}:", ":{}", "{}:C:/x", "C:\\{}") | st.sampled_from(
    ["", 1, None, {}, {"local_path": "a"}, {"path": "/a"}]
)
repositories = _in(_NAME, "{}:", "{}:a:b", "{}:~user/x", "https://h/{}:", "https://h/{}:a:b") | st.sampled_from(
    [
        "",
        1,
        None,
        {"path": "~user/r"},
        {"url": "u", "if_exists": "replace"},
        {"url": ""},
    ]
)
environments = _in(_NAME, "{}=1") | st.sampled_from(
    [
        None,
        1,
        ["A=1", "A=2"],
        ["1A=2"],
        ["A-B=1"],
        ["=1"],
        [""],
        [1],
        [None],
        [{"A": "1"}],
        {"A": None},
        {"A": True},
        {"A": [1]},
    ]
)
tags = _NAME.map(lambda name: [name]) | st.sampled_from(
    [
        {"a b": "c"},
        {"": "x"},
        {"a": "x!"},
        {"a": "x" * 257},
        {"a" * 61: "x"},
        {"a": None},
        {"a": True},
        {"a": ["x"]},
        {"a": "x\n"},
        "a=b",
    ]
)
names = _in(_NAME, "{}_x", "-{}", "{}.x", "{} x", "{}\n", "9{}", "A{}") | st.sampled_from(
    ["", "a" * 42, None, True, []]
)
group_names = _in(_NAME, "{}_x", "-{}", "A{}", "{} ") | st.sampled_from(["", "a" * 41, None, True])
backends = st.sampled_from(["", "AWS", "amazon", "aws,gcp", "ec2", 1, None, True, ["aws"]])
working_dirs = _in(_NAME, "{}", "./{}", "../{}") | st.sampled_from([".", "", None, True])
references = _in(_NAME, "{}/a/b", "/{}", "{}/", "//{}") | st.sampled_from(
    ["", None, True, [], {}, {"project": "p"}, {"name": "a/b"}]
)
users = _in(_NAME, "{}:", ":{}", "{}:a:b", "-1:{}") | st.sampled_from([-1, "-1", "", True, None, []])
pythons = st.sampled_from([3, "3", "3.8", 3.8, 3.15, "3.15", "python3.12", "3.12.1", "^3.12", True, None])
shells = _in(_NAME, "{}", "bin/{}", "./{}").filter(lambda word: word not in ("sh", "bash")) | st.sampled_from(
    ["", "/", None, True]
)
crons = _in(
    st.integers(60, 99),
    "{} * * * *",
    "* {} * * *",
    "* * {} * *",
    "* * * {} *",
    "* * * * {}",
    "*/0 {} * * *",
    "5-1 {} * * *",
) | (
    st.sampled_from(
        ["@daily", "* * * *", "* * * * * *", "0 0 L * *", "0 0 * * fri#2", "0 0 30 2 *", "", 5, None, [], ["x"]]
    )
)
retries = st.sampled_from(
    [
        "maybe",
        1,
        [],
        {"on_events": []},
        {"on_events": ["oom"]},
        {"duration": "off"},
        {"duration": -1},
        {"max_attempts": 0},
        {"on": []},
        {"backoff": []},
        {"backoff": ["-1s"]},
        {"backoff": "5s"},
        {"on_exit_codes": [256]},
        {"on_exit_codes": ["2..1"]},
        {"on_exit_codes": []},
        {"scope": "all"},
    ]
)
exit_codes = _in(_N, "{}..", "-{}", "{0}..{0}..{0}", "{}.0") | st.sampled_from([256, -1, "3..1", True, "", *_ODD])
signals = st.sampled_from(["KILL", "SIGKILL", "stop", "9", 15, "", "SIGSIGTERM", True, *_ODD])
deadlines = durations.filter(lambda value: value is not None) | st.sampled_from(
    [0, "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-01-01T25:00Z", "tomorrow", "off"]
)
notices = st.sampled_from(
    [
        {},
        "https://h",
        {"url": "h"},
        {"url": "ftp://h"},
        {"url": "https://"},
        {"url": "https://h", "on": []},
        {"url": "https://h", "on": ["ended"]},
    ]
)
dependencies = _in(_NAME, "{}_x", "-{}", "A{}", "{} ") | st.sampled_from(
    ["", None, 1, {}, {"run": "prepare", "on": "failed"}, {"name": "prepare"}]
)
zones = _in(_NAME, "Europe/{}", "{}/Berlin", "../{}") | st.sampled_from(["", "+02:00", None, 2, True, "a" * 99])
costs = numbers | st.sampled_from([0, -1, "-0.5"])
utilization = st.sampled_from(
    [
        {},
        {"min_gpu_utilization": 10},
        {"time_window": "10m"},
        {"min_gpu_utilization": 101, "time_window": "10m"},
        {"min_gpu_utilization": 10, "time_window": "4m"},
        {"min_gpu_utilization": 10, "time_window": "off"},
    ]
)
instances = st.sampled_from(
    [
        {},
        1,
        None,
        [],
        {"name": "a", "hostname": "b"},
        {"fleet": "f"},
        {"instance": 1},
        {"fleet": "f", "instance": -1},
    ]
)
probes = st.sampled_from(
    [
        {},
        {"type": "tcp"},
        {"type": "http", "url": "health"},
        {"type": "http", "url": "http://x"},
        {"type": "http", "method": "POST"},
        {"type": "http", "timeout": "6m"},
        {"type": "http", "interval": "0s"},
        {"type": "http", "ready_after": 0},
        {"type": "http", "headers": {"a": "b"}},
        {"type": "http", "headers": [{"name": "a", "value": ""}]},
        {"type": "http", "path": "/"},
        "/health",
    ]
)
scaling = st.sampled_from(
    [
        {},
        {"metric": "cpu", "target": 1},
        {"metric": "rps"},
        {"metric": "rps", "target": 0},
        {"metric": "rps", "target": -1},
        {"metric": "rps", "target": 1, "window": "45s"},
        {"metric": "rps", "target": 1, "scale_up_delay": "off"},
    ]
)
rate_limits = st.sampled_from(
    [
        {},
        {"rps": 0},
        {"rps": 0.01},
        {"rps": 1, "burst": -1},
        {"rps": 1, "prefix": "api"},
        {"rps": 1, "prefix": "/a b"},
        {"rps": 1, "key": {"type": "cookie"}},
        {"rps": 1, "key": {"type": "header"}},
        {"rps": 1, "key": {"type": "header", "header": "a b"}},
    ]
)
models = st.sampled_from(
    [
        {},
        1,
        [],
        {"name": "m"},
        {"format": "openai"},
        {"name": "m", "format": "vllm"},
        {"name": "m", "format": "openai", "type": "x"},
    ]
)
nodes = counts.filter(lambda value: value not in ({}, {"min": None, "max": None})) | st.sampled_from(
    [{"min": 2, "target": 1}, {"max": 1, "target": 2}, {"min": -1}]
)
profiles = st.sampled_from(
    [{}, [], {"profiles": {}}, {"profiles": [{"image": "i"}]}, {"profiles": [{"name": None}]}, {"profiles": ["a"]}]
)
