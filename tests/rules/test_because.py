from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rules.small import MARKERS, dist, install, state, step

from envforge.model.plan import Because
from envforge.model.profile import Action, Step
from envforge.model.state import State
from envforge.rules.because import explain
from envforge.rules.diff import changes


def why(before: State, after: State, by: Step, *earlier: str, constraints: Any = None) -> Mapping[str, Because]:
    return explain(before, after, by, requested_before=earlier, markers=MARKERS, constraints=constraints or {})


def test_a_fresh_install_shows_the_chain_and_the_missing_upper_bound() -> None:
    after = state(
        dist("xinference 2.7.0", "modelscope; extra == 'all'"),
        dist("modelscope 1.0", "tokenizers>=0.2"),
        dist("tokenizers 0.22"),
    )
    causes = why({}, after, install("x", "xinference[all]"))
    assert {name: str(cause) for name, cause in causes.items()} == {
        "xinference": "the step asks for xinference[all]",
        "modelscope": "xinference 2.7.0 requires modelscope",
        "tokenizers": "modelscope 1.0 requires tokenizers>=0.2",
    }
    assert causes["tokenizers"].via == ("xinference", "modelscope")
    assert causes["modelscope"].via == ()


def test_the_shortest_chain_wins_and_ties_go_by_name() -> None:
    after = state(
        dist("app 1.0", "b", "a", "deep"),
        dist("a 1.0", "six"),
        dist("b 1.0", "six"),
        dist("deep 1.0", "deeper"),
        dist("deeper 1.0", "six"),
        dist("six 1.0"),
    )
    assert str(why({}, after, install("x", "app"))["six"]) == "a 1.0 requires six"


def test_a_replacement_is_explained_by_what_excludes_the_old_version() -> None:
    vllm = dist("vllm 0.10.0", "torch==2.7.1")
    before = state(vllm, dist("torch 2.7.1+cu126"))
    after = state(vllm, dist("xformers 0.0.32", "torch==2.8.0"), dist("torch 2.8.0"))
    assert str(why(before, after, install("x", "xformers"))["torch"]) == "xformers 0.0.32 requires torch==2.8.0"
    asked = why(before, after, install("x", "xformers", "torch>=2.8"))
    assert str(asked["torch"]) == "the step asks for torch>=2.8"


def test_what_came_with_the_step_is_named_before_what_was_there() -> None:
    before = state(dist("aaa 1.0", "six>=2"), dist("six 1.0"))
    after = state(dist("aaa 1.0", "six>=2"), dist("zzz 1.0", "six>=2"), dist("six 2.0"))
    assert why(before, after, install("x", "zzz"))["six"].distribution == "zzz"


def test_a_constraint_of_a_guard_is_named() -> None:
    before, after = state(dist("transformers 5.0")), state(dist("transformers 4.57"), dist("app 1.0", "transformers"))
    cause = why(before, after, install("x", "app"), constraints={"transformers": "transformers<5"})["transformers"]
    assert cause == Because(requirement="transformers<5", guard=True)
    assert str(cause) == "a guard constrains it to transformers<5"
    own = why(before, after, install("x", "app", constraints=("transformers<5",)))["transformers"]
    assert str(own) == "the step asks for transformers<5"


def test_an_older_version_is_chosen_because_the_newer_one_could_not_stay() -> None:
    before = state(dist("sentence-transformers 6.2.0", "transformers>=5"), dist("transformers 5.1.0"))
    after = state(dist("sentence-transformers 5.1.0", "transformers<6"), dist("transformers 4.57.6"))
    by = install("x", "transformers<5", "sentence-transformers")
    causes = why(before, after, by)
    assert str(causes["sentence-transformers"]) == "sentence-transformers 6.2.0 requires transformers>=5"
    assert str(causes["transformers"]) == "the step asks for transformers<5"


def test_an_upgrade_is_explained_by_what_asks_for_it_and_a_removal_by_nothing() -> None:
    before, after = state(dist("app 1.0", "six"), dist("six 1.0")), state(dist("app 2.0", "six"), dist("six 2.0"))
    causes = why(before, after, install("x", "app", upgrade=True))
    assert str(causes["app"]) == "the step asks for app"
    assert str(causes["six"]) == "app 2.0 requires six"
    assert why(before, {}, step("x", Action.UNINSTALL, "app", "six")) == {}
    assert why({}, after, step("x", Action.RUN, "make"))["six"].distribution == "app"


NAMES = st.sampled_from(["a", "b", "c", "d"])
LINES = st.lists(st.builds(str.__add__, NAMES, st.sampled_from(["", "<2", ">=2"])), max_size=3)
STATES = st.dictionaries(NAMES, st.tuples(st.sampled_from(["1", "2", "3"]), LINES)).map(
    lambda drawn: state(*(dist(f"{name} {version}", *lines) for name, (version, lines) in drawn.items()))
)


@given(STATES)
def test_nothing_differs_from_itself(one: State) -> None:
    assert changes(one, one) == ()
    assert why(one, one, install("x", "a")) == {}


@given(STATES, STATES)
def test_every_cause_is_real(before: State, after: State) -> None:
    by = install("x", "a>=1", "b")
    causes = why(before, after, by)
    changed = {change.name: change for change in changes(before, after)}
    assert causes.keys() <= {name for name, change in changed.items() if change.after is not None}
    assert {"a", "b"} & {name for name, change in changed.items() if change.after} <= causes.keys()
    for name, cause in causes.items():
        if cause.distribution is not None:
            owners = {before.get(cause.distribution), after.get(cause.distribution)} - {None}
            assert any(
                owner.version == cause.version and cause.requirement in owner.requires
                for owner in owners
                if owner is not None
            )
        else:
            assert name in {"a", "b"}


def test_what_one_side_does_not_know_is_no_difference() -> None:
    predicted = dist("six 1.0", sha256="x")
    assert changes(state(predicted), state(dist("six 1.0", sha256=None, contents="c", index=None))) == ()
    assert len(changes(state(predicted), state(dist("six 1.0", sha256="x", index="other")))) == 1
    assert len(changes(state(predicted), state(dist("six 1.0", sha256="y")))) == 1
    assert len(changes(state(dist("six 1.0", contents="a")), state(dist("six 1.0", contents="b")))) == 1
    assert len(changes(state(dist("six 1.0", sha256=None)), state(dist("six 1.0", sha256=None, build="1")))) == 1
