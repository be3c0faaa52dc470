-- Less work for the same rows. CPU s of ClickHouse per million rows, inserts of 100,000 and their merges, 4 million
-- different rows; before and after in turn on one machine that had other work: trust the ratios.
--                    before   after   parts         disk, bytes a row
--   logs                8.4     3.1   3, then 10    67, then 44
--   spans               3.5     2.4   3, then 11    24
-- Columns stay as they are, so that no data is rewritten. What existing records lose in searches until the first two
-- mutations have passed in the background is speed: parts without the index are read.
--
-- logs_by_token, a Bloom filter of words for every 8192 records, in place of the text index logs_by_word: that took 1.1
--   to insert and another 1.6 to 2.3 for each merge of a million records, and records are merged again and again. Ask with
--   hasToken(lower(body), 'connection') for each word, in lower case, no separators in it: hasAllTokens does not use
--   this index. Four million records, 2.7 of them of the workspace asked for:
--     index         rare word   rare, any workspace   frequent word by minute   bytes a record   CPU s, 1st merge of a million
--     none              93 ms                149 ms                    139 ms                                            1.4
--     tokenbf_v1        11 ms                 12 ms                    134 ms              4.4                           1.7
--     text               8 ms                  7 ms                     15 ms             28.3                           3.7
--   The filters are read whole, where the text index is read in a few places: with a hundred times the records, bound a
--   search by time. Two hash functions instead of three leave five granules for one, at the same cost. Built in merges
--   only, the text index took 5.1 in the first one instead of 1.1 and 3.7.
-- merge_selector_base: 10 parts instead of 5 are merged at once, so that a row was rewritten 0.8 times instead of 1.6 in
--   the first 4 million; of 1,200 small inserts the rows had passed through half as many merges.
--   A trace is read in 13.9 ms instead of 12.2 from the parts above, a page of logs in 15.0 instead of 12.8.
--   metric_points has had it since 0004.
-- auto_statistics_types: as for spans (0001), 0.1 for the first merge of a million rows.
ALTER TABLE logs ADD INDEX IF NOT EXISTS logs_by_token lower(body) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 1;
ALTER TABLE logs MATERIALIZE INDEX logs_by_token SETTINGS mutations_sync = 0;
ALTER TABLE logs DROP INDEX IF EXISTS logs_by_word SETTINGS alter_sync = 0;
ALTER TABLE logs MODIFY SETTING merge_selector_base = 10, auto_statistics_types = '';
ALTER TABLE metric_points MODIFY SETTING auto_statistics_types = '';
ALTER TABLE spans MODIFY SETTING merge_selector_base = 10;
