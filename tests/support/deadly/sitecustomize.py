"""Kills a worker at a named point, once: on ``PYTHONPATH``, Python imports this before anything else.

The file that ``PERDURE_DIE_FILE`` names says where: ``ACTIVITY:before`` or ``ACTIVITY:after``, with ``:SIGNAL``
behind it if it is not KILL. When it has happened it is renamed to ``….died``, so that the next worker lives.
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
        try:
            wanted_step, wanted_when, *rest = _file.read_text().split(":")
            if (step, when) != (wanted_step, wanted_when):
                return
            _file.rename(f"{_file}.died")
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.Signals[f"SIG{rest[0] if rest else 'KILL'}"])

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
