import csv
import hashlib
import json
import math
import os
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from plotly.offline import get_plotlyjs

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.settings import NOTHING_HIDDEN
from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.data.card import DatasetCard
from masktune.data.fingerprint import fingerprint
from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle, Split
from masktune.heat.clues import hidden_shares
from masktune.heat.store import HeatStore
from masktune.models.build import build
from masktune.report.accuracy import by_class, by_group, in_short, validation_words
from masktune.report.origin import (
    beside_controls,
    origins,
    repeat_command,
    settings,
)
from masktune.report.page import report_html
from masktune.report.seen import what_it_leans_on, what_was_hidden, where_it_looks
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.flips import answer_changes
from masktune.scores.json_types import as_type
from masktune.scores.predictions import Predictions
from masktune.scores.result import (
    MaskingResult,
    Pair,
    RunPredictions,
    RunResult,
    score_split,
    score_tests,
)
from masktune.show.contact_sheets import first_of_groups, hidden_pictures, looks, telling
from masktune.show.results import averages_table

CLASSES = ("cow", "camel")
PLACES = ("grass", "sand")
TRAINING = TrainConfig(epochs=12, batch_size=64, lr=0.01)
MADE = datetime(2026, 11, 17, 12, 30, tzinfo=UTC)


def split(name, count, *, classes=2, attributes=True, seed=0, side=28):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    places = torch.arange(count) // classes % 2
    return Split(
        name=name,
        images=TensorImages(
            torch.randint(0, 256, (count, 3, side, side), generator=generator).to(torch.uint8)
        ),
        labels=labels,
        attributes=places if attributes else torch.full((count,), -1),
    )


def answers(part, *, wrong, classes=2, seed=0):
    """Predictions that are right but at the positions ``wrong``, with distinct confidences."""
    labels = part.labels.numpy()
    said = labels.copy()
    said[list(wrong)] = (said[list(wrong)] + 1) % classes
    sure = np.random.default_rng(seed).uniform(0.6, 0.99, len(labels)).astype(np.float32)
    probabilities = np.repeat(((1 - sure) / (classes - 1))[:, None], classes, axis=1)
    probabilities[np.arange(len(labels)), said] = sure
    return Predictions(probabilities.astype(np.float32), labels, part.attributes.numpy())


def a_view(
    *,
    masking=None,
    names=CLASSES,
    places=PLACES,
    test_name="desert",
    title="Toy <herd>",
    side=28,
    rounds=None,
    stopped=False,
    wrong_before=(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23),
    wrong_after=(1, 0),
    config=None,
):
    masking = masking or MaskingConfig()
    classes = len(names)
    parts = {"classes": classes, "attributes": bool(places), "side": side}
    train = split("train", 4 * classes, seed=1, **parts)
    validation = split("validation", 4 * classes, seed=2, **parts)
    test = split(test_name, 12 * classes, seed=3, **parts)
    card = DatasetCard(
        key="biased-mnist-5k",
        title=title,
        summary="Cows & camels.",
        classes=names,
        attributes=places,
        size=(side, side),
        tests=(test_name,),
        recipe="biased-mnist-5k",
        bundled=True,
        layout="",
        source="drawn",
        licence="MIT",
    )
    bundle = DatasetBundle(card=card, train=train, validation=validation, tests={test_name: test})
    predictions = RunPredictions(
        validation=Pair(
            answers(validation, wrong=[1], classes=classes, seed=4),
            answers(validation, wrong=[0, 2], classes=classes, seed=5),
        ),
        tests={
            test_name: Pair(
                answers(test, wrong=wrong_before, classes=classes, seed=6),
                answers(test, wrong=wrong_after, classes=classes, seed=7),
            )
        },
    )
    config = config or RunConfig(
        dataset=card.key,
        recipe=card.recipe,
        arch="small-cnn",
        training=TRAINING,
        masking=masking,
    )
    heat = torch.rand(len(train), 8, 8, generator=torch.Generator().manual_seed(8))
    heated = masking.strategy not in ("random", "none")
    store = HeatStore(
        rounds=(heat, heat.flip(2))[: masking.rounds],
        size=(side, side),
        layer="features",
        method="xgradcam",
    )
    models = [
        Checkpoint(
            model=build("small-cnn", classes, seed=s), arch="small-cnn", classes=classes, lr=0.01
        )
        for s in (0, 1)
    ]
    records = rounds or [
        {
            "k": masking.k,
            "hidden_fraction": 0.0371,
            "empty_fraction": 0.125,
            "fitted": True,
            "train_accuracy": 0.9375,
        }
    ]
    result = RunResult(
        folder=Path("/runs/toy & more"),
        dataset=config.dataset,
        seed=0,
        config=config.to_json(),
        device="cpu",
        test=score_tests(predictions, bundle),
        validation=score_split("validation", predictions.validation, bundle),
        masking=as_type(
            MaskingResult, {"rounds": records, "layer": "features", "stopped_early": stopped}
        ),
        seconds={"train": 8.25, "heat": 1.5, "finetune": 0.75, "evaluate": 0.5},
        versions={"python": "3.11.7", "torch": "2.14.1"},
    )
    return OpenRun(
        result.folder,
        config=config,
        result=result,
        bundle=bundle,
        predictions=predictions,
        before=models[0],
        after=models[1],
        store=store if heated else None,
    )


