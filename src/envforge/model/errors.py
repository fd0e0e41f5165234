"""Errors for the person at the keyboard: a code, what happened, why, and what to do.

Style: lower case, no final stop, literals in backticks. Only ``cli`` turns one into an exit status.
"""

from __future__ import annotations

from dataclasses import dataclass


class EnvforgeError(Exception):
    """A failure that is told to the user, never as a traceback.

    ``code`` is a stable kebab-case name, ``exit`` the exit status of the contract (1 failed,
    2 wrong usage or profile, 4 failed and left something to clean up, 130 interrupted).
    """

    exit = 1

    def __init__(self, code: str, message: str, *, cause: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.cause = cause
        self.hint = hint


class UsageError(EnvforgeError):
    """A wrong command line, configuration or name: exit 2."""

    exit = 2


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mistake:
    """One mistake in a file; ``line`` and ``column`` count from 1."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class InvalidFileError(UsageError):
    """A profile, recipe or configuration with mistakes, all of them at once."""

    def __init__(self, code: str, message: str, *, mistakes: tuple[Mistake, ...], hint: str | None = None) -> None:
        super().__init__(code, message, cause="\n".join(str(mistake) for mistake in mistakes), hint=hint)
        self.mistakes = mistakes


class LeftoverError(EnvforgeError):
    """A failure that left something to clean up: exit 4; the message says what."""

    exit = 4


class InterruptedByUserError(EnvforgeError):
    """SIGINT or SIGTERM: exit 130."""

    exit = 130
