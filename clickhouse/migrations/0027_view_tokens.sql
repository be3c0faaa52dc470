-- Views whose query was changed (0012, 0014) get the tokens that they will have after a restart of the server.
--
-- ClickHouse derives the deduplication token of a view's rows from that of the insert and from the view. After MODIFY QUERY it
-- does so in another way until the server restarts (seen with 26.7). An insert that is repeated after this first restart was
-- recognized in `exceptions`, and not in the tables of these views: findings counted its occurrences twice. A view that
-- is renamed is known as after a restart. Its rows are the same under either name.
--
-- A migration that changes the query of a view renames it too, at its end (migrate/migration-files.test.ts).
RENAME TABLE IF EXISTS findings_from_exceptions TO findings_from_exceptions_renamed;
RENAME TABLE IF EXISTS findings_from_exceptions_renamed TO findings_from_exceptions;
RENAME TABLE IF EXISTS finding_traces_from_exceptions TO finding_traces_from_exceptions_renamed;
RENAME TABLE IF EXISTS finding_traces_from_exceptions_renamed TO finding_traces_from_exceptions;
RENAME TABLE IF EXISTS session_findings_from_exceptions TO session_findings_from_exceptions_renamed;
RENAME TABLE IF EXISTS session_findings_from_exceptions_renamed TO session_findings_from_exceptions;
