"""Answers of the server as text: one table per type of answer, in ksqlDB's layouts."""

# ruff: noqa: W291, because cells of tables end with a space

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.ksql.rendering.statements import render_statement

STRING = {"type": "STRING", "fields": None, "memberSchema": None}
BIGINT = {"type": "BIGINT", "fields": None, "memberSchema": None}
QUERY = {
    "queryString": "CREATE TABLE T AS\n  SELECT 1;",
    "sinks": ["T"],
    "sinkKafkaTopics": ["t"],
    "id": "CTAS_T_0",
    "statusCount": {"RUNNING": 1},
    "queryType": "PERSISTENT",
    "state": "RUNNING",
}
SOURCE: dict[str, Any] = {
    "name": "T",
    "windowType": "TUMBLING",
    "readQueries": [],
    "writeQueries": [QUERY],
    "fields": [
        {"name": "K", "schema": STRING, "type": "KEY"},
        {"name": "V", "schema": {"type": "MAP", "fields": None, "memberSchema": BIGINT}},
        {"name": "H", "schema": {"type": "BYTES"}, "type": "HEADER", "headerKey": "h"},
    ],
    "type": "TABLE",
    "timestamp": "",
    "extended": False,
    "keyFormat": "KAFKA",
    "valueFormat": "JSON",
    "topic": "t",
    "partitions": 1,
    "replication": 1,
    "statement": "CREATE TABLE T AS SELECT 1;",
    "sourceConstraints": ["OTHER"],
    "queryOffsetSummaries": [
        {
            "groupId": "g",
            "topicSummaries": [
                {
                    "kafkaTopic": "t",
                    "offsets": [{"partition": 0, "logStartOffset": 1, "logEndOffset": 9, "consumerOffset": 7}],
                }
            ],
        }
    ],
}


def answer(kind: str, **members: Any) -> dict[str, Any]:
    return {"@type": kind, "statementText": "X;", "warnings": [], **members}


