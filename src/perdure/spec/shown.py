"""Every effective value in words, in the order a plan shows them."""

from __future__ import annotations

from perdure.model.durations import in_words
from perdure.model.origins import EffectiveValue
from perdure.model.policy import Retry
from perdure.model.resources import GpuNeed, Requirements, Span
from perdure.spec.effective import EffectiveRun
from perdure.spec.grammar.ranges import range_words


def shown(run: EffectiveRun) -> tuple[EffectiveValue, ...]:
    """One by one. Nothing that is in force is left out, and nothing secret is in."""
    policy, needs = run.policy, run.policy.requirements
    rows: list[tuple[str, str | None]] = [
        ("project", policy.project),
        ("user", policy.user or "-"),
        ("type", policy.kind),
        ("resources", resources_words(needs)),
        ("spot policy", {True: "spot", False: "on-demand", None: "auto"}[needs.spot]),
        ("max price", "-" if needs.max_price is None else f"${needs.max_price:g}/h"),
        ("retry policy", _retry_words(policy.retry)),
        ("creation policy", "reuse" if needs.reuse_only else "reuse-or-create"),
        ("idle duration", in_words(policy.idle_duration)),
        ("max duration", in_words(run.max_duration)),
        ("stop duration", in_words(policy.stop_duration)),
        ("stop grace", in_words(policy.timing.stop_grace)),
        ("priority", str(policy.priority)),
        ("nodes", str(policy.nodes)),
        ("startup order", policy.startup_order.value),
        ("stop criteria", policy.stop_criteria.value),
        ("fleets", _listed(needs.fleets)),
        ("backends", _listed(needs.backends)),
        ("regions", _listed(needs.regions)),
        ("instance types", _listed(needs.instance_types)),
        ("image", run.image or "none: runs as a process, or in the default image"),
        ("process", _process_words(run)),
        ("user in the job", run.user),
        ("working directory", run.working_dir),
        ("privileged", "yes" if run.privileged else None),
        ("ports", ", ".join(f"{p.local or '*'}:{p.container}" for p in run.ports) or None),
        ("environment", ", ".join(run.env) or None),
        ("mounts", ", ".join(f"{mount.instance_path}:{mount.path}" for mount in run.mounts) or None),
        ("tags", ", ".join(f"{key}={value}" for key, value in run.tags.items()) or None),
    ]
    return tuple(EffectiveValue(label=what, value=value) for what, value in rows if value is not None)


def resources_words(needs: Requirements) -> str:
    """``cpu=x86:4.. mem=16GB.. disk=100GB.. gpu=A100:40GB:2``"""
    cpu = _span_words(needs.cpu)
    words = [
        f"cpu={needs.cpu_arch}:{cpu}" if needs.cpu_arch else f"cpu={cpu}",
        f"mem={_span_words(needs.memory_mib, True)}",
    ]
    if needs.disk_mib is not None:
        words.append(f"disk={_span_words(needs.disk_mib, True)}")
    if needs.gpu is not None:
        words.append(f"gpu={_gpu_words(needs.gpu)}")
    if needs.shm_mib is not None:
        words.append(f"shm={needs.shm_mib / 1024:g}GB")
    return " ".join(words)


def _gpu_words(gpu: GpuNeed) -> str:
    parts = [gpu.vendor or "", ",".join(gpu.names)]
    if gpu.memory_mib is not None:
        parts.append(_span_words(gpu.memory_mib, True))
    parts.append(_span_words(gpu.count))
    if gpu.total_memory_mib is not None:
        parts.append(f"total {_span_words(gpu.total_memory_mib, True)}")
    if gpu.compute_capability is not None:
        parts.append("compute {}.{}".format(*gpu.compute_capability))
    return ":".join(part for part in parts if part)


def _span_words(span: Span, memory: bool = False) -> str:
    if memory:
        return range_words(
            None if span.min is None else span.min / 1024, None if span.max is None else span.max / 1024, "GB"
        )
    return range_words(span.min, span.max)


def _retry_words(retry: Retry | None) -> str:
    if retry is None:
        return "off"
    words = f"{', '.join(retry.on)} for {in_words(retry.duration)}"
    return words if retry.max_attempts is None else f"{words}, at most {retry.max_attempts} attempts in all"


def _process_words(run: EffectiveRun) -> str:
    if not run.argv:
        return "the image's own"
    if run.entrypoint is not None:
        return "entrypoint and commands"
    return f"commands in {run.argv[0]}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "any"
