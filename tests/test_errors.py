"""What a command says when it cannot go on."""

from __future__ import annotations

from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError


def test_a_problem_says_where_what_what_else_and_what_to_do() -> None:
    problem = Problem(file="environments/local.yaml", field="endpoints[0].mode", found="'x'", allowed="y", advice="z")
    assert str(problem).splitlines() == [
        "environments/local.yaml: endpoints[0].mode",
        "  found:   'x'",
        "  allowed: y",
        "  do:      z",
    ]


def test_a_problem_without_a_place_or_advice_has_no_empty_line() -> None:
    assert str(Problem(found="a", allowed="b")) == "  found:   a\n  allowed: b"
    assert str(Problem(field="NAME", found="a", allowed="b")).splitlines()[0] == "NAME"


def test_every_problem_is_in_the_error() -> None:
    problems = [Problem(found=name, allowed="b") for name in ("one", "two", "three")]
    error = InputError(problems)
    assert error.problems == tuple(problems)
    assert all(str(problem) in str(error) for problem in problems)


def test_wrong_input_and_failed_work_have_different_exit_codes() -> None:
    assert InputError([Problem(found="a", allowed="b")]).exit_code == 2
    assert WorkFailedError("x").exit_code == 1
    assert issubclass(InputError, TritonstackError)
    assert issubclass(WorkFailedError, TritonstackError)