class Page(HTMLParser):
    """What a browser would make of a page: tags, table values, texts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.values, self.texts, self.attributes = [], [], [], []
        held = re.compile('<span class="held">(.*?)</span>')  # one text, though it may not break
        self.feed(held.sub(r"\1", html.replace(get_plotlyjs(), "")).replace("<wbr>", ""))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        for name, value in attributes:
            if name == "data-csv":
                self.values += [v for row in csv.reader(value.splitlines()) for v in row]

    def handle_data(self, text):
        self.texts.append(text)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))


@pytest.fixture(scope="module")
def view():
    return a_view()


@pytest.fixture(scope="module")
def html(view):
    return report_html(view, made=MADE)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def numbers(value):
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers(part)]
    if isinstance(value, list):
        return [n for part in value for n in numbers(part)]
    return [value] if isinstance(value, float) else []


def test_the_page_asks_no_host_for_anything(html):
    own = html.replace(get_plotlyjs(), "")

    assert get_plotlyjs() in html
    assert not re.search(r"https?:|@import|<link|<iframe|\bsrc=", own)
    assert set(re.findall(r'href="(.)', own)) == {"#"}
    assert {found[:11] for found in re.findall(r"url\((.{11})", own)} == {"data:image/"}
    assert "default-src 'none'" in own


def test_every_number_of_the_result_is_on_the_page_in_full_precision(view, page):
    parts = ("test", "validation", "selective", "risk_coverage")
    wanted = [n for part in parts for n in numbers(view.result.to_json()[part])]
    wanted += numbers(view.result.to_json()["masking"]["rounds"])

    shown = set(page.values)

    assert len(wanted) > 100
    assert [n for n in wanted if str(n) not in shown] == []


def test_the_headline_says_what_happened_to_the_worst_group_with_n_and_interval(page):
    # Camels: 12 of 12 wrong before, 1 after. 6 on grass and 6 on sand; position 1 is on grass.
    assert (
        "Tuning helped the worst group of “desert” (camel, grass): from 0.0% to 83.3%, +83.3 "
        "points. 2 of 4 groups clearly gained, most camel, sand (+100.0)." in page.text
    )
    assert "Before: 0.0% (camel, grass; n = 6; 95% interval 0.0 to 39.0%)" in page.text
    assert "After: 83.3% (cow, grass; n = 6; 95% interval 43.6 to 97.0%)" in page.text


def test_the_three_averages_have_their_full_names(page):
    for name in ("Test average", "Train-weighted average", "Group mean"):
        assert name in page.texts
    # 12 of 24 right before, 22 after.
    assert "91.7%" in page.texts
    assert "from 50.0%" in page.texts


def test_the_worst_group_stands_with_its_own_number_of_pictures():
    # Wrong before are 6 of 6 camels on grass, wrong after 3 of 7 cows on sand.
    view = a_view(wrong_before=(1, 5, 9, 13, 17, 21), wrong_after=(2, 6, 10))
    test = replace(view.tests["desert"])
    scores = [replace(s, count=7) if s == test.after.worst else s for s in test.after.scores]
    shown = replace(test, after=replace(test.after, scores=tuple(scores)))

    cell = averages_table(shown).rows[0][2]

    assert (cell.text, cell.small, cell.values) == ("7", "before 6", (7,))


def test_nothing_in_the_report_leads_to_pictures_that_only_an_app_could_open(html):
    assert "shown=" not in html


def test_fixed_and_broken_answers_are_counted_side_by_side(view, page):
    counted = view.result.to_json()["flips"]["desert"]
    # Cow and camel, each on grass and on sand; six pictures a group.
    by_group = [(group["fixed"], group["broken"]) for group in counted["groups"]]
    assert (counted["fixed"], counted["broken"]) == (11, 1)
    assert by_group == [(0, 1), (0, 0), (5, 0), (6, 0)]
    assert "11 fixed" in page.text
    assert "1 broken" in page.text
    assert "net +10 right" in page.text


def test_a_bad_result_is_called_bad():
    bad = a_view(wrong_before=(0,), wrong_after=tuple(range(24)))

    page = Page(in_short(bad, [*bad.tests.values()]))

    assert "Tuning harmed the worst group of “desert”" in page.text
    assert ("class", "down") in page.attributes
    assert "net −23 right" in page.text


def test_without_attributes_the_worst_class_stands_in_for_the_worst_group():
    page = Page(report_html(a_view(places=())))

    assert "the worst class (stands in for the worst group) of “desert”" in page.text
    assert "Worst class (stands in for the worst group)" in page.texts
    assert "Group mean" in page.texts
    assert "plain mean over 2 classes, n = 24" in page.texts


def test_hostile_names_are_text_not_markup(page):
    hostile = ("</script><script>alert(1)</script>\"'>", "<img src=x onerror=alert(1)>")
    named = a_view(
        names=hostile, places=("<b>", "&amp;"), test_name="<iframe>", title="<svg onload=alert(1)>"
    )
    html = report_html(named)
    dangerous = Page(html)

    assert dangerous.tags == page.tags
    assert not {name for name, _ in dangerous.attributes if name.startswith("on")}
    assert hostile[1] in dangerous.text
    assert "alert(1)</script>" not in html


def test_text_from_files_and_settings_is_escaped(html):
    assert "/runs/toy &amp; more" in html
    assert "Toy &lt;herd&gt;" in html
    assert "Cows &amp; camels." in html


def test_figures_are_data_that_names_cannot_end_early(html):
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', html, flags=re.DOTALL)

    specs = [json.loads(block) for block in blocks]

    assert len(specs) == 5
    assert all(spec["config"]["displayModeBar"] is False for spec in specs)
    assert all("template" not in spec["layout"] for spec in specs)


def test_every_figure_and_tile_has_words_for_those_who_cannot_see_it(page):
    pictured = [value for name, value in page.attributes if name == "role" and value == "img"]
    words = [value for name, value in page.attributes if name == "aria-label"]

    assert len(pictured) > 40
    assert all(words)
    assert any(word.startswith("Accuracy by group. cow, grass before: ") for word in words)
    assert sum(word.startswith("Difference, position ") for word in words) == 8


def test_captions_give_group_answers_and_what_became_of_them(page):
    assert "cow → cow" in page.texts
    assert "camel, sand" in page.texts
    for state in ("fixed", "broken", "still wrong", "still right"):
        assert state in page.text


@pytest.mark.parametrize(
    ("strategy", "row"),
    [("random", "Hidden"), ("topk", "Hidden"), ("global", "Hidden"), ("soft", "Model sees")],
)
def test_every_strategy_shows_what_it_hid(strategy, row):
    rows, shares = hidden_pictures(a_view(masking=MaskingConfig(strategy=strategy)), [0, 1])

    assert list(rows)[-1] == row
    assert ("Heat" in rows) == (strategy != "random")
    assert all(0 < share < 1 for share in shares)


@pytest.mark.parametrize(
    ("masking", "words"),
    [
        (MaskingConfig(), "what is hatched was black, as in the paper."),
        (MaskingConfig(fill="mean"), "what is hatched was the mean colour of what is left"),
        (MaskingConfig(strategy="paste"), "the same place in a picture of another class"),
    ],
)
def test_the_report_says_and_shows_what_stood_where_pixels_were_hidden(masking, words):
    view = a_view(masking=masking)
    rows, _ = hidden_pictures(view, [0, 1])

    page = Page(what_was_hidden(view, [*view.tests.values()]))

    assert words in page.text
    assert ("Model sees" in rows) == (masking != MaskingConfig())


def test_the_control_without_hiding_says_that_nothing_was_hidden():
    view = a_view(masking=MaskingConfig(strategy="none"))

    page = Page(report_html(view))

    assert "Nothing. This run is the control that only trains longer." in page.texts
    assert "not used" in page.texts
    assert "Difference" in page.texts
    assert "Hidden area against k" not in page.texts


def test_the_random_control_is_shown_with_its_windows():
    view = a_view(masking=MaskingConfig(strategy="random"))

    page = Page(what_was_hidden(view, [*view.tests.values()]))

    assert "Hidden" in page.texts
    assert "Heat" not in page.texts


def rounds_of_two():
    return [
        {
            "k": 2.0,
            "hidden_fraction": 0.01 * number,
            "empty_fraction": 0.0,
            "fitted": number == 1,
            "train_accuracy": 0.9 - 0.3 * number,
            "test": {"desert": {"average": 0.1 * number, "worst_group": 0.01 * number}},
        }
        for number in (1, 2)
    ]


def test_one_round_is_shown_with_its_training_accuracy_and_old_runs_without():
    view = a_view()
    record = view.result.to_json()["masking"]["rounds"][0]
    old = a_view(rounds=[{k: v for k, v in record.items() if k != "train_accuracy"}])

    page, old_page = (Page(what_was_hidden(v, [*v.tests.values()])) for v in (view, old))

    assert "93.8%" in page.texts
    assert "Fitted" not in page.texts
    assert "93.8%" not in old_page.texts
    assert "–" in old_page.texts


def test_several_rounds_are_shown_one_by_one():
    view = a_view(masking=MaskingConfig(rounds=2), rounds=rounds_of_two(), stopped=True)

    page = Page(what_was_hidden(view, [*view.tests.values()]))

    assert {"Heat 1", "Hidden 1", "Heat 2", "Hidden 2"} <= set(page.texts)
    assert "Accuracy by round" in page.texts
    assert "Round 2 left too little to learn from" in page.text
    assert "60.0%" in page.texts
    assert "no" in page.texts


def test_a_later_round_also_hides_what_earlier_rounds_hid():
    fitted = [{**record, "fitted": True} for record in rounds_of_two()]
    view = a_view(masking=MaskingConfig(rounds=2, k=1.0), rounds=fitted)
    first = a_view(masking=MaskingConfig(k=1.0))

    (both, hidden), (one, hidden_first) = hidden_pictures(view, [0]), hidden_pictures(first, [0])

    assert hidden[0] > hidden_first[0]
    assert (both["Hidden 1"][0] == one["Hidden"][0]).all()


def test_many_classes_stay_readable_and_the_table_holds_all():
    names = tuple(f"class {number}" for number in range(30))
    view = a_view(names=names, places=(), wrong_before=range(0, 60), wrong_after=range(10))

    tests = [*view.tests.values()]

    page = Page(by_group(view, tests) + by_class(tests) + where_it_looks(view, tests))

    assert "6 more classes, served better, are in the table." in page.texts
    assert page.values.count("class 29") >= 2
    tiles = [v for n, v in page.attributes if n == "aria-label" and v.startswith("Difference, pos")]
    assert len(tiles) == 24


def test_photographs_are_stored_small():
    photos, digits = a_view(side=96), a_view()

    assert "data:image/jpeg" in where_it_looks(photos, [*photos.tests.values()])
    assert "data:image/png" in where_it_looks(digits, [*digits.tests.values()])


def test_the_command_repeats_the_run(monkeypatch):
    from masktune import pipeline
    from masktune.cli import main as cli

    seen = []

    def pretend(config, **_):
        seen.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run", pretend)
    config = replace(
        a_view().config,
        masking=MaskingConfig(
            strategy="topk", top_fraction=0.1, rounds=3, accumulate=False, layer="a b"
        ),
        model="my models/w.pt",
        finetune_lr=0.003,
        seed=7,
        device="cpu",
    )

    program, *arguments = shlex.split(repeat_command(config))
    cli.main(arguments[2:])

    assert (program, arguments[:2]) == ("python", ["-m", "masktune"])
    assert seen == [config]


def test_the_command_of_a_run_whose_recipe_is_gone_names_the_recipe_of_its_pictures():
    known = replace(a_view().config, dataset="biased-mnist-5k")

    command = repeat_command(replace(known, recipe="of-old"))

    assert command == repeat_command(replace(known, recipe="biased-mnist-5k"))


def test_settings_versions_and_times_are_listed(page):
    for text in ("masking.k", "2.0", "torch", "2.14.1", "8.2 s", "11.0 s", "small-cnn", "not set"):
        assert any(text in shown for shown in page.texts), text


def test_the_same_run_gives_the_same_page_and_leaves_its_models_alone(view, html):
    before = {name: value.clone() for name, value in view.before.model.state_dict().items()}
    modes = [module.training for module in view.before.model.modules()]

    again = report_html(view, made=MADE)

    assert again == html
    weights = view.before.model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in before.items())
    assert [module.training for module in view.before.model.modules()] == modes


def test_pictures_cover_every_group_and_every_kind_of_answer(view):
    pair = view.predictions.tests["desert"]

    chosen = telling(pair)

    groups = [(int(pair.before.labels[p]), int(pair.before.attributes[p])) for p in chosen]
    assert len(chosen) == len(set(chosen)) == 8
    assert set(groups) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert groups == sorted(groups)
    # Wrong after are only 1 (wrong before too) and 0.
    kinds = answer_changes(pair.before, pair.after)
    assert {kinds[p] for p in chosen} == {"fixed", "broken", "still wrong", "still right"}
    assert {0, 1} <= set(chosen)


def test_pictures_are_the_first_of_their_kind():
    # One group, nothing ever wrong: the first eight.
    part = split("x", 20, attributes=False)
    part = replace(part, labels=torch.zeros(20, dtype=torch.int64))
    right = answers(part, wrong=[])

    assert telling(Pair(right, right)) == list(range(8))


def test_a_test_set_smaller_than_the_sheet_is_shown_whole():
    part = split("x", 3)
    right = answers(part, wrong=[])

    assert sorted(telling(Pair(right, right))) == [0, 1, 2]


def test_of_too_many_groups_those_served_worst_before_are_shown():
    part = split("x", 30, classes=30, attributes=False)
    before = answers(part, wrong=[20, 25, 29], classes=30)

    chosen = telling(Pair(before, before), count=3, most=3)

    assert chosen == [20, 25, 29]


def test_training_pictures_come_from_every_group_in_turn():
    # Labels 0 0 0 0 1, attributes 0 0 0 1 0: the groups hold 0 1 2, then 3, then 4.
    part = replace(
        split("train", 5),
        labels=torch.tensor([0, 0, 0, 0, 1]),
        attributes=torch.tensor([0, 0, 0, 1, 0]),
    )

    assert first_of_groups(part, count=4) == [0, 1, 3, 4]
    assert first_of_groups(part) == [0, 1, 2, 3, 4]


def test_heat_of_both_models_is_shown_beside_the_picture(view):
    part = view.bundle.tests["desert"]

    found = looks(view, part, [3, 5])

    assert found.before.shape == found.after.shape == (2, 28, 28)
    assert not np.allclose(found.before, found.after)
    assert 0 <= found.before.min() < found.before.max() <= 1
    assert (found.pictures[0] == part[3].image.permute(1, 2, 0).numpy()).all()
    rows = found.rows()
    assert list(rows) == ["Picture", "Before", "After", "Difference"]
    assert {tile.shape for row in rows.values() for tile in row} == {(224, 224, 3)}


def test_the_report_looks_as_the_run_did(view):
    # The same pictures through the function that the run itself uses for its heat.
    from masktune.heat.explain import explain
    from masktune.heat.xgradcam import upsample

    part = view.bundle.tests["desert"]
    small = replace(
        part,
        images=TensorImages(part.images.batch([3, 5])),
        labels=part.labels[[3, 5]],
        attributes=part.attributes[[3, 5]],
    )
    store = explain(view.before.model, small, layer="features", preprocess=view.preprocess)
    coarse = store.rounds[0]

    found = looks(view, part, [3, 5]).before

    assert np.allclose(found, upsample(coarse, (28, 28)).numpy(), atol=1e-5)


def test_a_larger_k_never_hides_more(view):
    found = hidden_shares(view.store, (0.0, 1.0, 2.0), statistics="positive")[:, [0, 3, 5]]
    shares = found.mean(axis=1).tolist()

    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0
    assert math.isclose(shares[2], np.mean(hidden_pictures(view, [0, 3, 5])[1]))


def test_the_words_of_the_report_are_the_projects_words(page):
    assert "abstained" in page.text
    assert not re.search(r"reject|WGA|saliency|held back", page.text, flags=re.IGNORECASE)


RATES = (0.0025, 0.001)


def test_the_rate_that_every_round_was_finetuned_at_is_told():
    rounds = [{**record, "lr": lr} for record, lr in zip(rounds_of_two(), RATES, strict=True)]

    rows = dict(origins(a_view(rounds=rounds).result))

    assert rows["finetuning rate: round 1"] == "0.0025"
    assert rows["finetuning rate: round 2"] == "0.001"


def test_what_a_rival_found_out_is_told_and_it_is_set_beside_no_control():
    view = a_view(config=replace(a_view().config, masking=NOTHING_HIDDEN, rival="dfr"))
    found_out = {"C": 0.7, "heads": {"first": 0.5}}

    rows = dict(origins(replace(view.result, rival=found_out)))

    assert (rows["found out: C"], rows["found out: heads.first"]) == ("0.7", "0.5")
    assert beside_controls(view) == {}


def test_the_report_says_which_clue_the_model_leans_on():
    view = a_view()
    heat = 0.01 * torch.rand(8, 8, 8, generator=torch.Generator().manual_seed(0))
    heat[:, 0, 0] = 1.0
    heat[1::2] = heat[1::2].flip(1, 2)  # cows are looked at top left, camels bottom right
    store = replace(view.store, rounds=(heat,))

    page = Page(what_it_leans_on(with_parts(view, store=store)))

    assert "In 50.0% of the pictures it looks at the top left" in page.text
    assert "In 50.0% of the pictures it looks at the bottom right" in page.text
    assert "Mean heat by group" in page.texts
    assert "mean heat, camel, sand" in dict.fromkeys(v for n, v in page.attributes)


def test_a_run_without_heat_says_that_it_cannot_tell_the_clue():
    view = a_view(masking=MaskingConfig(strategy="none"))

    assert "cannot say what the model leans on" in Page(what_it_leans_on(view)).text


PARTS = ("config", "result", "bundle", "predictions", "before", "after", "store")


def with_parts(view, path=None, **parts):
    known = {name: getattr(view, name) for name in PARTS}
    return OpenRun(path or view.path, **{**known, **parts})


def stored(view, folder):
    """Write what tells a finished run from others."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(view.config.to_json()))
    (folder / "result.json").write_text(json.dumps(view.result.to_json()))
    return folder


