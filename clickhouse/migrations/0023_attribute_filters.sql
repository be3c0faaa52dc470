-- Which granules contain an attribute with its value: hashes of both in a Bloom filter (docs/decisions/031). Read with the
-- condition of clickhouse/queries/attributes/attribute-condition.ts, which must repeat this expression.
--
-- Workers do not build it when they insert (clickhouse/client.ts): the first merge does, because building it twice costs more
-- than reading the newest parts whole. A part without it is read whole, and the answer is the same.
--
-- 0.7 bytes a span and 1.2 a record. A mutation in the background brings it to the parts that exist, in about 0.3 CPU s for a
-- million rows.
ALTER TABLE spans ADD INDEX IF NOT EXISTS by_attribute
  arrayMap((k, v) -> cityHash64(k, v), mapKeys(attributes), mapValues(attributes)) TYPE bloom_filter(0.01) GRANULARITY 1;
ALTER TABLE spans MATERIALIZE INDEX by_attribute SETTINGS mutations_sync = 0;

ALTER TABLE logs ADD INDEX IF NOT EXISTS by_attribute
  arrayMap((k, v) -> cityHash64(k, v), mapKeys(attributes), mapValues(attributes)) TYPE bloom_filter(0.01) GRANULARITY 1;
ALTER TABLE logs MATERIALIZE INDEX by_attribute SETTINGS mutations_sync = 0;
