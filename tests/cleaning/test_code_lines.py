"""Code, console output and tables among sentences."""

import pytest

from helpers.cleaning.code_lines import is_code, is_program_output, without_code


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


@pytest.mark.parametrize(
    "line",
    [
        "[  6%] Building C object host/a.c.obj",
        "D:/dev/SDL/src/core/a.c:135:5: error: ISO C90 forbids mixed declarations",
        "Can't use string as an ARRAY ref at Network.pm line 52.",
        "[Mon Jan  5 12:00:00 2015] INFO: Opened log file",
        "-- Found OpenGL: /usr/lib/libGL.so",
        "main.cpp: In function ‘int main()’:",
        "a.obj : error LNK2019: unresolved external symbol",
    ],
)
def test_output_of_programs(line):
    assert is_program_output(line)


@pytest.mark.parametrize(
    "line",
    [
        "I get an error when I build it: what is wrong?",
        "At 10:15: we meet, or at 12:30: both are fine.",
        "INFO is a level of the log",
        "see line 52 of it",
        "-- jane",
        "",
    ],
)
def test_sentences_are_no_output(line):
    assert not is_program_output(line)
