-- The first and last time of the records of a granule. The primary key has services before times, and a granule of small
-- services has all of their times, so that a search of an hour without a service read every record of a workspace. Parts have the
-- records of a few hours until the merge of a past day, and then most granules have one service, whose times the key bounds.
--
-- 20 million records in 63 parts of a few hours, 24 services, the newest 100 of an hour: the rows read are in
-- docs/performance.md. An insert writes 16 bytes for each 8,192 records more.
ALTER TABLE logs ADD INDEX IF NOT EXISTS logs_by_time timestamp TYPE minmax GRANULARITY 1;
ALTER TABLE logs MATERIALIZE INDEX logs_by_time SETTINGS mutations_sync = 0;
