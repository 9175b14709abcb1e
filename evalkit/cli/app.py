"""The command line: which commands there are, and what every one of them has in common.

Commands are loaded when they are called, so that `evalkit --help` stays quick. Nothing here knows what a command
does; `main` turns whatever happens into an exit code and, where it is an error, into lines on stderr:

    0, 1, 3   what the command says: approved or done, rejected, insufficient evidence
    2         usage or input error: one line a fault
    4         a live run that could not be completed
    70        a fault of evalkit itself: one line; `--debug` shows the traceback
    130, 141  interrupted; the reader of the output went away

Python's own exit code for an uncaught exception is 1, which would read as "rejected": so nothing is left uncaught.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from evalkit import __version__
from evalkit.cli import streams
from evalkit.cli.lazy import LazyCommand, LazyGroup
from evalkit.errors import EvalkitError, Fault, InputError, fitted, redact, visible

__all__ = ["COMMANDS", "Commands", "app", "main"]

PROGRAM = "evalkit"

INPUT_ERROR = 2
INTERNAL_ERROR = 70
INTERRUPTED = 130
READER_GONE = 141

COMMANDS: tuple[LazyCommand, ...] = (
    LazyCommand(
        "route-sweep",
        "evalkit.cli.route_sweep",
        "route_sweep",
        "Find the routing threshold that the evidence allows, or say that there is none.",
    ),
    LazyCommand(
        "reasoning-budget",
        "evalkit.cli.reasoning_budget",
        "reasoning_budget",
        "Find the least costly amount of thinking that meets every limit, and where more of it stops to pay.",
    ),
    LazyCommand(
        "compare",
        "evalkit.cli.compare",
        "compare",
        "Compare two runs: what newly fails, what newly works, what it costs.",
    ),
    LazyCommand(
        "items",
        "evalkit.cli.items",
        "items",
        "Lay out every item of a run as pages to look through, the worst first.",
    ),
    LazyCommand(
        "sign-off",
        "evalkit.cli.sign_off",
        "sign_off",
        "Gather finished runs under a gate policy into one verdict and one document.",
    ),
    LazyCommand(
        "verify",
        "evalkit.cli.verify",
        "verify",
        "Compute every figure of a sign-off or run again and name whatever was changed.",
    ),
    LazyCommand(
        "sign",
        "evalkit.cli.sign",
        "sign",
        "Sign a decision on a sign-off with your key.",
    ),
    LazyCommand(
        "replay",
        "evalkit.cli.replay",
        "replay",
        "Call the models of a study, keep every reply, and grade them into outcomes.",
    ),
    LazyCommand("labels", "evalkit.cli.labels", "app", "Draw, plan, check, derive, compare and audit labels."),
    LazyCommand(
        "label", "evalkit.cli.label", "label", "Label requests on a page of this machine, blind and by keyboard."
    ),
    LazyCommand("router", "evalkit.cli.router", "app", "Fit a router on labels, and score items with one."),
    LazyCommand("import", "evalkit.cli.import_", "app", "Turn result files of other tools into outcomes."),
    LazyCommand(
        "reprice", "evalkit.cli.reprice", "reprice", "Price a finished run with another card, calling no model."
    ),
    LazyCommand(
        "doctor", "evalkit.cli.doctor", "doctor", "Check packages, keys, endpoints, prices and disk before a run."
    ),
)


class Commands(LazyGroup):
    """The commands of evalkit."""

    lazy_commands = COMMANDS


app = typer.Typer(
    name=PROGRAM,
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def evalkit(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors; may stand behind the command too.")
    ] = False,
) -> None:
    """Decide, offline and on evidence, which requests may stay on a cheap model.

    Exit codes: 0 approved or done, 1 rejected, 2 usage or input error, 3 insufficient evidence, 4 a live run could
    not be completed. Results go to stdout, progress and messages to stderr.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises, whatever a command does.

    `arguments` are those behind the name of the program; without them, the ones the process was given.
    """
    streams.prepare()
    debug, rest = _take_debug(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(rest, debug=debug)
        streams.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        streams.give_up()
        return READER_GONE
    except OSError as error:  # the output cannot be written, because the disk is full, say
        streams.give_up()
        return _fail(_os_fault(error), INPUT_ERROR)
    return code


def _run(arguments: list[str], *, debug: bool) -> int:
    """The exit code of one command; only an interruption and a lost reader are raised."""
    try:
        command = typer.main.get_command(app)
        # Not command.main(): it turns a lost reader into exit code 1, which would read as "rejected".
        with command.make_context(PROGRAM, arguments) as ctx:
            code = command.invoke(ctx)
        if code is not None and type(code) is not int:
            raise TypeError(f"a command returned {code!r} for its exit code")
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.Exit as done:
        return done.exit_code
    except typer.TyperException as error:
        return _fail(_usage(error), INPUT_ERROR)
    except InputError as error:
        return _fail("\n".join(str(fault) for fault in error.faults), error.exit_code, debug=debug)
    except EvalkitError as error:
        return _fail(_plain(str(error)), error.exit_code, debug=debug)
    except OSError as error:
        return _fail(_os_fault(error), INPUT_ERROR, debug=debug)
    except BaseException as error:  # noqa: BLE001 - Python would make it exit code 1, "rejected"
        what = f"internal error: {type(error).__name__}: {visible(error, 300)}"
        fix = "run it again with --debug and report what it shows"
        return _fail(str(Fault(what, fix)), INTERNAL_ERROR, debug=debug)
    return code or 0


def _take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` is among the options, and the arguments without it."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, [*options, *arguments[end:]]


def _fail(message: str, code: int, *, debug: bool = False) -> int:
    """Print the message on stderr, below the traceback of the exception at hand when `debug`; the exit code."""
    with suppress(OSError, ValueError):  # stderr is full or closed: the exit code still says it
        if debug:
            typer.echo(_plain(redact(traceback.format_exc())), err=True)
        typer.echo(fitted(message, sys.stderr), err=True)
    return code


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the arguments, below the usage of the command they were meant for."""
    ctx = getattr(error, "ctx", None)
    message = _plain(redact(error.format_message()))
    if ctx is None or not message or type(error).__name__ == "NoArgsIsHelpError":
        return message
    message = message if message.endswith("?") else f"{message.rstrip('.')}."
    return f"{ctx.get_usage()}\n\n{message} Fix: see {ctx.command_path} --help."


def _os_fault(error: OSError) -> str:
    """One line for a file or stream that the system would not read or write."""
    what = error.strerror or str(error) or type(error).__name__
    file = error.filename if isinstance(error.filename, str) else None
    return str(Fault(visible(what), "check the path, its permissions and the free space", file=file))


def _plain(text: str) -> str:
    """The lines of `text`, each safe to print."""
    return "\n".join(visible(line, 2000) for line in text.splitlines())
