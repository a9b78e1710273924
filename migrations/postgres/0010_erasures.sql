-- Erasures. On Postgres, vacuum removes what they leave (docs/security.md); only SQLite compares this number.
insert into revisions (name, value) values ('erasures', 1);
