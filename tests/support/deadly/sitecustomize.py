"""Kills a worker at a named point, once: on ``PYTHONPATH``, Python imports this before anything else.

``PERDURE_DIE_AT`` is ``ACTIVITY:before`` or ``ACTIVITY:after``, with ``:SIGNAL`` behind it if it is not KILL;
``PERDURE_DIE_ONCE`` a file that is made when it has happened, so that the worker that comes next lives.
"""

import os
import sys
from pathlib import Path

if os.environ.get("PERDURE_DIE_AT") and any("perdure.stack.worker" in word for word in sys.orig_argv):
    import signal
    from typing import Any

    from temporalio import worker as temporal_worker

    _step, _when, *_rest = os.environ["PERDURE_DIE_AT"].split(":")
    _signal = signal.Signals[f"SIG{_rest[0] if _rest else 'KILL'}"]
    _once = Path(os.environ["PERDURE_DIE_ONCE"])

    def _die(step: str, when: str) -> None:
        if (step, when) != (_step, _when):
            return
        try:
            _once.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), _signal)

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
