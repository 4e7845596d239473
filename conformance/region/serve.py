"""`fencepost serve --protocol region`: operators of a consistent region, repaired, that a kit takes step by step."""

import argparse
from collections.abc import Callable

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import refuse_options


def run(options: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C; the address is printed once the program listens."""
    from fencepost.conformance.cli.console import run_interruptible
    from fencepost.conformance.results import ExitCode

    refuse_options(options, "serve", frozenset({"host", "port"}))
    try:
        run_interruptible(serve(options.host, options.port, console.print_line))
    except KeyboardInterrupt:
        console.log("stopped")
    return ExitCode.CONFORMANT


async def serve(host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the line protocol until cancelled. Raises `TargetError` if the port cannot be listened on."""
    import asyncio

    from fencepost.adapters.address import TargetError, describe_listen_error, format_address
    from fencepost.adapters.region.line_program import LineProgram

    program = LineProgram()
    try:
        announce(format_address(*await program.start(host, port)))
        await asyncio.Event().wait()
    except (OSError, UnicodeError) as error:
        raise TargetError(describe_listen_error(host, port, error)) from None
    finally:
        await program.close()
