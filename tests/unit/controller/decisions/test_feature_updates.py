"""Feature levels go up and down as Kafka lets them, all of a request or none."""

from __future__ import annotations

import uuid

import pytest

from moldau.controller.decisions.feature_updates import FeatureUpdate, Updater, decide_feature_updates
from moldau.controller.errors import RefusedError
from moldau.controller.features import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from moldau.controller.image import CLUSTER_DEFAULT, BrokerImage, ConfigResource, ConfigResourceType, MetadataImage
from moldau.controller.replay import replay_records
from moldau.core.errors import ErrorCode
from moldau.core.features import UpgradeType
from moldau.protocol.metadata_records import ClearElrRecord, FeatureLevelRecord

OLD = {METADATA_VERSION: 21}
UPDATER = Updater(node_id=7, kraft_version=0, min_isr=2)
UPGRADE, SAFE, UNSAFE = UpgradeType


def refusal(levels: dict[str, int], *updates: FeatureUpdate, updater: Updater = UPDATER) -> str:
    with pytest.raises(RefusedError) as refused:
        decide_feature_updates(MetadataImage(features=levels), updates, updater)
    assert refused.value.error is ErrorCode.INVALID_UPDATE_VERSION
    prefix = "The update failed for all features since the following feature had an error: "
    assert str(refused.value).startswith(prefix)
    return str(refused.value).removeprefix(prefix)


def test_levels_go_up_together() -> None:
    updates = [FeatureUpdate(METADATA_VERSION, 25), FeatureUpdate("group.version", 1)]
    assert decide_feature_updates(MetadataImage(features=OLD), updates, UPDATER) == [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=25),
        FeatureLevelRecord(name="group.version", feature_level=1),
    ]


def test_a_level_that_is_in_effect_changes_nothing() -> None:
    assert decide_feature_updates(MetadataImage(features=OLD), [FeatureUpdate(METADATA_VERSION, 21)], UPDATER) == []


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (FeatureUpdate("group.version", -1), "A feature version cannot be less than 0."),
        (FeatureUpdate("group.version", 9), "Local controller 7 only supports versions 0-1"),
        (FeatureUpdate("share.version", 1), "Local controller 7 does not support this feature."),
        (FeatureUpdate("group.version", 1, 9), "The controller does not support the given upgrade type."),
        (FeatureUpdate("group.version", 1, SAFE), "Can't downgrade to a newer version."),
        (FeatureUpdate(METADATA_VERSION, 20), "Can't downgrade the version of this feature without setting the"),
        (FeatureUpdate("kraft.version", 1), "The voters of this quorum are fixed by controller.quorum.voters"),
        (FeatureUpdate("nonsense", 0, SAFE), "Feature nonsense not found."),
        (
            FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 1),
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
        ),
    ],
)
def test_a_refusal_says_why(update: FeatureUpdate, why: str) -> None:
    said = refusal(OLD, FeatureUpdate("transaction.version", 1), update)
    assert said.startswith(f"Invalid update version {update.level} for feature {update.name}. {why}")


def test_a_level_that_a_broker_does_not_know_is_refused() -> None:
    broker = BrokerImage(3, 1, uuid.UUID(int=3), {}, features={METADATA_VERSION: (7, 22)})
    image = MetadataImage(features=OLD, brokers={3: broker})
    with pytest.raises(RefusedError, match="Broker 3 only supports versions 7-22"):
        decide_feature_updates(image, [FeatureUpdate(METADATA_VERSION, 25)], UPDATER)
    with pytest.raises(RefusedError, match=r"Broker 3 does not support this feature\."):
        decide_feature_updates(image, [FeatureUpdate("group.version", 1)], UPDATER)


def test_metadata_goes_back_only_to_a_level_that_knows_every_record() -> None:
    image = MetadataImage(features={METADATA_VERSION: 25})
    assert decide_feature_updates(image, [FeatureUpdate(METADATA_VERSION, 23, SAFE)], UPDATER)
    assert "delete metadata" in refusal({METADATA_VERSION: 25}, FeatureUpdate(METADATA_VERSION, 22, SAFE))
    assert "not supported" in refusal({METADATA_VERSION: 25}, FeatureUpdate(METADATA_VERSION, 22, UNSAFE))


def test_the_quorum_s_own_feature_never_goes_back() -> None:
    dynamic = UPDATER._replace(kraft_version=1)
    assert "Can't downgrade" in refusal(OLD, FeatureUpdate("kraft.version", 0, SAFE), updater=dynamic)
    assert decide_feature_updates(MetadataImage(features=OLD), [FeatureUpdate("kraft.version", 1)], dynamic) == []


def test_eligible_leaders_come_with_one_value_for_all_brokers_and_go_with_their_sets() -> None:
    image = MetadataImage(
        features=OLD, configs={ConfigResource(ConfigResourceType.BROKER, "1"): {"min.insync.replicas": "3"}}
    )
    updates = [FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 1), FeatureUpdate(METADATA_VERSION, 25)]
    image = replay_records(image, decide_feature_updates(image, updates, UPDATER), offset=9, epoch=1).image
    assert image.configs == {CLUSTER_DEFAULT: {"min.insync.replicas": "2"}}
    disabled = decide_feature_updates(image, [FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 0, SAFE)], UPDATER)
    assert disabled == [
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=0),
        ClearElrRecord(topic_name=""),
    ]
