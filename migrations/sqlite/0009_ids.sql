-- Ids have one form since this version: NFC, without invisible characters. SQL cannot normalise texts on both
-- databases, so this is only a mark: the first program that opens the database takes it away, and rewrites the ids of
-- older rows in the same transaction (src/store/ids.rs).
insert into settings (name, value, changed) values ('ids_to_normalise', '', 0);
