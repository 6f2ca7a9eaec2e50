"""The data generator: data sets, seeds, rates, and going on where it ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.connect.api import ConfigError
from moldau.connect.testing import SourceRunner
from moldau.formats.datagen.quickstarts import QUICKSTARTS


def source(**more: str) -> SourceRunner:
    settings = {"kafka.topic": "made", "max.interval": "0"}
    settings.update({key.replace("_", "."): value for key, value in more.items()})
    return SourceRunner("io.confluent.kafka.connect.datagen.DatagenConnector", settings)


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_every_data_set_makes_records_that_fit_their_schema(name: str) -> None:
    with source(quickstart=name.upper(), iterations="5", random_seed="1") as runner:
        records = runner.poll_until(5)
        assert runner.poll() == []
    assert len(records) == 5
    schema = records[0].value_schema
    assert schema is not None
    assert {field.name for field in schema.fields} == set(records[0].value)
    assert records[0].key == records[0].value[QUICKSTARTS[name].key]


def test_a_restart_goes_on_with_the_same_sequence() -> None:
    with source(quickstart="orders", iterations="2000", random_seed="7") as runner:
        expected = [record.value for record in runner.poll_until(2000)]
    with source(quickstart="orders", iterations="2000", random_seed="7") as runner:
        first = runner.poll_until(1000)
        runner.commit()
        runner.restart()
        found = [record.value for record in (*first, *runner.poll_until(1000))]
    assert found == expected


def test_a_schema_of_ones_own_at_a_rate(tmp_path: Path) -> None:
    file = tmp_path / "mine.avsc"
    file.write_text(json.dumps({"type": "record", "name": "mine", "fields": [{"name": "n", "type": "int"}]}))
    with source(schema_filename=str(file), moldau_rate="500", schema_keyfield="n") as runner:
        assert runner.poll_until(20)[0].key_schema is not None


def test_wrong_settings() -> None:
    for settings in ({}, {"quickstart": "orders", "schema_string": "{}"}, {"quickstart": "nothing"}):
        with pytest.raises(ConfigError, match="quickstart"):
            source(**settings).start()
    with pytest.raises(ConfigError, match="schema"):
        source(schema_string="{}").start()
