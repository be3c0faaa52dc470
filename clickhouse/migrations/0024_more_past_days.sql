-- Further tables that reads look up by key over all days, with the settings of 0019: the frames of a finding and of a release,
-- and what a session page shows of identities, heartbeats and replay. Most of their keys occur in a few days only, so that nearly
-- all of the parts are opened for nothing. Their rows are small beside spans: the payloads of replay are objects.
--
-- The others keep their parts. `logs`, `metric_points` and `ingest_log` are read within a range of time, `finding_arrivals` has two
-- days, and few requests fill `build_reports`, `dead_letters` and the tables of the audit.
ALTER TABLE finding_frames MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
ALTER TABLE release_frames MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
ALTER TABLE session_identities MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
ALTER TABLE session_heartbeats MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
ALTER TABLE replay_chunks MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
