from dataclasses import replace

import pytest

from experiments.compression.real_models import BUCKET_MIB, FIRST_BUCKET_BYTES, MIB, RESNET18, VGG16, Layer, RealModel


def test_sizes_are_those_of_the_published_models() -> None:
    assert RESNET18.elements == 11_689_512
    assert VGG16.elements == 138_357_544


def test_multiply_adds_are_those_of_the_published_models() -> None:
    # 1.8 and 15.5 billion on an image of 224 x 224.
    assert sum(layer.multiply_adds for layer in RESNET18.layers) == pytest.approx(1.81e9, rel=0.01)
    assert sum(layer.multiply_adds for layer in VGG16.layers) == pytest.approx(15.5e9, rel=0.01)


def test_buckets_close_as_ddps_do() -> None:
    # fc; conv5_2, the shortcut and conv5_1b; the rest.
    assert [bucket.elements for bucket in RESNET18.buckets] == [513_000, 7_213_056, 3_963_456]
    for model in (RESNET18, VGG16):
        assert sum(bucket.elements for bucket in model.buckets) == model.elements
        limits = [FIRST_BUCKET_BYTES, *[BUCKET_MIB * MIB] * (len(model.buckets) - 2)]
        for bucket, limit in zip(model.buckets[:-1], limits, strict=True):
            assert 4 * bucket.elements >= limit


def test_smaller_buckets_are_ready_sooner() -> None:
    small = replace(RESNET18, bucket_mib=4)
    assert sum(bucket.elements for bucket in small.buckets) == RESNET18.elements
    assert small.buckets[-1].elements < RESNET18.buckets[-1].elements / 7
    assert [bucket.ready_share for bucket in small.buckets] == sorted(bucket.ready_share for bucket in small.buckets)


def test_a_bucket_is_ready_when_its_last_layer_is() -> None:
    # Multiply-adds 600, 100, 300: the last layer alone fills the first bucket, the first two the second.
    million = 1 << 20
    model = RealModel("three", (Layer("a", (6, million)), Layer("b", (1, million)), Layer("c", (3, million))))
    assert [bucket.ready_share for bucket in model.buckets] == pytest.approx([0.3, 1.0])
    assert [bucket.elements for bucket in model.buckets] == [3 * million, 7 * million]
