"""Whatever is given as a dataset: one problem and one remedy, or the bad file listed by name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests.hostile.pictures import Case, make

NAMES = 69  # of the corpus: a case that is not made must not go unseen


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> tuple[Path, tuple[Case, ...]]:
    outer = tmp_path_factory.mktemp("outer")
    return outer, make(outer / "a" / "b" / "corpus")


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "above" not in path.parts}


def test_the_corpus_is_whole(corpus):
    assert len({case.name for case in corpus[1]}) == len(corpus[1]) == NAMES


@pytest.mark.parametrize("number", range(NAMES))
def test_each_ends_in_a_plain_word_and_writes_nothing_elsewhere(
    number, corpus, tmp_path, monkeypatch
):
    outer, cases = corpus
    case = cases[number]
    home = outer / "a" / "b" / "home"
    monkeypatch.setenv("MASKTUNE_HOME", str(home))
    before = files(outer)

    if case.bad is None:
        with pytest.raises(DataError, match=case.said) as caught:
            load("folder", root=case.root)
        assert caught.value.remedy.endswith(".")
        assert caught.value.problem.count("\n") == 0
        assert len(str(caught.value)) < 900
        assert not list(home.glob("uploads/.*")), "something was left behind"
    else:
        bundle = load("folder", root=case.root)
        ((path, reason),) = bundle.skipped
        assert path == case.bad
        assert case.said in reason
        assert len(bundle.train) + len(bundle.validation) + len(bundle.tests["test"]) >= 6
        assert case.bad.split("/")[-1] in bundle.left_out

    assert {path for path in files(outer) - before if not path.is_relative_to(home)} == set()


LOADING = """
import json, pathlib, resource, sys
from masktune.datasets.catalogue import load
from masktune.errors import DataError
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
load("folder", root=pathlib.Path(sys.argv[1]))
at_first = peak()
for root in sys.argv[2:]:
    try:
        load("folder", root=pathlib.Path(root))
    except DataError:
        pass
json.dump({"at first": at_first, "at last": peak()}, sys.stdout)
"""


@pytest.mark.slow
def test_the_whole_corpus_takes_little_memory(corpus, tmp_path, monkeypatch):
    # A bomb of 60,000 x 60,000 grey pixels would take 3,600 MB, and its RGB three times that.
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    roots = [str(case.root) for case in corpus[1]]
    easy = next(str(case.root) for case in corpus[1] if case.name == "nothing.jpg")

    out = subprocess.run(
        [sys.executable, "-c", LOADING, easy, *roots], capture_output=True, text=True, timeout=120
    )

    assert out.returncode == 0, out.stderr
    peak = json.loads(out.stdout)
    assert peak["at last"] - peak["at first"] < 150e6
