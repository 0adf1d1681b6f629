import copy

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes, load_checkpoint
from masktune.errors import ModelError
from masktune.models.build import build
from masktune.models.class_map import with_class_map


class Fixed(nn.Module):
    """Gives its input as logits."""

    def forward(self, logits):
        return {"logits": logits}


def test_a_class_gets_the_highest_logit_of_those_that_belong_to_it():
    # Logits 0 and 2 belong to class 1, logit 1 to class 0, logit 3 to class 2.
    model = with_class_map(Fixed(), (1, 0, 1, 2))

    out = model(torch.tensor([[1.0, 5.0, 3.0, -2.0], [9.0, 0.0, 0.0, 4.0]]))

    assert out.tolist() == [[5.0, 3.0, -2.0], [0.0, 9.0, 4.0]]


def test_the_answer_is_the_class_of_the_models_own_answer_also_in_a_copy():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 40, generator=generator)
    classes = (*range(7), *torch.randint(0, 7, (33,), generator=generator).tolist())

    answers = copy.deepcopy(with_class_map(Fixed(), classes))(logits).argmax(dim=1)

    assert torch.equal(answers, torch.tensor(classes)[logits.argmax(dim=1)])


def test_learning_moves_only_the_logit_that_spoke():
    logits = torch.tensor([[1.0, 5.0, 3.0]], requires_grad=True)

    with_class_map(Fixed(), (0, 1, 0))(logits)[0, 0].backward()

    assert logits.grad.tolist() == [[0.0, 0.0, 1.0]]


@pytest.fixture
def twelve(tmp_path):
    """A checkpoint of twelve classes, as somebody else would keep it."""
    model = build("resnet20", 12)
    torch.save(model.state_dict(), tmp_path / "twelve.pth")
    return tmp_path / "twelve.pth"


POOL = (0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2)


def test_a_checkpoint_of_finer_classes_answers_in_the_datasets_and_remembers_it(twelve, tmp_path):
    images = torch.rand(4, 3, 32, 32)
    plain = load_checkpoint(twelve)

    found = load_checkpoint(twelve, classes=3, pool=POOL)
    (tmp_path / "kept.safetensors").write_bytes(checkpoint_bytes(found))
    again = load_checkpoint(tmp_path / "kept.safetensors", classes=3)

    with torch.no_grad():
        want = torch.tensor(POOL)[plain.model(images).argmax(dim=1)]
        assert torch.equal(found.model(images).argmax(dim=1), want)
        assert torch.equal(again.model(images), found.model(images))
    assert again.class_map == POOL
    assert again.model.state_dict().keys() == plain.model.state_dict().keys()


def test_a_head_of_the_datasets_own_classes_is_not_pooled(tmp_path):
    model = build("resnet20", 3)
    own = Checkpoint(model=model, arch="resnet20", classes=3, lr=None)
    (tmp_path / "own.safetensors").write_bytes(checkpoint_bytes(own))

    found = load_checkpoint(tmp_path / "own.safetensors", classes=3, pool=POOL)

    assert found.class_map == ()
    assert found.model(torch.rand(1, 3, 32, 32)).shape == (1, 3)


def test_a_head_that_is_neither_is_refused(twelve):
    with pytest.raises(ModelError, match="tells 12 classes apart, the dataset has 4"):
        load_checkpoint(twelve, classes=4, pool=(0, 1, 2, 3))


def test_classes_in_another_order_answer_in_the_pictures_and_the_order_stays_with_the_file(
    tmp_path,
):
    images = torch.rand(4, 3, 32, 32)
    torch.save(build("resnet20", 3).state_dict(), tmp_path / "three.pth")
    plain = load_checkpoint(tmp_path / "three.pth")

    found = load_checkpoint(tmp_path / "three.pth", classes=3, order=(1, 2, 0))
    (tmp_path / "kept.safetensors").write_bytes(checkpoint_bytes(found))
    again = load_checkpoint(tmp_path / "kept.safetensors", classes=3)
    back = load_checkpoint(tmp_path / "kept.safetensors", classes=3, order=(2, 0, 1))

    with torch.no_grad():
        own = plain.model(images)
        # The model's first output is class 1, its second class 2, its third class 0.
        assert torch.equal(found.model(images), own[:, [2, 0, 1]])
        assert torch.equal(again.model(images), own[:, [2, 0, 1]])
        assert torch.equal(back.model(images), own)
    assert found.model.state_dict().keys() == plain.model.state_dict().keys()


def test_one_logit_for_two_classes_in_the_other_order_changes_its_sign_and_stays_one(tmp_path):
    images = torch.rand(4, 3, 32, 32)
    torch.save(build("resnet20", 1).state_dict(), tmp_path / "one.pth")
    plain = load_checkpoint(tmp_path / "one.pth", classes=2)

    found = load_checkpoint(tmp_path / "one.pth", classes=2, order=(1, 0))
    (tmp_path / "kept.safetensors").write_bytes(checkpoint_bytes(found))
    again = load_checkpoint(tmp_path / "kept.safetensors", classes=2)

    with torch.no_grad():
        assert torch.equal(found.model(images), -plain.model(images))
        assert torch.equal(again.model(images), -plain.model(images))


def test_an_order_of_more_classes_than_the_model_has_is_refused(twelve):
    with pytest.raises(ModelError, match=r"has 2 numbers, twelve\.pth tells 12 classes apart"):
        load_checkpoint(twelve, classes=12, order=(1, 0))
