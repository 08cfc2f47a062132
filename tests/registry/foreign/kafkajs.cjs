// Registers three schemas with @kafkajs/confluent-schema-registry, encodes and decodes a value with each.
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

const [url, subject] = process.argv.slice(2);
const schemas = [
  [SchemaType.AVRO, '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'],
  [SchemaType.JSON, '{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}'],
  [SchemaType.PROTOBUF, 'syntax = "proto3"; package n; message R { int32 a = 1; }'],
];

async function main() {
  const registry = new SchemaRegistry({ host: url });
  const said = [];
  for (const [type, schema] of schemas) {
    const name = `${subject}-${type}`;
    const { id } = await registry.register({ type, schema }, { subject: name, separator: "." });
    const encoded = await registry.encode(id, { a: 7 });
    const decoded = await registry.decode(encoded);
    const latest = await registry.getLatestSchemaId(name);
    said.push({ type, id, latest, encoded: encoded.toString("hex"), a: decoded.a });
  }
  console.log(JSON.stringify(said));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
