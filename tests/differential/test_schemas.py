"""The table of schemas that our declarations are held against is what Apache Kafka's jars carry."""

import pytest
from tests.differential.kafka_schemas import read_schemas
from tests.golden.schemas import load_schemas
from tests.java.jars import LIBS, java_classpath

pytestmark = pytest.mark.live_oracle


def test_table_is_what_the_jars_carry() -> None:
    java_classpath()
    assert {schema.name: schema for schema in read_schemas(LIBS)} == load_schemas()