def test_controls_with_the_same_start_stand_beside_the_run_and_missing_ones_are_not_there(tmp_path):
    control = a_view(masking=MaskingConfig(strategy="random"), wrong_after=(0, 1, 2, 3))
    stored(control, tmp_path / "control")
    other = a_view(masking=MaskingConfig(strategy="none"))
    stored(with_parts(other, config=replace(other.config, seed=7)), tmp_path / "other seed")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text("{")
    view = a_view()
    run = with_parts(view, stored(view, tmp_path / "run"))

    page = Page(beside_controls(run)["Controls"])

    # 4 of 24 wrong after the control.
    assert f"{20 / 24:.1%}" in page.texts
    assert "not there" in page.texts
    missing = (
        "Not there beside this run when the report was written: Control: one more epoch, nothing"
    )
    assert missing in page.text


@pytest.mark.parametrize(("wrong_after", "in_headline"), [((1, 0), True), (range(24), False)])
def test_the_report_says_in_short_which_controls_came_as_far(tmp_path, wrong_after, in_headline):
    control = a_view(masking=MaskingConfig(strategy="none"), wrong_after=wrong_after)
    answers = stored(control, tmp_path / "control") / "predictions.npz"
    answers.write_bytes(control.predictions.to_bytes())
    view = a_view()
    run = with_parts(view, stored(view, tmp_path / "run"))

    sentence = "Beside the control “one more epoch, nothing hidden” this run is, on “desert”,"
    assert sentence in Page(beside_controls(run)["Controls"]).text
    assert (sentence in Page(in_short(run, [*run.tests.values()])).text) is in_headline


