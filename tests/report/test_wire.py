"""Changes and findings survive the journal."""

from __future__ import annotations

import json

import pytest
from report import samples

from envforge.model import wire
from envforge.model.plan import Because, Change


@pytest.mark.parametrize("change", [samples.BASE[0], samples.REPLACED, samples.HEALING])
def test_a_change_comes_back_with_all_that_its_shape_tells(change: Change) -> None:
    data = json.loads(json.dumps(wire.change(change)))
    back = wire.read_change(data)
    assert wire.change(back) == data
    assert str(back.because) == str(change.because)


def test_a_removed_distribution_comes_back_removed() -> None:
    removed = Change(name="six", before=samples.dist("six", "1.0"), after=None)
    back = wire.read_change(wire.change(removed))
    assert back.after is None
    assert back.because is None


@pytest.mark.parametrize("text", ["", "odd", "requires", "a requires b", "a 1 requires b requires c"])
def test_any_sentence_of_a_cause_can_be_read(text: str) -> None:
    data = {**wire.change(samples.REPLACED), "because": text}
    assert isinstance(wire.read_change(data).because, Because)


def test_a_finding_comes_back_equal() -> None:
    assert wire.read_finding(json.loads(json.dumps(wire.finding(samples.OPENED)))) == samples.OPENED


@pytest.mark.parametrize("data", [{}, {"id": "x", "severity": "none", "subject": "", "message": ""}])
def test_another_shape_is_refused(data: dict[str, str]) -> None:
    with pytest.raises((KeyError, ValueError)):
        wire.read_finding(data)


def test_heals_are_pairs() -> None:
    assert wire.heals((samples.OPENED,)) == [["hold-violated", "transformers"]]
