# SPDX-License-Identifier: GPL-2.0-only
"""Entry point: the table of verbs, and the one place that turns failures into exit statuses."""

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, cast

from ceasefire import __version__
from ceasefire.errors import EXIT_USAGE, Failure, said
from ceasefire.text import shown, shown_lines

# Set in the environment, the traceback of an internal error is shown.
_DEBUG = "CEASEFIRE_DEBUG"


class VerbModule(Protocol):
    """What a module in VERBS provides."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's options."""

    def main(self, args: argparse.Namespace) -> int:
        """Do it and return the exit status."""


class Verb(NamedTuple):
    """One line of the table: `module` is imported only when the verb is used."""

    name: str
    module: str
    help: str


VERBS = (
    Verb("run", "ceasefire.run", "run a program so that it sends fewer shootdowns"),
    Verb(
        "try", "ceasefire.trial.cli", "judge a program with the patched kernel in a virtual machine"
    ),
    Verb("enable", "ceasefire.service.enable", "let a service of systemd run with a mechanism"),
    Verb("disable", "ceasefire.service.disable", "let a service run as before"),
    Verb("stat", "ceasefire.stat", "count shootdowns and what was done instead of them"),
    Verb("record", "ceasefire.record.cli", "record where a program's shootdowns come from"),
    Verb("advise", "ceasefire.record.advise", "tell what FPR would save a program"),
    Verb("maps", "ceasefire.maps", "show which mappings of a process recycle their frames"),
    Verb("morsel", "ceasefire.morsel.cli", "make, find, fill and empty morsels"),
    Verb("doctor", "ceasefire.doctor", "check what this machine has and what it lacks"),
    Verb("bench", "ceasefire.bench.cli", "measure benchmarks, applications and kernel paths"),
    Verb("vm", "ceasefire.vm.cli", "boot a built kernel on this machine's files and run a command"),
)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong use in one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where to read on."""
        self.exit(EXIT_USAGE, f"{self.prog}: {shown(message)} (see `{self.prog} --help`)\n")


def top_parser() -> Parser:
    """Build the parser that only knows the verbs' names; also used for the manual page."""
    width = max(len(verb.name) for verb in VERBS)
    table = "\n".join(f"  {verb.name:<{width}}  {verb.help}" for verb in VERBS)
    parser = Parser(
        prog="ceasefire",
        usage="ceasefire VERB [OPTIONS] [-- CMD...]",
        description="Memory-mapped files without TLB shootdowns.",
        epilog=f"verbs:\n{table}\n\n`ceasefire VERB --help` describes each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ceasefire {__version__}")
    parser.add_argument("verb", metavar="VERB", help=argparse.SUPPRESS)
    return parser


def verb_parser(verb: Verb, module: VerbModule) -> Parser:
    """Build the parser of one verb."""
    description = (sys.modules[verb.module].__doc__ or "").partition("\n\n")
    parser = Parser(
        prog=f"ceasefire {verb.name}",
        description=description[0].strip(),
        epilog=description[2].strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    # A name that the encoding of the terminal does not have is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    parser = top_parser()
    if not words:
        parser.error("say which verb: " + ", ".join(verb.name for verb in VERBS))
    verb = next((v for v in VERBS if v.name == words[0]), None)
    if verb is None:
        if words[0].startswith("-"):
            parser.parse_args(words[:1])
        parser.error(f"there is no verb '{words[0]}'")
    try:
        module = cast(VerbModule, importlib.import_module(verb.module))
        try:
            return module.main(verb_parser(verb, module).parse_args(words[1:]))
        finally:
            # At the end of Python nobody would catch that the reader is gone.
            sys.stdout.flush()
    except Failure as failure:
        print(f"ceasefire {verb.name}: {said(failure)}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"ceasefire {verb.name}: {shown(str(error))}", file=sys.stderr)
        return 1
    except Exception as error:  # the last line of defence: users see a traceback if they want one
        # Python 3.11 makes another error of an interrupt that comes while a class is made.
        if isinstance(error.__cause__, KeyboardInterrupt):
            return 130
        where = traceback.extract_tb(error.__traceback__)[-1]
        said_all = bool(os.environ.get(_DEBUG))
        if said_all:
            print(shown_lines("".join(traceback.format_exception(error)).rstrip()), file=sys.stderr)
        print(
            f"ceasefire {verb.name}: internal error at {Path(where.filename).name}:"
            f"{where.lineno}: {type(error).__name__}: {shown(str(error))}"
            + ("" if said_all else f" ({_DEBUG}=1 shows where it comes from)"),
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
