"""Encoded topics are kept until something they tell changes, and long answers leave the loop to others."""

from __future__ import annotations

import asyncio
import uuid
from typing import TypeVar

import pytest

from moldau.broker.metadata import topic_answers
from moldau.broker.metadata.topic_answers import FORMS_KEPT, EncodedTopic, Form, Steps, TopicAnswers, in_turns
from moldau.controller.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message, decode_response
from moldau.protocol.metadata_response import encode_metadata_response

FORM = Form(12, "PLAINTEXT", has_operations=False)
R = TypeVar("R")


def broker(node_id: int, *, fenced: bool = False) -> BrokerImage:
    endpoints = {"PLAINTEXT": Endpoint("PLAINTEXT", "h", 9092)}
    return BrokerImage(node_id, 1, None, endpoints, is_fenced=fenced)


def topic(name: str = "t", partitions: int = 3, epoch: int = 0) -> TopicImage:
    return TopicImage(
        name, uuid.uuid4(), {number: PartitionImage((1,), (1,), 1, epoch) for number in range(partitions)}
    )


def image(*topics: TopicImage, brokers: tuple[BrokerImage, ...] = (broker(1),)) -> MetadataImage:
    return MetadataImage(brokers={one.node_id: one for one in brokers}, topics={one.name: one for one in topics})


def run(steps: Steps[R]) -> R:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: R = done.value
            return result


def told(answers: TopicAnswers, cluster: MetadataImage, form: Form = FORM, lost: tuple[int, ...] = ()) -> EncodedTopic:
    return run(answers.topic(cluster, cluster.topics["t"], form, lost))


def decoded(encoded: EncodedTopic) -> Message:
    body = encode_metadata_response(
        12, brokers=(), cluster_id=None, controller_id=1, topics=[encoded.data], operations=0
    )
    (found,) = decode_response(ApiKey.METADATA, 12, body).topics
    return found


def test_a_topic_is_encoded_once() -> None:
    answers, cluster = TopicAnswers(1), image(topic())
    first = told(answers, cluster)
    assert told(answers, cluster) is first
    assert told(answers, image(cluster.topics["t"], topic("other"))) is first, "only its own image counts"
    assert answers.encodings == 1


def test_a_changed_topic_is_told_as_it_is_now() -> None:
    answers = TopicAnswers(1)
    told(answers, image(topic(epoch=1)))
    changed = decoded(told(answers, image(topic(epoch=2, partitions=5))))
    assert [(one.partition_index, one.leader_epoch) for one in changed.partitions] == [(n, 2) for n in range(5)]


def test_brokers_that_go_and_come_back_change_every_topic() -> None:
    answers, same = TopicAnswers(1), topic()
    assert told(answers, image(same)).error_codes == ()
    away = told(answers, image(same, brokers=(broker(1, fenced=True),)))
    assert away.error_codes == (ErrorCode.LEADER_NOT_AVAILABLE,) * 3
    assert told(answers, image(same)).error_codes == ()


def test_a_log_that_goes_offline_is_told_at_once() -> None:
    answers, cluster = TopicAnswers(1), image(topic())
    told(answers, cluster)
    lost = decoded(told(answers, cluster, lost=(1,)))
    assert [one.leader_id for one in lost.partitions] == [1, -1, 1]
    assert [one.leader_id for one in decoded(told(answers, cluster)).partitions] == [1, 1, 1]


def test_each_form_has_its_own_bytes_and_few_forms_are_kept() -> None:
    answers, cluster = TopicAnswers(1), image(topic())
    forms = [Form(version, "PLAINTEXT", has_operations=False) for version in range(14)]
    answer_of = [told(answers, cluster, form) for form in forms]
    assert answer_of[0].data != answer_of[12].data
    assert told(answers, cluster, Form(12, "PLAINTEXT", has_operations=True)).data != answer_of[12].data
    assert told(answers, cluster, Form(12, "OTHER", has_operations=False)).error_codes
    encoded = answers.encodings
    assert told(answers, cluster) is answer_of[12]
    assert answers.encodings == encoded
    assert told(answers, cluster, forms[0]) == answer_of[0]
    assert answers.encodings == encoded + 1, f"only {FORMS_KEPT} forms are kept"


def test_deleted_topics_are_forgotten() -> None:
    answers = TopicAnswers(1)
    for number in range(50):
        cluster = image(topic(f"t{number}"))
        run(answers.topic(cluster, cluster.topics[f"t{number}"], FORM, ()))
    assert len(answers._forms[FORM].topics) <= 4


async def ask(answers: TopicAnswers, cluster: MetadataImage) -> EncodedTopic:
    answer = in_turns(answers.topic(cluster, cluster.topics["t"], FORM, ()), answers.building, is_long=True)
    return answer if isinstance(answer, EncodedTopic) else await answer


@pytest.fixture
def _one_step_per_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_answers, "TURN_S", 1.5)
    monkeypatch.setattr(topic_answers, "perf_counter", iter(range(10**6)).__next__)


@pytest.mark.usefixtures("_one_step_per_turn")
def test_a_long_answer_leaves_the_loop_to_others() -> None:
    answers, cluster = TopicAnswers(1), image(topic(partitions=1000))
    others = 0

    async def story() -> EncodedTopic:
        def count_turns() -> None:
            nonlocal others
            others += 1
            loop.call_soon(count_turns)

        loop = asyncio.get_running_loop()
        count_turns()
        return await ask(answers, cluster)

    assert len(decoded(asyncio.run(story())).partitions) == 1000
    assert others > 10


@pytest.mark.usefixtures("_one_step_per_turn")
def test_many_long_answers_at_once_are_built_once() -> None:
    answers, cluster = TopicAnswers(1), image(topic(partitions=1000))

    async def story() -> list[EncodedTopic]:
        first = asyncio.create_task(ask(answers, cluster))
        while not answers.building.locked():
            await asyncio.sleep(0)
        return await asyncio.gather(first, *(ask(answers, cluster) for _ in range(20)))

    assert len(set(map(id, asyncio.run(story())))) == 1
    assert answers.encodings == 1


def test_a_short_answer_needs_no_turn() -> None:
    answers, cluster = TopicAnswers(1), image(topic())
    answer = in_turns(answers.topic(cluster, cluster.topics["t"], FORM, ()), answers.building, is_long=False)
    assert isinstance(answer, EncodedTopic)