def status(message: str) -> dict[str, Any]:
    return answer("currentStatus", commandStatus={"status": "SUCCESS", "message": message, "queryId": None})


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "the first line of a command's message": (
        status("Stream created\nmore"),
        """\
 Message        
----------------
 Stream created 
----------------""",
    ),
    "streams by name": (
        answer(
            "streams",
            streams=[
                {"name": "B", "topic": "t2", "keyFormat": "KAFKA", "valueFormat": "AVRO", "isWindowed": True},
                {"name": "A", "topic": "t1", "keyFormat": "KAFKA", "valueFormat": "JSON", "isWindowed": False},
            ],
        ),
        """\
 Stream Name | Kafka Topic | Key Format | Value Format | Windowed 
------------------------------------------------------------------
 A           | t1          | KAFKA      | JSON         | false    
 B           | t2          | KAFKA      | AVRO         | true     
------------------------------------------------------------------""",
    ),
    "no tables": (
        answer("tables", tables=[]),
        """\
 Table Name | Kafka Topic | Key Format | Value Format | Windowed 
-----------------------------------------------------------------
-----------------------------------------------------------------""",
    ),
    "topics": (
        answer("kafka_topics", topics=[{"name": "a", "replicaInfo": [1, 1]}, {"name": "b", "replicaInfo": [1, 3]}]),
        """\
 Kafka Topic | Partitions | Partition Replicas 
-----------------------------------------------
 a           | 2          | 1                  
 b           | 2          | 1, 3               
-----------------------------------------------""",
    ),
    "topics with consumers": (
        answer(
            "kafka_topics_extended",
            topics=[{"name": "a", "replicaInfo": [1], "consumerCount": 2, "consumerGroupCount": 1}],
        ),
        """\
 Kafka Topic | Partitions | Partition Replicas | Consumers | ConsumerGroups 
----------------------------------------------------------------------------
 a           | 1          | 1                  | 2         | 1              
----------------------------------------------------------------------------""",
    ),
    "queries in one line each": (
        answer("queries", queries=[QUERY]),
        """\
 Query ID | Query Type | Status    | Sink Name | Sink Kafka Topic | Query String                
------------------------------------------------------------------------------------------------
 CTAS_T_0 | PERSISTENT | RUNNING:1 | T         | t                | CREATE TABLE T AS SELECT 1; 
------------------------------------------------------------------------------------------------
For detailed information on a Query run: EXPLAIN <Query ID>;""",
    ),
    "properties and where they come from": (
        answer(
            "properties",
            properties=[
                {"name": "c", "scope": "KSQL", "value": "3"},
                {"name": "a", "scope": "KSQL", "value": None},
                {"name": "b", "scope": "KSQL", "value": "2"},
            ],
            overwrittenProperties=["b"],
            defaultProperties=["a"],
        ),
        """\
 Property | Scope | Default override | Effective Value 
-------------------------------------------------------
 a        | KSQL  |                  | null            
 b        | KSQL  | SESSION          | 2               
 c        | KSQL  | SERVER           | 3               
-------------------------------------------------------""",
    ),
    "functions": (
        answer("function_names", functions=[{"name": "ABS", "type": "SCALAR", "category": "MATHEMATICAL"}]),
        """\
 Function Name | Category     
------------------------------
 ABS           | MATHEMATICAL 
------------------------------""",
    ),
    "types": (
        answer("type_list", types={"ADDRESS": {"type": "STRUCT", "fields": [{"name": "CITY", "schema": STRING}]}}),
        """\
 Type Name | Schema                       
------------------------------------------
 ADDRESS   | STRUCT<CITY VARCHAR(STRING)> 
------------------------------------------""",
    ),
    "variables": (
        answer("variables", variables=[{"name": "A", "value": "x"}]),
        """\
 Variable Name | Value 
-----------------------
 A             | x     
-----------------------""",
    ),
    "connectors": (
        answer(
            "connector_list",
            connectors=[{"name": "c", "type": "sink", "className": "C", "state": "RUNNING (1/1 tasks RUNNING)"}],
        ),
        """\
 Connector Name | Type | Class | Status                      
-------------------------------------------------------------
 c              | sink | C     | RUNNING (1/1 tasks RUNNING) 
-------------------------------------------------------------""",
    ),
    "connector plug-ins": (
        answer("connector_plugins_list", connectorsPlugins=[{"className": "C", "type": "sink", "version": "1"}]),
        """\
 Class | Type | Version 
------------------------
 C     | sink | 1       
------------------------""",
    ),
    "a warning": (
        {**answer("warning_entity", message="It is there."), "warnings": [{"message": "careful"}]},
        """\
 Message      
--------------
 It is there. 
--------------
WARNING: careful""",
    ),
    "an assertion about a topic": (
        answer("assert_topic", topicName="t", exists=True),
        " Message        \n----------------\n Topic t exists \n----------------",
    ),
    "a source": (
        answer("sourceDescription", sourceDescription=SOURCE),
        """\
Name                 : T
 Field | Type                                                   
----------------------------------------------------------------
 K     | VARCHAR(STRING)  (primary key) (Window type: TUMBLING) 
 V     | MAP<STRING, BIGINT>                                    
 H     | BYTES            (header('h'))                         
----------------------------------------------------------------
For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_has_its_layout(name: str) -> None:
    document, expected = CASES[name]

    assert "\n".join(render_statement(document)) == expected


def test_an_extended_description_has_topic_queries_and_positions() -> None:
    text = "\n".join(
        render_statement(
            answer("sourceDescription", sourceDescription={**SOURCE, "extended": True, "windowType": None})
        )
    )

    for part in (
        "Timestamp field      : Not set - using <ROWTIME>\n",
        "Kafka topic          : t (partitions: 1, replication: 1)\n",
        "Statement            : CREATE TABLE T AS SELECT 1;\n",
        "Sources that have a DROP constraint on this source\n",
        "Queries that write into this TABLE\n----------------------------------\nCTAS_T_0 (RUNNING) : CREATE",
        "Local runtime statistics\n------------------------\n",
        "Consumer Group       : g\n",
        "Max lag              : 2\n",
        " Partition | Start Offset | End Offset | Offset | Lag \n",
        " 0         | 1            | 9          | 7      | 2   \n",
    ):
        assert part in text


def test_explain_has_plan_topology_and_errors() -> None:
    description = {
        "id": "Q",
        "statementText": "SELECT 1;",
        "windowType": None,
        "fields": [{"name": "K", "schema": STRING}],
        "sources": ["S"],
        "sinks": ["T"],
        "topology": "Topologies:\n  x",
        "executionPlan": "plan",
        "overriddenProperties": {"p": "v"},
        "ksqlHostQueryStatus": {"h:1": "ERROR"},
        "queryType": "PERSISTENT",
        "queryErrors": [{"timestamp": 0, "errorMessage": "broken\nhere", "type": "USER"}],
    }

    text = "\n".join(render_statement(answer("queryDescription", queryDescription=description)))

    for part in (
        "ID                   : Q\nQuery Type           : PERSISTENT\nSQL                  : SELECT 1;\n",
        "Host Query Status    : {h:1=ERROR}\n",
        "Sources that this query reads from:\n-----------------------------------\nS\n",
        "Execution plan\n--------------\nplan\n",
        "Processing topology\n-------------------\nTopologies:\n  x\n",
        " p        | v     \n",
        " 1970-01-01 00:00:00 UTC | USER | broken here \n",
    ):
        assert part in text


def test_a_function_has_its_variations() -> None:
    function = answer(
        "describe_function",
        name="F",
        description="Does it.",
        author="me",
        version="",
        path="internal",
        type="SCALAR",
        functions=[
            {
                "arguments": [{"name": "a", "type": "STRING", "description": "the text", "isVariadic": True}],
                "returnType": "BIGINT",
                "description": "",
                "argumentTypes": ["STRING"],
            }
        ],
    )

    assert render_statement(function) == [
        "Name        : F",
        "Author      : me",
        "Overview    : Does it.",
        "Type        : scalar",
        "Jar         : internal",
        "Variations  :",
        "",
        "\tVariation   : F(a STRING[])",
        "\tReturns     : BIGINT",
        "\ta           : the text",
    ]


def test_an_unknown_answer_is_shown_as_json() -> None:
    assert "".join(render_statement({"@type": "new_thing", "x": 1})) == '{  "@type": "new_thing",  "x": 1}'


def test_a_connector_has_its_tasks() -> None:
    document = answer(
        "connector_description",
        connectorClass="C",
        status={
            "name": "c",
            "type": "source",
            "connector": {"state": "RUNNING", "worker_id": "w"},
            "tasks": [{"id": 0, "state": "FAILED", "trace": "Boom\n at"}],
        },
        sources=[],
        topics=["t"],
    )

    text = "\n".join(render_statement(document))

    assert "Name                 : c\nClass                : C\nType                 : source\n" in text
    assert " 0       | FAILED | Boom        \n" in text
    assert " Related Topics \n" in text
