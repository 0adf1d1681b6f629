from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from masktune.config import names_code
from masktune.errors import ModelError
from masktune.models.build import architectures, build
from masktune.models.networks import CifarBlock, CifarResNet, SmallCNN

CHECKPOINT = Path(__file__).parents[3].parent / "shared" / "data" / "resnet32-d509ac18.th"


def outline(arch, classes=5):
    """A model of shapes without numbers: the largest networks cost nothing to build and run."""
    with torch.device("meta"):
        return build(arch, classes)


def test_names_of_the_cifar_resnet_are_those_of_the_public_checkpoints():
    names = list(build("resnet20", 10).state_dict())

    assert names[:6] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1.running_mean",
        "bn1.running_var",
        "bn1.num_batches_tracked",
    ]
    assert names[-2:] == ["linear.weight", "linear.bias"]
    assert {name.rsplit(".", 1)[0] for name in names[6:-2]} == {
        f"layer{stage}.{block}.{part}"
        for stage in (1, 2, 3)
        for block in (0, 1, 2)
        for part in ("conv1", "bn1", "conv2", "bn2")
    }


@pytest.mark.parametrize(
    ("arch", "count"),
    [("resnet20", 269_722), ("resnet32", 464_154), ("resnet56", 853_018), ("resnet110", 1_727_962)],
)
def test_cifar_resnets_have_as_many_parameters_as_published(arch, count):
    assert sum(p.numel() for p in outline(arch, 10).parameters()) == count


def test_a_public_checkpoint_loads_key_by_key():
    if not CHECKPOINT.exists():
        pytest.skip(f"no {CHECKPOINT.name} beside the repository")
    stored = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)["state_dict"]
    model = build("resnet32", 10)

    model.load_state_dict({k.removeprefix("module."): v for k, v in stored.items()}, strict=True)

    assert torch.equal(model.linear.bias, stored["module.linear.bias"])


def silent(block):
    """Make the convolutions of a block add nothing, so that only the shortcut is left."""
    nn.init.zeros_(block.bn2.weight)
    return block.eval()


def test_the_shortcut_halves_the_picture_and_adds_empty_channels_on_both_sides():
    # Every second pixel of [0 .. 15] in rows of four, between two channels of zeros.
    block = silent(CifarBlock(2, 4, 2))
    maps = torch.stack([torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4) + 100])[None]

    out = block(maps)

    assert out[0].tolist() == [
        [[0.0, 0.0], [0.0, 0.0]],
        [[0.0, 2.0], [8.0, 10.0]],
        [[100.0, 102.0], [108.0, 110.0]],
        [[0.0, 0.0], [0.0, 0.0]],
    ]


def test_the_shortcut_of_an_equal_stage_is_the_picture_itself():
    maps = torch.rand(2, 3, 5, 5)

    assert torch.equal(silent(CifarBlock(3, 3, 1))(maps), maps)


def test_the_sum_in_a_block_goes_through_a_relu():
    block = silent(CifarBlock(1, 1, 1))

    assert block(torch.tensor([[[[-1.0, 2.0]]]])).tolist() == [[[[0.0, 2.0]]]]


def test_a_block_adds_two_convolutions_to_its_shortcut():
    # Both kernels pick the centre, times 2 and times 3, batch norms are (almost) the identity:
    # x becomes relu(6 relu(x) + x) = 7 x for positive x.
    block = CifarBlock(1, 1, 1).eval()
    with torch.no_grad():
        for conv, factor in ((block.conv1, 2.0), (block.conv2, 3.0)):
            conv.weight.zero_()
            conv.weight[0, 0, 1, 1] = factor

    out = block(torch.tensor([[[[1.0, -1.0], [2.0, 0.0]]]]))

    assert out.flatten().tolist() == pytest.approx([7.0, 0.0, 14.0, 0.0], rel=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_own_networks_take_grey_and_coloured_pictures(channels):
    assert SmallCNN(4, channels=channels)(torch.rand(2, channels, 28, 28)).shape == (2, 4)
    assert CifarResNet(1, 4, channels=channels)(torch.rand(2, channels, 32, 32)).shape == (2, 4)


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (45, 61), (64, 64)])
def test_the_small_network_takes_larger_pictures_too(size):
    assert build("small-cnn", 2)(torch.rand(2, 3, *size)).shape == (2, 2)


def test_the_authors_head_norms_between_the_linear_layers():
    model = build("small-cnn-bn", 2).eval()
    images, seen = torch.rand(4, 3, 28, 28), []
    model.norm.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    model.norm.bias.data.uniform_(-1, 1)

    logits = model(images)

    ((before, normed),) = seen
    assert before.shape == (4, 256)
    assert before.min() < 0  # the ReLU comes after
    assert torch.equal(logits, model.head(normed.relu()))
    plain = build("small-cnn", 2).state_dict()
    extra = set(model.state_dict()) - set(plain)
    assert extra == {f"norm.{name}" for name in model.norm.state_dict()}
    assert torch.equal(plain["head.weight"], model.state_dict()["head.weight"])


@pytest.mark.parametrize("arch", ["small-cnn", "resnet20", "mobilenet_v2"])
def test_the_same_seed_gives_the_same_weights(arch):
    first, again, other = (build(arch, 3, seed=seed).state_dict() for seed in (1, 1, 2))

    assert all(torch.equal(value, again[name]) for name, value in first.items())
    assert not all(torch.equal(value, other[name]) for name, value in first.items())


