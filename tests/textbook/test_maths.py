"""Formulas between dollar signs become what MathJax, Anki and a terminal can show."""

from __future__ import annotations

from minilab.textbook.maths import mathjax, plain


def test_text_is_escaped_and_a_formula_gets_the_delimiters_that_anki_renders() -> None:
    assert mathjax("<b> if $a < b$ & $K + 1$") == r"&lt;b&gt; if \(a &lt; b\) &amp; \(K + 1\)"
    assert mathjax("no formula") == "no formula"


def test_a_terminal_gets_signs_for_commands() -> None:
    assert plain(
        r"chance is $\log(K + 1)$, $\theta_k \leftarrow m\,\theta_k$"
    ) == "chance is log(K + 1), θ_k ←m θ_k".replace("m θ", "mθ")
    assert plain("costs nothing") == "costs nothing"
