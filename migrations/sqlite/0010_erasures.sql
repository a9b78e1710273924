-- Erasures since the file was last rewritten. Splitting a page leaves copies of its rows in the page's free space, which
-- secure_delete does not overwrite, so an erasure is complete when the file has been rewritten (see store/remains.rs).
-- It begins at 1: earlier erasures left copies, too.
insert into revisions (name, value) values ('erasures', 1);
