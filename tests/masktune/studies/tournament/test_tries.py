"""Which settings are to be tried, as people write it."""

import pytest

from masktune.errors import ConfigError
from masktune.studies.tournament.tries import tries_of, tries_words


def test_settings_are_read_with_values_of_their_kind_and_written_so_that_they_read_the_same():
    text = "heads=2,3  --penalty=0.5,10 accumulate=True,False layer=layer4.0"

    found = tries_of(text)

    assert found == {
        "heads": (2, 3),
        "penalty": (0.5, 10.0),
        "accumulate": (True, False),
        "layer": ("layer4.0",),
    }
    assert " ".join(tries_words(found)) == (
        "heads=2,3 penalty=0.5,10 accumulate=True,False layer=layer4.0"
    )
    assert tries_of("") == {}


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("penalty", "'penalty' names no setting with values", "such as worst-share=0.1,0.5"),
        ("penalty=", "'penalty=' names no setting with values", "no space"),
        ("start=erm,", "'start=erm,' names no setting with values", "no space"),
        ("penalty=1, 2", "'penalty=1,' names no setting with values", "no space"),
        ("cvar-alpha=1", "'cvar-alpha' is no setting of a method", "worst-share"),
        ("epochs=1,2", "'epochs' is no setting of a method", "have lists of their own"),
        ("heads=1.5", "heads is to be tried at '1.5'", "heads of DivDis"),
        ("penalty=1 penalty=2", "penalty is named twice", "at once"),
    ],
)
def test_what_says_nothing_to_try_is_refused_in_words(text, problem, remedy):
    with pytest.raises(ConfigError) as refused:
        tries_of(text)

    assert problem in refused.value.problem
    assert remedy in refused.value.remedy
