from __future__ import annotations

from rules.small import context, dist, found, install, profile, state, step

from envforge.model.plan import GuardVerdict, Verdict
from envforge.model.profile import Action, Forbid, Hold, Ignore, Keep, Symbol
from envforge.model.state import Observation
from envforge.rules.judge import judge
from envforge.rules.suggest import constrain_would_help
from envforge.rules.verdicts import over_time, verdicts

HOLD = Hold(requirement="transformers<5", because="vLLM 0.10.0 calls all_special_tokens_extended")
VLLM = dist("vllm 0.10.0", "transformers>=4.53.2", "torch")
TORCH = dist("torch 2.7.1")
OPEN = (install("vllm", "vllm"), state(VLLM, TORCH, dist("transformers 5.20.2")))
HEALED = (step("pin", Action.PIN, "transformers<5"), state(VLLM, TORCH, dist("transformers 4.57.6")))


def test_a_guard_is_opened_by_one_step_and_healed_by_another() -> None:
    about = profile(HOLD, Keep(names=("torch",)), Forbid(patterns=("x",)), Symbol(symbol="f", library="l.so"))
    said = {each.guard: each for each in verdicts(context(about, OPEN, HEALED))}
    assert list(said) == [
        "hold transformers<5",
        "keep torch",
        "forbid x",
        "symbol f in l.so",
        "one CUDA major",
        "consistent metadata",
        "no partial or clobbered distribution",
    ]
    assert said["hold transformers<5"] == GuardVerdict(
        guard="hold transformers<5",
        verdict=Verdict.HOLDS,
        because="vllm 0.10.0 requires transformers>=4.53.2",
        opened="vllm",
        healed="pin",
    )
    assert said["keep torch"] == GuardVerdict(guard="keep torch", verdict=Verdict.HOLDS)
    assert said["symbol f in l.so"].verdict is Verdict.UNKNOWN
    assert said["consistent metadata"].verdict is Verdict.HOLDS
    assert said["no partial or clobbered distribution"].verdict is Verdict.UNKNOWN


def test_files_are_judged_once_they_were_looked_at_and_symbols_are_not() -> None:
    about = context(profile(Symbol(symbol="f", library="l.so")), HEALED, observation=Observation(state={}))
    said = {each.guard: each.verdict for each in verdicts(about)}
    assert said["no partial or clobbered distribution"] is Verdict.HOLDS
    assert said["symbol f in l.so"] is Verdict.UNKNOWN


def test_an_open_guard_that_opened_again_names_the_last_opening() -> None:
    again = (install("again", "transformers>=5"), OPEN[1])
    said = verdicts(context(profile(HOLD), OPEN, HEALED, again))[0]
    assert (said.verdict, said.opened, said.healed) == (Verdict.OPEN, "again", None)
    assert said.because == "the step asks for transformers>=5"


def test_what_is_ignored_opens_nothing() -> None:
    about = profile(HOLD, ignore=(Ignore(id="hold-violated"),))
    assert verdicts(context(about, OPEN))[0].verdict is Verdict.HOLDS


def test_over_time_says_the_same_from_findings_that_are_known() -> None:
    about = profile(HOLD)
    judged = [(None, ())] + [
        (moment[0].name, judge(context(about, *told))) for moment, told in ((OPEN, [OPEN]), (HEALED, [OPEN, HEALED]))
    ]
    assert over_time(about, judged, context(about, HEALED).now) == verdicts(context(about, OPEN, HEALED))


def test_a_constraint_is_suggested_where_it_would_have_helped() -> None:
    about = profile(HOLD, Keep(names=("torch",)), Forbid(patterns=("vllm",)))
    (note,) = constrain_would_help(found(context(about, OPEN)), {HOLD})
    assert note.startswith("the guard `hold transformers<5` opens in step `vllm`: with `constrain: true`")


def test_no_constraint_is_suggested_where_the_resolver_found_none() -> None:
    about = profile(HOLD)
    assert constrain_would_help(found(context(about, OPEN)), set()) == ()
