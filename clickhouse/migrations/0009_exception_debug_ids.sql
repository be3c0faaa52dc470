-- Script URL → debug id (a lower-case UUID), where the client has said which build of its scripts threw.
ALTER TABLE exceptions ADD COLUMN IF NOT EXISTS debug_ids Map(String, String);
