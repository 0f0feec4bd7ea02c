"""Functions that run an event loop of their own, and work also where one runs already, as in a Jupyter notebook."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def blocking(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Call the function in a thread of its own where this thread runs an event loop, and wait for its result."""

    @wraps(function)
    def call(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return function(*args, **named)
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1, thread_name_prefix=function.__name__) as thread:
            return thread.submit(lambda: context.run(function, *args, **named)).result()

    return call
