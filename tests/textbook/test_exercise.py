"""The check behind an exercise shows the first failing cases."""

from minilab.textbook import check

CASES = [((1,), 2), ((2,), 4), ((3,), 6), ((4,), 8)]


def test_a_right_answer(capsys):
    assert check(lambda x: 2 * x, CASES) is True
    assert capsys.readouterr().out == "All 4 cases are right.\n"


def test_a_wrong_answer_shows_two_cases_with_what_was_given(capsys):
    def double(x):
        return x + 2

    assert check(double, CASES) is False
    out = capsys.readouterr().out
    assert "1 of 4 cases are right." in out
    assert "double(1) gave 3; expected 2" in out and "double(3) gave 5; expected 6" in out
    assert "double(4)" not in out


def test_an_answer_that_is_not_written_or_raises(capsys):
    def empty(x):
        return ...

    def broken(x):
        raise KeyError("x")

    assert check(empty, CASES) is False
    assert "empty(1) is not written yet; expected 2" in capsys.readouterr().out
    assert check(broken, CASES) is False
    assert "broken(1) raised KeyError: 'x'; expected 2" in capsys.readouterr().out


def test_numbers_may_differ_in_the_last_digits_and_kinds_may_not():
    assert check(lambda x: 2 * x + 1e-9, CASES)
    assert not check(lambda x: 2 * x + 1e-3, CASES)
    assert not check(lambda x: str(2 * x), CASES)
