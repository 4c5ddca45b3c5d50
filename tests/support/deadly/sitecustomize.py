"""Kills a worker at named points, each once: on ``PYTHONPATH``, Python imports this before anything else.

The file that ``PERDURE_DIE_FILE`` names has a line for each (``tests/support/deaths.py``). It is taken away before
the worker dies of it, so that the next one gets further.
"""

import os
import sys
from pathlib import Path

if os.environ.get("PERDURE_DIE_FILE") and any("perdure.stack.worker" in word for word in sys.orig_argv):
    import signal
    from typing import Any

    from temporalio import worker as temporal_worker

    _file = Path(os.environ["PERDURE_DIE_FILE"])

    def _die(step: str, when: str) -> None:
        if not _file.exists():
            return
        points = _file.read_text().split()
        for point in points:
            wanted_step, wanted_when, *rest = point.split(":")
            if (step, when) == (wanted_step, wanted_when):
                beside = _file.with_name("left")
                beside.write_text("\n".join(other for other in points if other != point))
                beside.rename(_file)
                os.kill(os.getpid(), signal.Signals[f"SIG{rest[0] if rest else 'KILL'}"])
                return

    class _Inbound(temporal_worker.ActivityInboundInterceptor):
        async def execute_activity(self, input: temporal_worker.ExecuteActivityInput) -> Any:
            from temporalio import activity

            step = activity.info().activity_type
            _die(step, "before")
            result = await super().execute_activity(input)
            _die(step, "after")
            return result

    class _Deadly(temporal_worker.Interceptor):
        def intercept_activity(
            self, next: temporal_worker.ActivityInboundInterceptor
        ) -> temporal_worker.ActivityInboundInterceptor:
            return _Inbound(next)

    _init = temporal_worker.Worker.__init__

    def _with_deadly(self: Any, *args: Any, **kwargs: Any) -> None:
        _init(self, *args, **{**kwargs, "interceptors": [*kwargs.get("interceptors", ()), _Deadly()]})

    temporal_worker.Worker.__init__ = _with_deadly  # type: ignore[method-assign]
