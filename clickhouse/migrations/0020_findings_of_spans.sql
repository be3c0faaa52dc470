-- The findings of the exceptions of a span, of 30 characters each, without a separator. A trace is read only as a trace of a
-- finding: a row that names the finding proves it without a query of finding_traces, which took 3.5 ms of CPU beside that of
-- the spans. Rows without a name are looked up as before: those from before this column, of exceptions in log records, and
-- further findings of spans that have more than eight.
-- Few spans have any, so the column is stored sparse (ratio_of_defaults_for_sparse_serialization).
ALTER TABLE spans ADD COLUMN IF NOT EXISTS finding_ids String;
