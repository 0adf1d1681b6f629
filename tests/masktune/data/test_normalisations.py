import pytest
from hypothesis import given
from hypothesis import strategies as st

from masktune.data.normalisations import NORMALISATIONS, normalisation, spelled
from masktune.errors import ConfigError

channel = st.floats(0.01, 10.0)
channels = st.tuples(channel, channel, channel)


@given(mean=channels, std=channels)
def test_what_is_spelled_out_reads_back_to_the_last_digit(mean, std):
    assert normalisation(spelled(mean, std)) == (mean, std)


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_a_known_normalisation_is_called_by_its_name(name):
    assert spelled(*NORMALISATIONS[name]) == name


def test_one_number_of_a_grey_model_stands_for_three():
    assert spelled((0.5,), (0.5,)) == "half"
    assert normalisation("0.5 / 0.5") == normalisation("half")


def test_commas_and_brackets_are_fine():
    assert normalisation("[0.485, 0.456, 0.406] / [0.229, 0.224, 0.225]") == normalisation(
        "imagenet"
    )


@pytest.mark.parametrize(
    "text", ["", "magic", "0.5", "0.5 / 0", "0.5 / -1", "1 2 / 3 4", "nan / 1", "0 / 1 / 2", "/"]
)
def test_what_cannot_be_read_is_said_with_an_example(text):
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        normalisation(text)

    assert "0.485 0.456 0.406 / 0.229 0.224 0.225" in caught.value.remedy
