-- Which articles each change of the catalogue was about. A replica keeps the catalogue in memory, and to read 300,000
-- articles again after each change takes seconds: so it reads this and the articles that changed.
--
-- The transaction that counts a change in `revisions` writes these rows with the new count. An empty id stands for all
-- articles, which an import writes that changes many. Only the latest revisions are kept; a replica that is behind by more
-- reads the whole catalogue.
create table article_changes (
    revision integer not null,
    -- No foreign key: the article may be gone.
    article_id text not null,
    constraint article_changes_unique primary key (revision, article_id)
) strict, without rowid;
