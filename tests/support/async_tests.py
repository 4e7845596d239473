"""Async tests: `async def test_…` runs on virtual time, or on the machine's clock and sockets if marked `real_time`.

An argument that is an async context manager is entered for the test, which gets what it yields.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from fencepost.adapters.virtual_clock import run_virtual


def run_async_test(function: pytest.Function) -> bool:
    """Run the test if it is a coroutine function; False if it is not."""
    if not inspect.iscoroutinefunction(function.obj):
        return False
    run = asyncio.run if function.get_closest_marker("real_time") else run_virtual
    arguments = {name: function.funcargs[name] for name in inspect.signature(function.obj).parameters}
    run(_enter_and_call(function.obj, arguments))
    return True


async def _enter_and_call(test: Callable[..., Coroutine[Any, Any, None]], arguments: Mapping[str, object]) -> None:
    async with AsyncExitStack() as stack:
        entered = dict(arguments)
        for name, value in arguments.items():
            if isinstance(value, AbstractAsyncContextManager):
                entered[name] = await stack.enter_async_context(value)
        await test(**entered)