def test_a_control_may_have_taken_the_model_that_the_run_trained(tmp_path):
    view = a_view()
    folder = stored(view, tmp_path / "run")
    (folder / "before.safetensors").write_bytes(b"before")
    control = a_view(masking=MaskingConfig(strategy="random"), wrong_after=(0, 1, 2, 3))
    given = replace(control.config, model=str(folder / "before.safetensors"), arch="auto")
    stored(with_parts(control, config=given), tmp_path / "control")

    page = Page(beside_controls(with_parts(view, folder))["Controls"])

    assert f"{20 / 24:.1%}" in page.texts


def test_settings_that_were_left_open_are_told_as_they_were_used(view):
    told = dict(settings(view))

    assert told["frame"] == "as stored, 28 x 28 (chosen by the run)"
    assert told["masking.layer"] == "features (chosen by the run)"
    assert told["root"] == "not set"


def test_the_report_calls_the_pictures_as_they_were_named(view):
    named = with_parts(view, config=replace(view.config, title="Herd of <mine>"))

    html = report_html(named)

    assert "<title>Herd of &lt;mine&gt;: report" in html
    assert "Toy &lt;herd&gt;" not in html


def test_the_report_has_dates_checksums_and_the_name_and_note_of_the_run(tmp_path):
    view = a_view()
    folder = stored(view, tmp_path / "run")
    (folder / "before.safetensors").write_bytes(b"before")
    about = {"name": "<Mine>", "note": "a & b", "created": MADE.timestamp() - 7200}
    (folder / "about.json").write_text(json.dumps(about))
    os.utime(folder / "result.json", times=(MADE.timestamp() - 3600,) * 2)

    page = Page(report_html(with_parts(view, folder), made=MADE))

    assert "Report of 17 November 2026, 12:30 UTC." in page.text
    # By its start, as the app calls it.
    assert "Run started 17 November 2026, 10:30 UTC, finished 17 November 2026, 11:30" in page.text
    assert hashlib.sha256(b"before").hexdigest() in page.texts
    assert fingerprint(view.bundle) in page.texts
    assert "<Mine>" in page.texts
    assert "a & b" in page.texts


