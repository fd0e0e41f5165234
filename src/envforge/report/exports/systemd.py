"""Units of systemd: a service that runs a command of the profile, and a timer that audits the environment."""

from __future__ import annotations

from collections.abc import Iterable

from envforge.model.export import Rendered, Subject

_REFUSED = 125
_BOOT = "120"  # seconds
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "%": "%%"}


def render(subject: Subject) -> Rendered:
    name, command = subject.environment, subject.command or ""
    # At boot the driver may come up later than the service.
    wait = ["--wait-gpu", _BOOT] if subject.profile.gpu is not None else []
    service = _unit(
        [
            ("Unit", [("Description", _plain(f"{command} in {name}")), ("Wants", "network-online.target"),
                      ("After", "network-online.target")]),
            ("Service", [
                ("Type", "exec"),
                *(("Environment", _quoted(f"{key}={value}")) for key, value in subject.profile.variables.items()),
                ("ExecStart", _words([*subject.program, "run", "--strict", *wait, name, command])),
                ("Restart", "on-failure"),
                # envforge refused: the environment is not what it was, and will not be in a second either
                ("RestartPreventExitStatus", str(_REFUSED)),
            ]),
            ("Install", [("WantedBy", "default.target")]),
        ]
    )  # fmt: skip
    audit = _unit(
        [
            ("Unit", [("Description", f"audit of {name}")]),
            ("Service", [("Type", "oneshot"), ("ExecStart", _words([*subject.program, "audit", name]))]),
        ]
    )
    timer = _unit(
        [
            ("Unit", [("Description", f"daily audit of {name}")]),
            ("Timer", [("OnCalendar", "daily"), ("RandomizedDelaySec", "1h"), ("Persistent", "true")]),
            ("Install", [("WantedBy", "timers.target")]),
        ]
    )
    stem = f"{name}-{_stem(command)}"
    return Rendered(
        files={f"{stem}.service": service, f"{name}-audit.service": audit, f"{name}-audit.timer": timer},
        lost=(
            f"the environment itself: `{name}` must be there on the host",
            "whose service it is: install it for the user that owns the home (`systemctl --user`), or add `User=`",
        ),
    )


def _unit(sections: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> str:
    parts = []
    for title, entries in sections:
        parts.append(f"[{title}]\n" + "".join(f"{key}={value}\n" for key, value in entries))
    return "\n".join(parts)


def _words(words: Iterable[str]) -> str:
    """Words of a command line; systemd would take a `$` for a variable."""
    return " ".join(_quoted(word).replace("$", "$$") for word in words)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(each, each) for each in text) + '"'


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("%", "%%")


def _stem(command: str) -> str:
    """``command`` as part of a unit's name."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in command)
