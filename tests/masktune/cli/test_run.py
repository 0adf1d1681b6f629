"""What ``run`` says on standard error before the epoch."""

import pytest

from masktune.cli.run import say
from masktune.scores.class_order import OtherOrder
from masktune.scores.flips import Change
from masktune.training.rates import NOT_STORED, FinetuneRate


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (FinetuneRate(lr=0.03, origin="as given", steps=19), ""),
        (
            FinetuneRate(lr=0.01, origin="as given", steps=19),
            "Warning, before the epoch: The finetune's rate, 0.01, times 19 steps is 0.19: under "
            "0.5 models hardly moved. Where hiding takes away what the model leans on, try "
            "--finetune-lr 0.027; a larger rate makes harm larger too.\n",
        ),
        (
            FinetuneRate(lr=0.05, origin=NOT_STORED, steps=0),  # Adam's steps are not compared
            "The finetune's rate is 0.05, the recipe's last one, as the file of the model stores "
            "none.\n",
        ),
    ],
)
def test_a_rate_that_is_too_small_or_has_nothing_to_do_with_the_model_is_said(capsys, rate, said):
    say(rate)

    found = capsys.readouterr()
    assert (found.out, found.err) == ("", said)


def test_another_order_of_the_classes_is_warned_of_with_the_words_to_give(capsys):
    say(
        OtherOrder(
            order=(1, 0), change=Change("all", count=100, right_before=1, fixed=98, broken=0)
        )
    )

    found = capsys.readouterr()
    assert found.out == ""
    assert "Of 100 validation pictures 1.0% are answered right as it is, 99.0% with " in found.err
    assert "--class-order 1,0 (+" in found.err


def test_of_several_processes_the_first_alone_warns(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")

    say(FinetuneRate(lr=0.01, origin="as given", steps=19))

    assert capsys.readouterr().err == ""
