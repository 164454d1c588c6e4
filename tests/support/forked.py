"""`effaced ...` and `python ...` as processes of their own, forked from one that has everything imported.

A process that starts from nothing spends seconds of CPU on imports before it does what a test is about.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from call_trace import VARIABLE, record_calls
from waiting import PATIENCE

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["effaced.app", "effaced.cli.web.gunicorn", "effaced.cli.serve"])


class Forked:
    """A running command, with those methods of Popen that tests use. It writes to files."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        environ: Mapping[str, str],
        folder: Path,
        output: Path,
        *,
        errors: Path | None = None,
        typed: str = "",
        unread: bool = False,
        python: bool = False,
    ) -> None:
        self.args = arguments
        begin = _begin_python if python else _begin_effaced
        self._process: ForkServerProcess = context.Process(
            target=_run,
            args=(begin, arguments, dict(environ), folder, output, errors or output, typed, unread),
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, seconds)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()


def run(
    *arguments: str,
    environ: Mapping[str, str],
    folder: Path,
    typed: str = "",
    unread: bool = False,
    python: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The command from start to end, as subprocess.run would give it; `unread`: nobody reads its output.

    With `python` it is one of the interpreter: a script's path or `-c` and code, and arguments.
    """
    with TemporaryDirectory() as place:
        output, errors = Path(place, "output"), Path(place, "errors")
        process = Forked(
            arguments,
            environ,
            folder,
            output,
            errors=errors,
            typed=typed,
            unread=unread,
            python=python,
        )
        try:
            code = process.wait(PATIENCE)
        finally:
            process.terminate()
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())


def _begin_effaced(*arguments: str) -> None:
    from effaced.cli.main import main

    sys.argv = ["effaced", *arguments]
    main()


def _begin_python(script: str, *arguments: str) -> None:
    sys.path.insert(0, str(Path.cwd()))
    if script == "-c":
        sys.argv = ["-c", *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")


def _run(
    begin: Callable[..., None],
    arguments: tuple[str, ...],
    environ: dict[str, str],
    folder: Path,
    output: Path,
    errors: Path,
    typed: str,
    unread: bool,
) -> None:
    if VARIABLE in environ:
        record_calls(environ[VARIABLE])
    os.setsid()
    for path, descriptor in ((output, 1), (errors, 2)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), descriptor)
    if unread:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        os.close(writer)
    reader, writer = os.pipe()
    os.write(writer, typed.encode())
    os.close(writer)
    sys.stdin = os.fdopen(reader)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    begin(*arguments)
