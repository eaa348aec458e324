"""How a preparation says what it did and what failed."""

from __future__ import annotations

from tritonstack.engines.gpu_step import EngineFailedError
from tritonstack.engines.prepare_plan import EngineTime, Failure, Prepared, PrepareFailedError, PrepareSummary
from tritonstack.engines.stored_archives import Place
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.naming import ArchiveName, Platform

BERT, RESNET = (ArchiveName(model=model, digest="0" * 16) for model in ("bert", "resnet"))
PLACE = Place(endpoint="one", platform=Platform(release="24.09", gpu="t4"))
EMPTY = PrepareSummary(bucket="b", archives=())
WRONG = InputError([Problem(file="recipe.yaml", field="engine", found="nothing", allowed="shapes")])


def test_the_summary_counts_outcomes_and_names_the_engines_machines() -> None:
    engine = EngineTime(model="bert", machine="ml.g4dn.xlarge", seconds=411.6, run="a")
    archives = (
        *[Prepared(name=RESNET, place=PLACE, outcome="there already")] * 3,
        Prepared(name=RESNET, place=PLACE, outcome="copied"),
        Prepared(name=BERT, place=PLACE, outcome="built", engines=(engine,)),
        Prepared(name=RESNET, place=PLACE, outcome="built"),
    )
    summary = PrepareSummary(bucket="b", archives=archives)
    assert str(summary) == "3 there already, 1 copied, 2 built (engine 412 s on ml.g4dn.xlarge)"


def test_several_engines_are_counted_by_machine_and_a_shared_one_once() -> None:
    times = [
        EngineTime(model=model, machine="ml.g4dn.xlarge", seconds=10, run=run)
        for model, run in (("bert-0", "a"), ("resnet", "b"), ("bert-1", "a"))
    ]
    archives = tuple(Prepared(name=BERT, place=PLACE, outcome="built", engines=(time,)) for time in times)
    assert "(2 engines 20 s on ml.g4dn.xlarge)" in str(PrepareSummary(bucket="b", archives=archives))


def test_nothing_to_do_says_so() -> None:
    assert str(EMPTY) == "nothing to prepare"


def test_the_last_lines_are_one_for_each_failure_in_the_form_that_a_deployment_finds() -> None:
    engine = EngineFailedError(reason="no\ntactic", log_tail=["[E] one", "[E] two"], link="https://log")
    failures = [
        Failure(phase="engine", name=BERT, error=engine),
        Failure(phase="export", name=RESNET, error=WorkFailedError("export failed:\n  line")),
    ]
    said = str(PrepareFailedError(failures, left=[BERT], summary=EMPTY)).splitlines()
    assert said[-2:] == [
        f"FAILED in phase engine of {BERT}: no tactic (log: https://log)",
        f"FAILED in phase export of {RESNET}: export failed: line",
    ]
    assert "  [E] two" in said
    assert f"given up, since another failed: {BERT}" in said


def test_a_failure_before_anything_was_done_does_not_say_that_something_stays() -> None:
    failure = Failure(phase="export", name=BERT, error=WorkFailedError("no space left"))
    said = str(PrepareFailedError([failure], left=(), summary=EMPTY))
    assert said == f"FAILED in phase export of {BERT}: no space left"


def test_a_long_reason_is_cut_and_keeps_its_link() -> None:
    line = str(Failure(phase="engine", name=BERT, error=EngineFailedError(reason="x" * 5000, link="https://log")))
    assert len(line) < 700
    assert line.endswith("… (log: https://log)")


def test_wrong_input_alone_ends_with_2_and_failed_work_with_1() -> None:
    wrong, failed = (Failure(phase="order", name=BERT, error=error) for error in (WRONG, WorkFailedError("no")))
    assert PrepareFailedError([wrong, wrong], left=(), summary=EMPTY).exit_code == 2
    assert PrepareFailedError([wrong, failed], left=(), summary=EMPTY).exit_code == 1


def test_of_wrong_input_the_line_has_the_first_problem_and_the_message_all() -> None:
    problems = [Problem(file="a", field=field, found="x", allowed="y", advice="mend it") for field in ("b", "c", "d")]
    failure = Failure(phase="order", name=BERT, error=InputError(problems))
    assert failure.reason == "3 problems, the first: b: x; allowed: y; do: mend it"
    assert str(PrepareFailedError([failure], left=(), summary=EMPTY)).count("mend it") == 4
