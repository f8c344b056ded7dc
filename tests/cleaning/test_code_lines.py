"""Code, console output and tables among sentences."""

from helpers.cleaning.code_lines import is_code, without_code


def test_program_text_is_told_from_sentences():
    for line in (
        "x <- 3",
        "library(lme4)",
        "}",
        "[1] 0.1 0.2 and more words than six in this line",
        "# a comment",
        "  12.5  13.1  0.001 ***",
        "Error in f(x) : object not found",
        "fit = lmer(y ~ x,",
    ):
        assert is_code(line), line
    for line in (
        "I think that is right.",
        "Thanks!",
        "",
        "(see the manual for more on this)",
        "HTH,",
        "1. Yes, so",
        "Größe spielt keine Rolle;",
    ):
        assert not is_code(line), line


def test_a_paragraph_of_output_goes_and_the_sentences_stay():
    lines = [
        "I tried this and it fails, so what now?",
        "",
        "fit <- lm(y ~ x,",
        "   data = d)",
        "summary(fit)",
        "",
        "Thanks!",
    ]
    assert [line for line in without_code(lines) if line] == [lines[0], lines[-1]]