def test_a_validation_that_tells_another_story_than_the_test_is_pointed_out():
    view = a_view(wrong_before=range(20), wrong_after=range(20))
    (desert,), few = [*view.tests.values()], view.validation
    times = np.arange(125 * len(few)) % len(few)  # the same answers 125 times: enough to be sure
    many = Pair(
        *(
            Predictions(p.probabilities[times], p.labels[times], p.attributes[times])
            for p in (few.pair.before, few.pair.after)
        )
    )
    large = OpenSplit.of(view, score_split("validation", many, view.bundle))

    said = validation_words(large, desert)

    assert "87.5% against 16.7% before" in said
    assert "validation cannot vouch for this test set" in said
    assert validation_words(desert, desert) == ""


TAKEN = {
    "label": "all",
    "attribute": "any",
    "count": 40,
    "right_before": 40,
    "fixed": 0,
    "broken": 30,
    "hidden_fraction": 0.1,
    "empty": 3,
    "clue": {"share": 0.9, "pictures": 40},
}


def test_the_report_says_what_hiding_took_away_before_the_epoch_where_the_run_looked():
    group = {**TAKEN, "label": "cow", "attribute": "grass"}
    hiding = {"verdict": "leans on", "of": 40, "by": "group", "whole": TAKEN, "groups": [group]}
    looked = {"k": 2.0, "hidden_fraction": 0.1, "empty_fraction": 0.0, "hiding": hiding}

    page = Page(report_html(a_view(rounds=[looked]), made=MADE))

    assert "Hiding takes away what the model leans on. It breaks cow, grass" in page.text
    assert "10.0% of the picture and 90.0% of the clue are hidden" in page.text
    assert "In 3 of 40 pictures (7.5%) nothing is hidden." in page.text
    assert "The rule: a group breaks when" in page.text
    assert ("href", "#before-the-epoch") in page.attributes


def test_the_report_of_a_run_that_did_not_look_has_no_such_section(page):
    assert "Before the epoch" not in page.text