@pytest.mark.parametrize("arch", ["small-cnn", "resnet20", "mobilenet_v2"])
def test_building_leaves_torchs_own_generator_alone(arch):
    before = torch.get_rng_state()

    build(arch, 3)

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("arch", "side"), [("googlenet", 64), ("inception_v3", 96)])
def test_networks_with_side_exits_give_plain_logits_while_training(arch, side):
    model = build(arch, 3)

    assert model.training
    with torch.no_grad():
        assert model(torch.rand(2, 3, side, side)).shape == (2, 3)


@pytest.mark.parametrize("arch", ["resnet9000", "", "ResNet18", "fasterrcnn_resnet50_fpn"])
def test_an_unknown_architecture_is_refused(arch):
    with pytest.raises(ModelError, match=f"no architecture '{arch}'") as caught:
        build(arch, 2)

    assert "small-cnn" in caught.value.remedy


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_other_channels_than_one_and_three_are_refused_for_torchvisions_networks(channels):
    with pytest.raises(ModelError, match=f"resnet18 takes 1 or 3 colour channels, not {channels}"):
        build("resnet18", 2, channels=channels)


@pytest.mark.parametrize("classes", [0, -1])
def test_a_model_needs_a_logit(classes):
    with pytest.raises(ModelError, match=f"cannot have {classes} logits"):
        build("small-cnn", classes)


@pytest.mark.parametrize("classes", [1, 2, 1000])
@pytest.mark.parametrize("arch", ["small-cnn", "resnet20", "resnet18", "squeezenet1_1", "swin_t"])
def test_heads_have_one_logit_or_many(arch, classes):
    logits = outline(arch, classes).eval()(torch.zeros(2, 3, 64, 64, device="meta"))

    assert logits.shape == (2, classes)


@pytest.mark.parametrize("size", [64, (64, 64)])
def test_a_vit_is_built_for_the_size_of_the_pictures(size):
    with torch.device("meta"):
        model = build("vit_b_16", 3, size=size)

    assert model(torch.zeros(2, 3, 64, 64, device="meta")).shape == (2, 3)
    assert model.encoder.pos_embedding.shape == (1, 1 + 4 * 4, 768)


@pytest.mark.parametrize(
    ("arch", "size", "told"),
    [
        ("vit_b_16", (64, 32), "takes square pictures, not 64x32"),
        ("vit_b_16", 50, "cannot be built for 50x50 pictures"),
        ("maxvit_t", 64, "cannot be built for 64x64 pictures"),
    ],
)
def test_a_size_that_a_transformer_cannot_have_is_refused(arch, size, told):
    with torch.device("meta"), pytest.raises(ModelError, match=f"{arch} {told}") as caught:
        build(arch, 3, size=size)

    assert caught.value.remedy


def test_the_size_means_nothing_to_a_network_that_takes_any():
    first, again = build("resnet20", 3), build("resnet20", 3, size=(48, 64))

    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True)
    )


@pytest.mark.parametrize(("arch", "part"), [("googlenet", "aux1."), ("inception_v3", "AuxLogits.")])
def test_side_exits_are_built_when_asked_for(arch, part):
    with torch.device("meta"):
        plain, full = build(arch, 3).state_dict(), build(arch, 3, aux=True).state_dict()

    assert set(plain) < set(full)
    assert not any(name.startswith(part) for name in plain)
    assert any(name.startswith(part) for name in full)


def test_side_exits_are_refused_where_there_are_none():
    with pytest.raises(ModelError, match="resnet18 has no side exits"):
        build("resnet18", 2, aux=True)


def test_only_a_name_with_a_colon_names_code():
    assert [name for name in architectures() if names_code(name)] == []
    assert names_code("package.module:factory")
    assert names_code("os:system")


def test_a_densenet_of_ours_is_torchvisions_with_a_layer_that_ends_in_a_relu():
    torch.manual_seed(0)
    theirs = torchvision.models.densenet121(num_classes=3).eval()
    ours = build("densenet121", 3).eval()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    images = torch.rand(2, 3, 32, 32)

    with torch.no_grad():
        assert torch.equal(ours(images), theirs(images))
        assert ours.features(images).amin() == 0 > theirs.features(images).amin()
    ours(images).sum().backward()
    theirs(images).sum().backward()
    assert torch.equal(ours.features.conv0.weight.grad, theirs.features.conv0.weight.grad)


def test_every_name_is_listed_once_and_own_networks_first():
    names = architectures()

    assert names[:3] == ["small-cnn", "small-cnn-stride2", "small-cnn-bn"]
    assert len(names) == len(set(names))
    assert {"resnet18", "resnet50", "vgg16_bn", "googlenet", "densenet121"} <= set(names)


@pytest.mark.parametrize(
    "arch", ["alexnet", "densenet121", "mnasnet0_5", "shufflenet_v2_x0_5", "squeezenet1_1", "vgg11"]
)
def test_heads_of_all_kinds_have_as_many_logits_as_classes(arch):
    logits = outline(arch, 7).eval()(torch.zeros(1, 3, 224, 224, device="meta"))

    assert logits.shape == (1, 7)
