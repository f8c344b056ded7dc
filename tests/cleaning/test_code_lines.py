"""Code, console output and tables among sentences."""

from helpers.cleaning.code_lines import is_code, without_code


def test_program_text_is_told_from_sentences():
    code = ["x <- 3", "library(lme4)", "}", "# a comment", "  12.5  13.1  0.001 ***"]
    code += ["[1] 0.1 0.2 and more words than six in this line", "fit = lmer(y ~ x,"]
    prose = ["I think that is right.", "Thanks!", "", "HTH,", "Größe spielt keine Rolle;"]
    prose += ["(see the manual for more on this)", "1. Yes, so"]
    assert [line for line in code if not is_code(line)] == []
    assert [line for line in prose if is_code(line)] == []


def test_a_paragraph_of_output_goes_and_the_sentences_stay():
    lines = ["I tried this and it fails, so what now?", "", "fit <- lm(y ~ x,", "   data = d)"]
    lines += ["summary(fit)", "", "Thanks!"]
    assert [line for line in without_code(lines) if line] == [lines[0], lines[-1]]
