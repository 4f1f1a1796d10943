"""A wrong recipe names the field, the value and what is allowed."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minilab.recipe import Recipe

WRONG = [
    ("method", "byol", "simclr, moco"),
    ("norm", "layer", "batch, group"),
    ("shuffle", None, "True or False"),
    ("head_norm", "yes", "True or False"),
    ("encoder", "vit", "tiny, small"),
    ("precision", "int8", "auto, float32"),
    ("optimizer", "adam", "sgd, lars"),
    ("accumulation", "exact", "gradcache, naive"),
    ("chunk", 1, "a whole number from 2 to 256"),
    ("chunk", 257, "a whole number from 2 to 256"),
    ("chunk", 51, "one that leaves no single image of 256"),
    ("batch", 1, "a whole number from 2"),
    ("batch", 2.0, "a whole number from 2"),
    ("batch", True, "a whole number from 2"),
    ("epochs", 0, "a whole number from 1"),
    ("queue", 0, "a whole number from 1"),
    ("dim", 0, "a whole number from 1"),
    ("seed", -1, "a whole number from 0"),
    ("momentum", 1.2, "a number from 0 to 1"),
    ("momentum", float("nan"), "a number from 0 to 1"),
    ("momentum", "0.9", "a number from 0 to 1"),
    ("temperature", 0, "a number from 1e-06 to 100"),
    ("temperature", -0.1, "a number from 1e-06 to 100"),
    ("temperature", float("inf"), "a number from 1e-06 to 100"),
    ("crop", 0.0, "a number above 0, at most 1"),
    ("crop", 1.5, "a number above 0, at most 1"),
    ("learning_rate", -1.0, "a number from 0"),
    ("weight_decay", float("nan"), "a number from 0"),
    ("warmup_epochs", 11, "a number from 0 to 10"),
    ("symmetric", 1, "True or False"),
    ("bn_groups", 3, "a divisor of batch"),
    ("bn_groups", 256, "a whole number from 1 to 128"),
]


@pytest.mark.parametrize("name, value, allowed", WRONG)
def test_a_wrong_value_is_named(name, value, allowed):
    with pytest.raises(ValueError) as caught:
        Recipe(**{"method": "moco", name: value})
    message = str(caught.value)
    assert message.startswith(f"{name} is {value!r}") and "allowed: " in message and allowed in message


def test_every_field_has_a_wrong_value_above():
    assert {field.name for field in dataclasses.fields(Recipe)} == {name for name, _, _ in WRONG}


def test_a_chunk_is_a_batch_norm_group_already():
    with pytest.raises(ValueError, match="bn_groups is 4; allowed: 1 with a chunk"):
        Recipe("simclr", chunk=64, bn_groups=4)


def test_it_is_frozen_and_comes_back_from_its_dictionary():
    recipe = Recipe("moco", queue=128, momentum=0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.queue = 1
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_a_dictionary_with_other_fields_is_refused():
    with pytest.raises(ValueError, match="unknown field 'quue'; allowed: method, encoder"):
        Recipe.from_dict({"method": "moco", "quue": 3})
    with pytest.raises(ValueError, match="no field 'method'; allowed: simclr, moco"):
        Recipe.from_dict({})


@given(st.integers(2, 10_000))
def test_the_learning_rate_follows_the_square_root_rule(batch):
    expected = 0.06 * math.sqrt(batch / 256)
    assert Recipe("simclr", batch=batch).peak_learning_rate == pytest.approx(expected)
    assert Recipe("simclr", batch=batch, learning_rate=0.3).peak_learning_rate == 0.3
