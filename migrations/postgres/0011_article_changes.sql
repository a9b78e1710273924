-- Which articles each change of the catalogue was about; migrations/sqlite/ says why.
create table article_changes (
    revision bigint not null,
    article_id text collate "C" not null,
    constraint article_changes_unique primary key (revision, article_id)
);
